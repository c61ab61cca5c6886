"""The table of ops that index and sort."""

import numpy as np

from .draw import Refused
from .table import Table

TABLE = Table()
op = TABLE.op


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
