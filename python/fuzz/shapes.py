"""The table of ops on shapes, and of tensors that are made of a shape."""

from . import values
from .table import Table

TABLE = Table()
op = TABLE.op


@op
def reshape(g):
    a = g.any()
    sizes = g.factored(g.sizes(a), g.rng.choice([1, 1, 2, 2, 3]))
    if g.flip() and 0 not in sizes:
        sizes[g.rng.randrange(len(sizes))] = -1
    return f"tf.reshape({a}, {sizes})"


@op
def transpose(g):
    a = g.any(least=1)
    return f"tf.transpose({a}, {g.rng.sample(range(g.rank(a)), g.rank(a))})"


@op
def matrix_transpose(g):
    return f"tf.linalg.matrix_transpose({g.any(least=2)})"


@op
def expand_dims(g):
    a = g.any()
    return f"tf.expand_dims({a}, {g.rng.randint(-g.rank(a) - 1, g.rank(a))})"


@op
def squeeze(g):
    a = g.any(least=1, fits=lambda sizes: 1 in sizes)
    axis = g.sizes(a).index(1)
    return f"tf.squeeze({a}, axis={g.rng.choice([None, axis, [axis - g.rank(a)]])})"


@op
def broadcast_to(g):
    a = g.any()
    sizes = [g.rng.choice([2, 3]) if n == 1 else n for n in g.sizes(a)]
    return f"tf.broadcast_to({a}, {[g.rng.choice([1, 2, 3]) for _ in range(g.rng.randint(0, 2))] + sizes})"


@op
def tile(g):
    a = g.any(least=1)
    return f"tf.tile({a}, {[g.rng.choice([0, 1, 1, 2, 3]) if g.flip() else 1 for _ in g.sizes(a)]})"


@op
def repeat(g):
    a = g.any(least=1)
    return f"tf.repeat({a}, {g.rng.choice([1, 2, 3])}, axis={g.axis(a)})"


@op
def pad(g):
    a = g.any(least=1, fits=lambda sizes: 0 not in sizes)
    mode = g.rng.choice(["CONSTANT", "REFLECT", "SYMMETRIC"])
    most = {"CONSTANT": lambda n: 3, "REFLECT": lambda n: n - 1, "SYMMETRIC": lambda n: n}[mode]
    edges = [[g.rng.randint(0, min(3, most(n))), g.rng.randint(0, min(3, most(n)))] for n in g.sizes(a)]
    return f"tf.pad({a}, {edges}, mode={mode!r})"


@op
def concat(g):
    a = g.any(least=1)
    axis = g.axis(a)
    parts = [a]
    for _ in range(g.rng.randint(1, 3)):
        sizes = list(g.sizes(a))
        if g.flip():
            sizes[axis] = g.rng.choice([0, 1, 2, 5])
        parts.append(g.like(a, sizes))
    g.rng.shuffle(parts)
    return f"tf.concat([{', '.join(parts)}], axis={axis})"


@op
def stack(g):
    a = g.any()
    parts = [a, *(g.like(a, g.sizes(a)) for _ in range(g.rng.randint(0, 2)))]
    return f"tf.stack([{', '.join(parts)}], axis={g.rng.randint(-g.rank(a) - 1, g.rank(a))})"


@op
def unstack(g):
    a = g.any(least=1, fits=lambda sizes: 0 < sizes[0] < 9)
    return f"tf.unstack({a})[{g.rng.randrange(g.sizes(a)[0])}]"


@op
def split(g):
    a = g.any(least=1)
    axis = g.axis(a)
    n = g.sizes(a)[axis]
    first = g.rng.randint(0, n)
    return f"tf.split({a}, {[first, n - first]}, axis={axis})[{g.rng.randrange(2)}]"


@op
def reverse(g):
    a = g.any(least=1)
    return f"tf.reverse({a}, axis={sorted(g.rng.sample(range(g.rank(a)), g.rng.randint(1, g.rank(a))))})"


@op
def roll(g):
    a = g.any(least=1)
    return f"tf.roll({a}, shift={g.rng.randint(-4, 9)}, axis={g.axis(a)})"


@op
def meshgrid(g):
    a = g.any(rank=1)
    return f"tf.meshgrid({a}, {g.like(a, [g.rng.choice([1, 2, 5])])}, indexing={g.rng.choice(['xy', 'ij'])!r})[{g.rng.randrange(2)}]"


@op
def shape_of(g):
    return f"tf.{g.rng.choice(['shape', 'size', 'rank'])}({g.any()})"


@op
def made(g):
    shape = g.shape()
    return f"tf.{g.rng.choice(['ones', 'zeros'])}({shape}, {g.rng.choice(values.DTYPES)!r})"


@op
def filled(g):
    return f"tf.fill({g.shape()}, {g.any(rank=0)})"


@op
def range_(g):
    return f"tf.range({g.rng.randint(-3, 3)}, {g.rng.randint(0, 20)}, {g.rng.randint(1, 3)}, dtype={g.rng.choice(['int32', 'int64', 'float32'])!r})"


@op
def linspace(g):
    return f"tf.linspace(-1.0, {g.rng.choice(['2.0', g.any(['float32'], rank=0)])}, {g.rng.randint(1, 9)})"


@op
def band_part(g):
    return f"tf.linalg.band_part({g.number(least=2)}, {g.rng.randint(-1, 3)}, {g.rng.randint(-1, 3)})"


@op
def diagonal(g):
    if g.flip():
        return f"tf.linalg.diag_part({g.number(least=2)})"
    return f"tf.linalg.diag({g.number(least=1, fits=lambda sizes: sizes[-1] < 20)}, k={g.rng.randint(-1, 1)})"
