"""The table of linear algebra and random numbers."""

from . import values
from .table import Table

TABLE = Table()
op = TABLE.op


@op
def matmul(g):
    a = g.any(values.FLOATS + ["int32"], least=2)
    *batch, m, k = g.sizes(a)
    transposed, n = [g.flip(), g.flip()], g.rng.choice([1, 2, 5, 17])
    inner = m if transposed[0] else k
    b = g.like(a, [*(batch if g.flip() else []), *([n, inner] if transposed[1] else [inner, n])])
    return f"tf.matmul({a}, {b}, transpose_a={transposed[0]}, transpose_b={transposed[1]})"


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
