"""The table of elementwise ops and reductions."""

from . import values
from .table import Table

TABLE = Table()
op = TABLE.op
ELEMENTWISE = set()


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
