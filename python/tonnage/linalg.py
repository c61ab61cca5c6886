"""``tf.linalg``: products of matrices, factorizations, diagonals."""

from math import prod as _prod

from . import _tonnage as _t
from ._array import eye, transpose  # noqa: F401
from .math import l2_normalize  # noqa: F401
from ._notices import ignores as _ignores
from ._shape import _lengths_of


def matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, a_is_sparse=False,
           b_is_sparse=False, output_type=None, grad_a=False, grad_b=False, name=None):
    """The product of matrices, of batches of them too.

    >>> tf.matmul([[1.0, 2.0]], [[3.0], [4.0]]).numpy().tolist()
    [[11.0]]
    """
    a = _t.to_tensor(a, None, getattr(b, "dtype", None))
    b = _t.to_tensor(b, None, a.dtype)
    if a.ndim < 2 or b.ndim < 2:
        from .errors import InvalidArgumentError

        raise InvalidArgumentError(None, None, f"matmul: inputs must have rank 2 or more, got shapes {a.shape} and "
                                               f"{b.shape}; use tf.tensordot or tf.linalg.matvec for vectors")
    if a_is_sparse or b_is_sparse or grad_a or grad_b:
        from ._notices import no_effect

        no_effect("tf.matmul", a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, grad_a=grad_a, grad_b=grad_b)
    if a.dtype != b.dtype:
        return a @ b  # which says so
    if output_type is not None and a.dtype != output_type:
        # Sums are of the dtype that is asked for: products of small integers do not fit into theirs.
        a, b = _t.cast(a, output_type), _t.cast(b, output_type)
    return _t.mat_mul(a, b, bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b))


def matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False, name=None):
    """The product of a matrix and a vector."""
    b = _t.expand_dims(_t.to_tensor(b, None, getattr(a, "dtype", None)), -1)
    made = matmul(a, b, transpose_a=transpose_a or adjoint_a, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse)
    return _t.squeeze(made, -1)


def tensordot(a, b, axes, name=None):
    """Sums of products along some axes of both."""
    a, b = _t.to_tensor(a, None, None), _t.to_tensor(b, None, getattr(a, "dtype", None))
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: {axes} axes of tensors of shapes {a.shape} and {b.shape}")
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = axes
        left = [left] if isinstance(left, int) else list(left)
        right = [right] if isinstance(right, int) else list(right)
    return _t.tensordot(a, b, [int(i) for i in left], [int(i) for i in right])


@_ignores("einsum", "optimize")
def einsum(equation, *inputs, optimize="greedy", name=None):
    """Sums of products, as Einstein wrote them. The order of several is found here, whatever ``optimize`` says.

    >>> tf.einsum("ij,kj->ik", [[1.0, 2.0]], [[3.0, 4.0]]).numpy().tolist()
    [[11.0]]
    """
    return _t.einsum(equation, list(inputs))


def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None):
    """The length of vectors along an axis, or of all elements; along two axes the norm of matrices.

    >>> [float(tf.norm([[1.0, 2.0], [3.0, 4.0]], ord, axis=[0, 1])) for ord in (1, float("inf"))]
    [6.0, 7.0]
    """
    if ord in ("euclidean", "fro"):
        return _t.norm(tensor, axis, bool(keepdims))
    if isinstance(axis, (list, tuple)) and len(axis) == 2:
        return _matrix_norm(tensor, ord, axis, bool(keepdims))
    if ord == 2:
        return _t.norm(tensor, axis, bool(keepdims))
    if ord == float("inf"):
        return _t.reduce_max(abs(_t.to_tensor(tensor, None, None)), axis, bool(keepdims))
    made = _t.norm_of_power(tensor, float(ord), axis)
    if not keepdims:
        return made
    lengths = _t.reduce_sum(tensor, axis, True).lengths
    return _t.reshape(made, lengths)


def _matrix_norm(x, ord, axes, keepdims):
    """The norm that vectors of the same ``ord`` give to matrices."""
    x = _t.to_tensor(x, None, None)
    if ord not in (1, 2, float("inf")):
        raise ValueError(f"'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], got {ord}")
    rows, columns = (int(a) + x.ndim if int(a) < 0 else int(a) for a in axes)
    if rows == columns or not all(0 <= a < x.ndim for a in (rows, columns)):
        raise ValueError(f"'axis' must be None, an integer, or two different axes of a tensor of rank {x.ndim}, got {axes}")
    if ord == 2:
        rest = [a for a in range(x.ndim) if a not in (rows, columns)]
        made = _t.reduce_max(_t.svd(_t.transpose(x, [*rest, rows, columns]))[1], -1, False)
        if keepdims:
            for axis in sorted((rows, columns)):
                made = _t.expand_dims(made, axis)
        return made
    along, across = (rows, columns) if ord == 1 else (columns, rows)
    made = _t.reduce_max(_t.reduce_sum(abs(x), along, True), across, True)
    return made if keepdims else _t.squeeze(made, [rows, columns])


def cholesky(input, name=None):
    """The lower factor of a positive definite matrix."""
    return _t.cholesky(input)


def cholesky_solve(chol, rhs, name=None):
    """Solves a system by its Cholesky factor."""
    return _t.cholesky_solve(chol, rhs)


def triangular_solve(matrix, rhs, lower=True, adjoint=False, name=None):
    """Solves a triangular system."""
    if lower:
        return _t.triangular_solve(matrix, rhs, bool(adjoint))
    matrix = _t.to_tensor(matrix, None, None)
    order = [*range(matrix.ndim - 2), matrix.ndim - 1, matrix.ndim - 2]
    return _t.triangular_solve(_t.transpose(matrix, order), rhs, not adjoint)


def solve(matrix, rhs, adjoint=False, name=None):
    """Solves a linear system."""
    if adjoint:
        matrix = matrix_transpose(matrix)
    return _t.solve(matrix, rhs)


@_ignores("lstsq", "fast")
def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    """The least squares solution."""
    if l2_regularizer:
        matrix = _t.to_tensor(matrix, None, None)
        return _t.lstsq_regularized(matrix, _t.to_tensor(rhs, None, matrix.dtype), float(l2_regularizer))
    return _t.lstsq(matrix, rhs)


def inv(input, adjoint=False, name=None):
    """The inverse of a matrix."""
    return _t.inv(matrix_transpose(input) if adjoint else input)


def det(input, name=None):
    """The determinant."""
    return _t.det(input)


def slogdet(input, name=None):
    """Sign and logarithm of the determinant."""
    return _t.slogdet(input)


def logdet(matrix, name=None):
    """The logarithm of the determinant of a positive definite matrix; NaN where it is negative."""
    return _t.logdet(matrix)


def qr(input, full_matrices=False, name=None):
    """An orthogonal matrix and an upper one."""
    input = _t.to_tensor(input, None, None)
    if not full_matrices or None not in input.lengths[-2:] and input.lengths[-2] <= input.lengths[-1]:
        return _t.qr(input)
    # With the unit matrix beside it there are columns for all directions.
    rows, columns = _lengths_of(input)[-2:]
    unit = _t.broadcast_to(_t.eye([rows, rows], input.dtype), [*_lengths_of(input)[:-2], rows, rows])
    q, r = _t.qr(_t.concat([input, unit], -1))
    return q, r[..., :columns]


def eigh(tensor, name=None):
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    return _t.eigh(tensor)


def eigvalsh(tensor, name=None):
    """Eigenvalues of a symmetric matrix."""
    return _t.eigh(tensor)[0]


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    """Singular values ``s``, and ``u`` and ``v`` with ``u @ diag(s) @ transpose(v)`` the matrix."""
    u, s, v = _t.svd(tensor)
    if not compute_uv:
        return s
    return (s, _completed(u), _completed(v)) if full_matrices else (s, u, v)


def _completed(basis):
    """Orthogonal columns, with more of them up to a square."""
    if basis.lengths[-2] == basis.lengths[-1] is not None:
        return basis
    count = _lengths_of(basis)[-1]
    return _t.concat([basis, qr(basis, full_matrices=True)[0][..., count:]], -1)


def matrix_rank(a, tol=None, validate_args=False, name=None):
    """How many singular values are larger than ``tol``; by default than what rounding leaves of the largest.

    >>> int(tf.linalg.matrix_rank([[1.0, 1.0], [1.0, 1.0]]))
    1
    """
    a = _t.to_tensor(a, None, None)
    if validate_args and (not a.dtype.is_floating or a.ndim < 2):
        raise ValueError(f"matrix_rank: matrices of floats are needed, not {a.dtype!r} of shape {a.shape}")
    values = _t.svd(a)[1]
    if tol is None:
        epsilon = 2.0 ** -{2: 10, 4: 23, 8: 52}[a.dtype.size]
        tol = _t.reduce_max(values, -1, True) * (max(a.lengths[-2:]) * epsilon)
    return _t.reduce_sum(_t.cast(values > tol, "int32"), -1, False)


def lu(input, output_idx_type="int32", name=None):
    """The lower and the upper factor of square matrices, in one matrix, and the order that their rows are taken in.

    >>> lu, p = tf.linalg.lu([[0.0, 2.0], [1.0, 3.0]])
    >>> p.numpy().tolist()
    [1, 0]
    """
    input = _t.to_tensor(input, None, None)
    if input.ndim > 2:
        flat = _t.reshape(input, [-1, *input.lengths[-2:]])
        made, order = _t.map_rows(lambda matrix: lu(matrix, output_idx_type), flat)
        lengths = _lengths_of(input)
        return _t.reshape(made, lengths), _t.reshape(order, lengths[:-1])
    size = input.lengths[-1]
    if size is None or input.lengths[-2] != size:
        raise ValueError(f"lu: square matrices are needed, not {input.shape}")
    numbers = _t.count(0, 1, [size], "int32")

    def step(state, at):
        matrix, order = state
        below = numbers > at
        column = _t.gather(matrix, at, 1, 0)
        candidates = _t.where_(numbers < at, _t.fill([size], -1, matrix.dtype), abs(column))
        best = _t.cast(_t.argmax(candidates, 0), "int32")
        swapped = _t.where_(numbers == at, best, _t.where_(numbers == best, at, numbers))
        matrix, order = (_t.gather(x, swapped, 0, 0) for x in (matrix, order))
        column, row = _t.gather(matrix, at, 1, 0), _t.gather(matrix, at, 0, 0)
        pivot = _t.gather(row, at, 0, 0)
        factors = _t.where_(below, column / pivot, _t.zeros_like(column))
        rest = _t.where_(below, row, _t.zeros_like(row))
        matrix = matrix - _t.expand_dims(factors, 1) * _t.expand_dims(rest, 0)
        here = _t.expand_dims(numbers == at, 0)
        return (_t.where_(here, _t.expand_dims(_t.where_(below, factors, column), 1), matrix), order), []

    (made, order), _ = _t.scan(step, (input, numbers), numbers, False, False)
    return made, _t.cast(order, output_idx_type)


def trace(x, name=None):
    """The sum of the diagonal."""
    return _t.matrix_trace(x)


def cross(a, b, name=None):
    """The cross product of vectors of 3."""
    return _t.cross(a, b)


def pinv(a, rcond=None, validate_args=False, name=None):
    """The pseudo-inverse of matrices: singular values up to ``rcond`` times the largest count as 0.

    >>> tf.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).numpy().tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    a = _t.to_tensor(a, None, None)
    if validate_args and (not a.dtype.is_floating or a.ndim < 2):
        raise ValueError(f"pinv: matrices of floats are needed, not {a.dtype!r} of shape {a.shape}")
    return _t.pinv(a, None if rcond is None else _t.to_tensor(rcond, None, a.dtype))


@_ignores("diag", "align")
def diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    """Matrices with these diagonals."""
    if (num_rows, num_cols) != (-1, -1) or padding_value:
        raise NotImplementedError("diag: num_rows, num_cols and padding_value are not there; use tf.pad and tf.where")
    return _t.diag(diagonal, int(k))


@_ignores("diag_part", "padding_value", "align")
def diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT"):
    """The diagonals of matrices."""
    return _t.diag_part(input, int(k))


def tensor_diag(diagonal, name=None):
    """The tensor with this diagonal: all its axes twice, zero where the first and the second half of the indices differ.

    >>> tf.linalg.tensor_diag(tf.ones([2, 3])).shape
    TensorShape([2, 3, 2, 3])
    """
    diagonal = _t.to_tensor(diagonal, None, None)
    if diagonal.ndim == 1:
        return _t.diag(diagonal, 0)
    if not diagonal.ndim:
        raise ValueError("tensor_diag: the diagonal must have rank 1 or more")
    return _t.reshape(_t.diag(_t.reshape(diagonal, [-1]), 0), _lengths_of(diagonal) * 2)


def tensor_diag_part(input, name=None):
    """The elements for which the first and the second half of the indices are the same.

    >>> tf.linalg.tensor_diag_part(tf.reshape(tf.range(16), [2, 2, 2, 2])).numpy().tolist()
    [[0, 5], [10, 15]]
    """
    input = _t.to_tensor(input, None, None)
    half = input.ndim // 2
    pairs = zip(input.lengths[:half], input.lengths[half:])
    if not half or input.ndim % 2 or any(a != b for a, b in pairs if None not in (a, b)):
        raise ValueError(f"tensor_diag_part: a shape of two equal halves is needed, not {input.shape}")
    if half == 1:
        return _t.diag_part(input, 0)
    lengths = _lengths_of(input)[:half]
    size = _prod(lengths)
    return _t.reshape(_t.diag_part(_t.reshape(input, [size, size]), 0), lengths)


@_ignores("set_diag", "align")
def set_diag(input, diagonal, name="set_diag", k=0, align="RIGHT_LEFT"):
    """Matrices with other diagonals."""
    input = _t.to_tensor(input, None, None)
    rows, columns = input.lengths[-2:]
    if k or rows != columns:
        raise NotImplementedError("set_diag: the main diagonal of square matrices alone")
    diagonal = _t.to_tensor(diagonal, None, input.dtype)
    pairs = zip(diagonal.lengths, input.lengths[:-1])
    if diagonal.ndim != input.ndim - 1 or any(a != b for a, b in pairs if None not in (a, b)):
        raise ValueError(f"set_diag: diagonals of shape {diagonal.shape} for matrices of shape {input.shape}")
    return _t.where_(eye(*_lengths_of(input)[-2:], dtype="bool"), _t.diag(diagonal, 0), input)


def band_part(input, num_lower, num_upper, name=None):
    """The diagonals near the main one; all others are zero."""
    made = _t.to_tensor(input, None, None)
    if int(num_lower) >= 0:
        made = _t.triu(made, -int(num_lower))
    if int(num_upper) >= 0:
        made = _t.tril(made, int(num_upper))
    return made


def matrix_transpose(a, name="matrix_transpose", conjugate=False):
    """The last two axes exchanged. Takes no memory."""
    a = _t.to_tensor(a, None, None)
    return _t.transpose(a, [*range(a.ndim - 2), a.ndim - 1, a.ndim - 2])


def adjoint(matrix, name=None):
    """The last two axes exchanged: there are no complex numbers."""
    return matrix_transpose(matrix)


def global_norm(t_list, name=None):
    """The norm of several tensors as one."""
    from .math import global_norm as whole

    return whole(t_list)


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
