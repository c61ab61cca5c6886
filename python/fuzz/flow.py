"""The table of loops and branches, with random bodies: ``map_fn``, ``vectorized_map``, ``scan``, folds, ``while_loop``,
branches, and loops and branches that AutoGraph converts."""

from . import values
from .draw import Refused

TABLE = []


def op(function):
    def entry(g):
        if g.depth > 1 or g.data_decide:
            raise Refused("no loop here")
        made = function(g)
        return (function.__name__.strip("_"), *made)

    TABLE.append(entry)
    return entry


def _steps(g):
    return g.rng.randint(1, 5)


def _last(g, named):
    """The last value that the body made, or a parameter; often the front part of it, which lies where the whole does."""
    made = [node.name for node in g.nodes]
    last = made[-1] if made else named[0]
    if g.rank(last) and g.sizes(last)[0] > 1 and g.flip():
        return [g.put("front", f"{last}[{g.rng.choice(['0', ':1', ':-1'])}]")]
    return [last]


def _of_type(dtype, sizes):
    """A result of a given type: one that there is, or the first parameter with what was made mixed in."""
    def finish(g, named):
        made = [node.name for node in g.nodes]
        fit = [name for name in made if g.known[name] == (dtype, sizes)]
        if fit:
            return [fit[-1]]
        state, last = named[0], made[-1] if made else named[-1]
        if g.known[state] != (dtype, sizes):
            raise Refused("no result of the type")
        if dtype == "bool":
            text = f"tf.math.logical_xor({state}, tf.reduce_any(tf.cast({last}, 'bool')))"
        elif dtype in values.INTEGERS and g.dtype(last) in values.FLOATS:
            text = f"{state} + tf.cast(tf.reduce_any({last} > 0), {dtype!r})"
        else:
            text = f"{state} + tf.cast(tf.reduce_sum(tf.cast({last}, {dtype!r})), {dtype!r}) * tf.constant({1}, {dtype!r})"
        return [g.put("mixed", text)]

    return finish


def _rows(g):
    return g.any(least=1, fits=lambda sizes: 0 < sizes[0] < 9)


@op
def mapped(g):
    name = g.rng.choice(["map_fn", "map_fn", "vectorized_map"])
    a = _rows(g)
    if g.rng.random() < 0.25:
        b = g.any(least=1, fits=lambda sizes: sizes[0] == g.sizes(a)[0])
        inner = g.body([g.scope[a][0], g.scope[b][0]], _steps(g), _last)
        made, given = g.dtype_of(inner), f"lambda pair: {inner.name}(*pair), ({a}, {b})"
    else:
        inner = g.body([g.scope[a][0]], _steps(g), _last)
        made, given = g.dtype_of(inner), f"{inner.name}, {a}"
    signature = f", fn_output_signature=tf.{made}" if name == "map_fn" else ""
    return f"tf.{name}({given}{signature})", [inner]


@op
def scanned(g):
    a = _rows(g)
    name = g.rng.choice(["scan", "scan", "foldl", "foldr"])
    reverse = f", reverse={g.flip()}" if name == "scan" else ""
    if g.flip():
        start = g.any()
        inner = g.body([g.scope[start], g.scope[a][0]], _steps(g), _of_type(*g.known[start]))
        return f"tf.{name}({inner.name}, {a}, initializer={start}{reverse})", [inner]
    inner = g.body([g.scope[a][0], g.scope[a][0]], _steps(g), _of_type(g.dtype(a), g.sizes(a)[1:]))
    return f"tf.{name}({inner.name}, {a}{reverse})", [inner]


@op
def repeated(g):
    a = g.any()
    inner = g.body([g.scope[a]], _steps(g), _of_type(*g.known[a]))
    most = g.rng.choice(["", ", maximum_iterations=3"])
    count = g.rng.choice([str(g.rng.randint(0, 5)), g.indices(5, [])])
    return (f"tf.while_loop(lambda i, s: i < tf.cast({count}, 'int32'), lambda i, s: (i + 1, {inner.name}(s)), "
            f"[tf.constant(0), {a}]{most})[1]"), [inner]


@op
def until(g):
    """The data decide how many iterations there are."""
    a = g.any(["float32"])
    inner = g.body([g.scope[a]], _steps(g), _of_type(*g.known[a]))
    return (f"tf.while_loop(lambda i, s: tf.logical_and(i < 4, tf.reduce_sum(s) < 9.0), lambda i, s: (i + 1, {inner.name}(s)), "
            f"[tf.constant(0), {a}])[1]"), [inner]


@op
def branched(g):
    a = g.any()
    pick = g.any(["float32"])
    one = g.body([g.scope[a]], _steps(g), _of_type(*g.known[a]))
    two = g.body([g.scope[a]], _steps(g), _of_type(*g.known[a]))
    lambdas = f"lambda: {one.name}({a}), lambda: {two.name}({a})"
    kind = g.rng.randrange(3)
    if kind == 0:
        return f"tf.switch_case({g.indices(3, [])}, [{lambdas}])", [one, two]
    if kind == 1:
        return f"tf.case([(tf.reduce_sum({pick}) > 0.5, lambda: {one.name}({a}))], default=lambda: {two.name}({a}))", [one, two]
    return f"tf.cond(tf.reduce_sum({pick}) > 0.5, {lambdas})", [one, two]


@op
def converted_loop(g):
    """A Python loop over a tensor: AutoGraph's in a function, Python's own otherwise."""
    a = g.any()
    count = g.rng.choice([str(g.rng.randint(0, 4)), g.indices(4, [])])
    kind = g.rng.randrange(3)
    header = f"for i in tf.range({count}):"
    if kind == 1:
        header = f"for i in {_rows(g)}:"
    inner = g.body([g.scope[a]], _steps(g), _of_type(*g.known[a]), header)
    return f"{inner.name}({a})", [inner]


@op
def nested_function(g):
    a = g.any()
    inner = g.body([g.scope[a]], _steps(g), _last)
    wrapper = g.rng.choice(["tf.function", "tf.recompute_grad"])
    return f"{wrapper}({inner.name})({a})", [inner]
