"""The table of ops: elementwise, reductions, shapes, indexing, sorting, linear algebra, random numbers. An entry draws its
inputs and writes its text."""

import numpy as np

from . import values
from .draw import Refused

TABLE = []
ELEMENTWISE = set()


def op(function):
    """Puts an entry into the table, under its name."""
    def entry(g):
        made = function(g)
        return (function.__name__.strip("_"), made) if isinstance(made, str) else made

    TABLE.append(entry)
    return entry


def _elementwise(names, draw):
    ELEMENTWISE.update(name.rpartition(".")[2] for name in names.split())
    for name in names.split():
        def entry(g, name=name):
            return (name.rpartition(".")[2], f"tf.{name}({draw(g)})")

        TABLE.append(entry)


def _pair(kinds):
    def draw(g):
        a = g.any(kinds)
        b = g.like(a)
        return f"{a}, {b}" if g.flip() else f"{b}, {a}"

    return draw


_NUMBERS = values.FLOATS + values.INTEGERS
_elementwise("abs square sign negative math.sign", lambda g: g.number())
_elementwise(
    "exp math.log math.log1p math.expm1 sqrt math.rsqrt tanh sigmoid sin cos tan asin acos atan sinh cosh asinh acosh atanh "
    "floor math.ceil round math.rint math.erf math.erfc math.lgamma math.digamma math.reciprocal math.softplus "
    "math.log_sigmoid math.is_nan math.is_inf math.is_finite nn.relu nn.relu6 nn.elu nn.selu nn.gelu nn.silu "
    "nn.softsign math.erfinv math.ndtri",
    lambda g: g.float())
_elementwise("add subtract multiply maximum minimum", _pair(_NUMBERS))
_elementwise("math.floordiv math.floormod math.squared_difference", _pair(_NUMBERS))
_elementwise("pow math.atan2 divide math.divide_no_nan math.multiply_no_nan math.xlogy math.xdivy math.xlog1py",
             _pair(values.FLOATS))
_elementwise("less less_equal greater greater_equal", _pair(_NUMBERS))
_elementwise("equal not_equal", _pair(values.DTYPES))
_elementwise("bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor",
             _pair(values.INTEGERS))
_elementwise("bitwise.invert", lambda g: g.integer())
_elementwise("logical_and logical_or math.logical_xor", _pair(["bool"]))
_elementwise("logical_not", lambda g: g.boolean())


@op
def shift(g):
    # By less than the width: further has no value that all agree on.
    a = g.integer()
    dtype = g.dtype(a)
    return f"tf.bitwise.{g.rng.choice(['left', 'right'])}_shift({a}, tf.bitwise.bitwise_and({g.like(a)}, tf.constant(7, {dtype!r})))"


@op
def leaky_relu(g):
    return f"tf.nn.leaky_relu({g.float()}, alpha=0.25)"


@op
def operator(g):
    a = g.number()
    return f"{a} {g.rng.choice(['+', '-', '*'])} {g.like(a)}"


@op
def scalar(g):
    a = g.number()
    number = g.rng.choice([0, 1, 2, 3]) if g.dtype(a) in values.INTEGERS else g.rng.choice([0.0, 1.0, -1.0, 2.0, 0.5, 3.25])
    return g.rng.choice([f"{a} {{}} {number}", f"{number} {{}} {a}"]).format(g.rng.choice(["+", "-", "*"]))


@op
def power(g):
    return f"tf.pow({g.float()}, {g.rng.choice([0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -2.0])})"


@op
def clip_by_value(g):
    return f"tf.clip_by_value({g.float()}, -1.0, 1.5)"


@op
def cast(g):
    return g.cast_text(g.any(), g.rng.choice(values.DTYPES))


@op
def where(g):
    a = g.any()
    b = g.like(a)
    sizes = g.sizes(a)[g.rng.randint(0, g.rank(a)):] if g.flip() else g.sizes(a)
    return f"tf.where({g.like(g.boolean(), sizes)}, {a}, {b})"


# -- reductions ---------------------------------------------------------------------------------------------------


def _reductions(names, draw):
    for name in names.split():
        def entry(g, name=name):
            a = draw(g)
            return (name.rpartition(".")[2], f"tf.{name}({a}, axis={g.axes(a)}, keepdims={g.flip()})")

        TABLE.append(entry)


_reductions("reduce_sum reduce_prod reduce_max reduce_min", lambda g: g.number())
_reductions("reduce_sum reduce_mean math.reduce_variance math.reduce_std reduce_logsumexp math.reduce_euclidean_norm",
            lambda g: g.float())
_reductions("reduce_mean", lambda g: g.integer())
_reductions("reduce_any reduce_all", lambda g: g.boolean())
_reductions("math.count_nonzero", lambda g: g.any())


@op
def arg_extreme(g):
    a = g.number(least=1, fits=lambda sizes: 0 not in sizes)
    return f"tf.{g.rng.choice(['argmax', 'argmin'])}({a}, axis={g.axis(a)}, output_type={g.rng.choice(['int32', 'int64'])!r})"


@op
def cumulative(g):
    a = g.number(least=1)
    name = g.rng.choice(["cumsum", "cumprod"])
    return f"tf.math.{name}({a}, axis={g.axis(a)}, exclusive={g.flip()}, reverse={g.flip()})"


@op
def cumulative_logsumexp(g):
    a = g.any(["float32", "float64"], least=1)
    return f"tf.math.cumulative_logsumexp({a}, axis={g.axis(a)}, exclusive={g.flip()}, reverse={g.flip()})"


@op
def norm(g):
    a = g.full(least=1)
    return f"tf.norm({a}, ord={g.rng.choice([1, 2, chr(39) + 'euclidean' + chr(39), 'np.inf'])}, axis={g.axis(a)}, keepdims={g.flip()})"


@op
def l2_normalize(g):
    a = g.full(least=1)
    return f"tf.math.l2_normalize({a}, axis={g.axis(a)})"


# -- shapes -------------------------------------------------------------------------------------------------------


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


# -- indexing -----------------------------------------------------------------------------------------------------


@op
def item(g):
    a = g.any(least=1)
    parts = []
    for n in g.sizes(a)[:g.rng.randint(1, g.rank(a))]:
        kind = g.rng.randrange(6)
        ends = [g.rng.choice(["", str(g.rng.randint(-n - 1, n + 1))]) for _ in range(2)]
        if kind == 0 and n:
            parts.append(str(g.rng.randint(-n, n - 1)))
        elif kind == 1:
            parts.append("tf.newaxis, :")
        elif kind == 2:
            parts.append(":" + ends[1])
        elif kind == 3:
            parts.append(ends[0] + ":")
        else:
            parts.append(f"{ends[0]}:{ends[1]}:{g.rng.choice([-3, -2, -1, -1, 1, 2, 3])}")
    if g.rng.random() < 0.2:
        parts.insert(0, "...")
        parts = [p for p in parts if "newaxis" not in p]
    return f"{a}[{', '.join(parts)}]"


@op
def slice_(g):
    a = g.any(least=1)
    begin = [g.rng.randint(0, n) for n in g.sizes(a)]
    return f"tf.slice({a}, {begin}, {[g.rng.choice([-1, g.rng.randint(0, n - b)]) for n, b in zip(g.sizes(a), begin)]})"


@op
def gather(g):
    a = g.any(least=1)
    axis = g.axis(a)
    return f"tf.gather({a}, {g.indices(g.sizes(a)[axis], g.shape(g.rng.choice([0, 1, 1, 2])))}, axis={axis})"


@op
def gather_batched(g):
    a = g.any(least=2)
    sizes = g.sizes(a)
    return f"tf.gather({a}, {g.indices(sizes[1], [sizes[0], g.rng.randint(1, 4)])}, axis=1, batch_dims=1)"


def _places(g, sizes, count, distinct=False):
    depth = g.rng.randint(1, len(sizes))
    total = int(np.prod(sizes[:depth]))
    if total == 0:
        raise Refused("nothing to index")
    count = min(count, total) if distinct else count
    flat = g.rng.sample(range(total), count) if distinct else [g.rng.randrange(total) for _ in range(count)]
    rows = np.stack(np.unravel_index(np.array(flat, "int64"), sizes[:depth]), axis=-1)
    return g.argument("int32", rows.shape, rows.astype("int32")), [count, *sizes[depth:]]


@op
def gather_nd(g):
    a = g.any(least=1)
    return f"tf.gather_nd({a}, {_places(g, g.sizes(a), g.rng.randint(1, 5))[0]})"


@op
def scatter_nd(g):
    a = g.number(least=1, fits=lambda sizes: 0 not in sizes)
    places, shape = _places(g, g.sizes(a), g.rng.randint(1, 5))
    return f"tf.scatter_nd({places}, {g.like(a, shape)}, {g.sizes(a)})"


@op
def tensor_scatter(g):
    a = g.number(least=1)
    name = g.rng.choice(["update", "add", "sub", "max", "min"])
    places, shape = _places(g, g.sizes(a), g.rng.randint(1, 5), distinct=name == "update")
    return f"tf.tensor_scatter_nd_{name}({a}, {places}, {g.like(a, shape)})"


@op
def one_hot(g):
    depth = g.rng.randint(1, 6)
    return f"tf.one_hot({g.indices(depth + 1, g.shape(g.rng.choice([0, 1, 2])))}, {depth}, dtype={g.rng.choice(['float32', 'int32', 'bool'])!r})"


@op
def segment(g):
    a = g.any(["float32", "float64", "int32", "int64"], least=1)
    n = g.sizes(a)[0]
    if g.flip():
        ids = g.argument("int32", [n], np.array([g.rng.randrange(-1, 4) for _ in range(n)], "int32"))
        return f"tf.math.unsorted_segment_{g.rng.choice(['sum', 'max', 'min', 'mean'])}({a}, {ids}, 4)"
    _data_decide(g)
    ids = g.argument("int32", [n], np.sort(np.array([g.rng.randrange(4) for _ in range(n)], "int32")))
    return f"tf.math.segment_{g.rng.choice(['sum', 'max', 'min', 'mean'])}({a}, {ids})"


def _data_decide(g):
    if not g.data_decide:
        raise Refused("data would decide a size")


@op
def masked(g):
    _data_decide(g)
    a = g.any(least=1)
    return f"tf.boolean_mask({a}, {g.like(g.boolean(), g.sizes(a)[:1])})"


@op
def nonzero(g):
    _data_decide(g)
    return f"tf.where({g.boolean(least=1)})"


@op
def unique(g):
    _data_decide(g)
    return f"tf.unique({g.integer(rank=1)})[{g.rng.randrange(2)}]"


@op
def bincount(g):
    return f"tf.math.bincount({g.indices(6, [g.rng.randint(1, 20)])}, minlength=6, maxlength=6)"


@op
def sequence_mask(g):
    return f"tf.sequence_mask({g.indices(6, g.shape(1))}, {g.rng.randint(1, 6)})"


# -- sorting ------------------------------------------------------------------------------------------------------


@op
def sort(g):
    a = g.number(least=1)
    return f"tf.sort({a}, axis={g.axis(a)}, direction={g.rng.choice(['ASCENDING', 'DESCENDING'])!r})"


@op
def argsort(g):
    a = g.number(least=1)
    return f"tf.argsort({a}, axis={g.axis(a)}, direction={g.rng.choice(['ASCENDING', 'DESCENDING'])!r}, stable=True)"


@op
def top_k(g):
    a = g.number(least=1, fits=lambda sizes: sizes[-1] > 0)
    return f"tf.math.top_k({a}, k={g.rng.randint(0, g.sizes(a)[-1])})[{g.rng.randrange(2)}]"


@op
def searchsorted(g):
    a = g.any(["float32", "float64", "int32", "int64"], rank=1)
    return f"tf.searchsorted(tf.sort({a}), {g.like(a, [g.rng.randint(0, 5)])}, side={g.rng.choice(['left', 'right'])!r})"


# -- linear algebra -----------------------------------------------------------------------------------------------


@op
def matmul(g):
    a = g.any(values.FLOATS + ["int32"], least=2)
    *batch, m, k = g.sizes(a)
    turned, n = [g.flip(), g.flip()], g.rng.choice([1, 2, 5, 17])
    inner = m if turned[0] else k
    b = g.like(a, [*(batch if g.flip() else []), *([n, inner] if turned[1] else [inner, n])])
    return f"tf.matmul({a}, {b}, transpose_a={turned[0]}, transpose_b={turned[1]})"


@op
def einsum(g):
    a = g.any(["float32", "float64"], rank=2)
    m, k = g.sizes(a)
    equation, shape = g.rng.choice([("ij,jk->ik", [k, 3]), ("ij,ij->i", [m, k]), ("ij,kj->ki", [2, k]), ("ij,ij->", [m, k]),
                                    ("ij,k->ijk", [3]), ("ij,jk->k", [k, 2])])
    return f"tf.einsum({equation!r}, {a}, {g.like(a, shape)})"


@op
def tensordot(g):
    a = g.any(["float32", "float64"], least=1)
    return f"tf.tensordot({a}, {g.like(a, [g.sizes(a)[-1], 2])}, 1)"


def _square(g):
    a = g.full(least=2, fits=lambda sizes: 0 not in sizes)
    *batch, m, n = g.sizes(a)
    n = min(m, n, 6)
    return g.put("square", f"tf.tanh(tf.where(tf.math.is_finite({a}), {a}, tf.zeros_like({a})))[..., :{n}, :{n}] "
                           f"+ 3.0 * tf.eye({n}, dtype={g.dtype(a)!r})")


@op
def factors(g):
    # Factors are unique up to signs alone: what is compared is a product that they are the factors of.
    a = _square(g)
    good = f"(tf.matmul({a}, {a}, transpose_b=True) + tf.eye({g.sizes(a)[-1]}, dtype={g.dtype(a)!r}))"
    return g.rng.choice([
        f"tf.linalg.det({a})", f"tf.linalg.inv({a})", f"tf.linalg.slogdet({a})[1]", f"tf.linalg.cholesky({good})",
        f"tf.linalg.eigvalsh({good})", f"tf.linalg.svd({a}, compute_uv=False)", f"tf.linalg.logdet({good})",
        f"tf.abs(tf.linalg.qr({a})[1])", f"tf.linalg.trace({a})", f"tf.linalg.eigh({good})[0]"])


@op
def solve(g):
    a = _square(g)
    b = g.like(a, [*g.sizes(a)[:-1], g.rng.randint(1, 3)])
    return g.rng.choice([f"tf.linalg.solve({a}, {b}, adjoint={g.flip()})",
                         f"tf.linalg.triangular_solve({a}, {b}, lower={g.flip()}, adjoint={g.flip()})"])


# -- random numbers -----------------------------------------------------------------------------------------------


@op
def stateless(g):
    seed, shape = [g.rng.randrange(100), g.rng.randrange(100)], g.shape()
    return g.rng.choice([
        f"tf.random.stateless_uniform({shape}, {seed}, dtype={g.rng.choice(['float32', 'float64'])!r})",
        f"tf.random.stateless_uniform({shape}, {seed}, minval=-3, maxval=9, dtype='int32')",
        f"tf.random.stateless_normal({shape}, {seed})", f"tf.random.stateless_truncated_normal({shape}, {seed})"])


@op
def stateless_of_a_seed(g):
    return f"tf.random.stateless_normal({g.shape()}, {g.indices(50, [2])})"


@op
def stop_gradient(g):
    return f"tf.stop_gradient({g.float()})"


@op
def identity(g):
    return f"tf.identity({g.any()})"
