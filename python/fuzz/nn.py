"""The table of ops of networks: convolutions, pools, normalizations, losses, attention."""

from . import values
from .table import Table

TABLE = Table()
op = TABLE.op


def _image(g, spatial, dtypes=("float32", "float64")):
    return g.any(list(dtypes), rank=spatial + 2, fits=lambda sizes: 0 not in sizes and max(sizes) < 40)


def _padding(g):
    return g.rng.choice(["SAME", "VALID"])


@op
def convolution(g):
    spatial = g.rng.choice([1, 2, 2, 2, 3])
    a = _image(g, spatial)
    *_, channels = g.sizes(a)
    window = [g.rng.randint(1, min(3, n)) for n in g.sizes(a)[1:-1]]
    b = g.like(a, [*window, channels, g.rng.randint(1, 4)])
    stride = g.rng.randint(1, 2)
    dilated = f", dilations={g.rng.randint(1, 2)}" if stride == 1 and spatial == 2 else ""
    strides = [f"stride={stride}", f"strides={stride}", f"strides=[1, {stride}, {stride}, {stride}, 1]"][spatial - 1]
    return f"tf.nn.conv{spatial}d({a}, {b}, {strides}, padding={_padding(g)!r}{dilated})"


@op
def depthwise(g):
    a = _image(g, 2)
    window = [g.rng.randint(1, min(3, n)) for n in g.sizes(a)[1:-1]]
    stride = g.rng.randint(1, 2)
    b = g.like(a, [*window, g.sizes(a)[-1], g.rng.randint(1, 2)])
    return f"tf.nn.depthwise_conv2d({a}, {b}, strides=[1, {stride}, {stride}, 1], padding={_padding(g)!r})"


@op
def transposed(g):
    a = _image(g, 2)
    n, h, w, c = g.sizes(a)
    b = g.like(a, [2, 3, 2, c])
    return f"tf.nn.conv2d_transpose({a}, {b}, [{n}, {2 * h}, {2 * w}, 2], strides=2, padding='SAME')"


@op
def pool(g):
    spatial = g.rng.choice([1, 2, 2, 3])
    a = _image(g, spatial)
    size = min(g.rng.randint(1, 3), *g.sizes(a)[1:-1])
    kind = g.rng.choice(["max", "avg"])
    return f"tf.nn.{kind}_pool{spatial}d({a}, ksize={size}, strides={g.rng.randint(1, 2)}, padding={_padding(g)!r})"


@op
def softmax(g):
    a = g.float(least=1)
    return f"tf.nn.{g.rng.choice(['softmax', 'log_softmax'])}({a}, axis={g.axis(a)})"


@op
def cross_entropy(g):
    a = g.full(least=1, fits=lambda sizes: 0 not in sizes)
    if g.flip():
        labels = g.indices(g.sizes(a)[-1], g.sizes(a)[:-1])
        return f"tf.nn.sparse_softmax_cross_entropy_with_logits(labels={labels}, logits={a})"
    b = g.like(a, g.sizes(a))
    if g.flip():
        return f"tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax({b}), logits={a})"
    return f"tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid({b}), logits={a})"


@op
def moments(g):
    a = g.full(least=1)
    return f"tf.nn.moments({a}, axes=[{g.axis(a)}], keepdims={g.flip()})[{g.rng.randrange(2)}]"


@op
def normalized(g):
    a = g.full(least=1)
    some = [g.like(a, g.sizes(a)[-1:]) for _ in range(4)]
    return f"tf.nn.batch_normalization({a}, {some[0]}, tf.square({some[1]}), {some[2]}, {some[3]}, 1e-3)"


@op
def bias_add(g):
    a = g.any(values.FLOATS, least=2)
    return f"tf.nn.bias_add({a}, {g.like(a, g.sizes(a)[-1:])})"


@op
def rearranged(g):
    a = g.any(["float32", "float64"], rank=4, fits=lambda s: 0 not in s and s[1] % 2 == s[2] % 2 == 0)
    if g.sizes(a)[3] % 4 == 0 and g.flip():
        return f"tf.nn.depth_to_space({a}, 2)"
    return f"tf.nn.space_to_depth({a}, 2)"


@op
def l2_loss(g):
    return f"tf.nn.l2_loss({g.full()})"


@op
def lookup(g):
    a = g.any(["float32"], least=1, fits=lambda sizes: sizes[0] > 0)
    return f"tf.nn.embedding_lookup({a}, {g.indices(g.sizes(a)[0], g.shape(g.rng.choice([1, 2])))})"


@op
def crelu(g):
    return f"tf.nn.crelu({g.full(least=1)})"


@op
def frame(g):
    a = g.full(least=1, fits=lambda sizes: sizes[-1] > 2)
    return f"tf.signal.frame({a}, {g.rng.randint(1, 3)}, {g.rng.randint(1, 3)}, pad_end={g.flip()})"


@op
def dense(g):
    """A layer, as most programs have them."""
    a = g.any(["float32"], rank=2, fits=lambda sizes: 0 not in sizes)
    w = g.like(a, [g.sizes(a)[1], g.rng.choice([1, 4, 16])])
    h = g.put("matmul", f"tf.matmul({a}, {w})")
    return f"tf.nn.{g.rng.choice(['relu', 'tanh', 'sigmoid'])}({h} + {g.like(a, g.sizes(h)[-1:])})"


@op
def attention(g):
    a = g.any(["float32"], rank=3, fits=lambda sizes: 0 not in sizes)
    k, v = g.like(a, g.sizes(a)), g.like(a, g.sizes(a))
    scores = g.put("matmul", f"tf.matmul({a}, {k}, transpose_b=True) * 0.3")
    return f"tf.matmul(tf.nn.softmax({scores}), {v})"
