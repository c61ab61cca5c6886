"""Penalties on weights and activations, which losses grow by."""

from .. import _tonnage as _t
from .backend import epsilon as _epsilon
from .saving import Configured as _Configured
from .saving import get as _get


class Regularizer(_Configured):
    """A callable from a tensor to a penalty."""

    def __call__(self, x):
        return 0.0


def _penalty(value, what):
    if not isinstance(value, (int, float)) or value != value or value < 0:
        raise ValueError(f"Invalid value for argument `{what}`: expected a non-negative float. Received: {what}={value}")
    return float(value)


class L1L2(Regularizer):
    """The sum of sizes and the sum of squares, each times its share."""

    def __init__(self, l1=0.0, l2=0.0):
        self.l1, self.l2 = _penalty(l1 or 0.0, "l1"), _penalty(l2 or 0.0, "l2")

    def __call__(self, x):
        x = _t.to_tensor(x, None, None)
        made = _t.to_tensor(0.0, x.dtype, None)
        if self.l1:
            made = made + self.l1 * _t.reduce_sum(abs(x), None, False)
        if self.l2:
            made = made + self.l2 * _t.reduce_sum(x * x, None, False)
        return made


class L1(L1L2):
    """The sum of sizes."""

    def __init__(self, l1=0.01):
        super().__init__(l1=0.01 if l1 is None else l1)


class L2(L1L2):
    """The sum of squares."""

    def __init__(self, l2=0.01):
        super().__init__(l2=0.01 if l2 is None else l2)


class OrthogonalRegularizer(Regularizer):
    """Rows, or columns, that are not orthogonal to each other."""

    def __init__(self, factor=0.01, mode="rows"):
        if mode not in ("rows", "columns"):
            raise ValueError(f"Invalid value for argument `mode`. Expected one of {{'rows', 'columns'}}. Received: "
                             f"mode={mode}")
        self.factor, self.mode = _penalty(factor, "factor"), mode

    def __call__(self, x):
        x = _t.to_tensor(x, None, None)
        if x.ndim != 2:
            raise ValueError(f"Inputs to OrthogonalRegularizer must have rank 2. Received: inputs.shape={x.shape}")
        rows = self.mode == "rows"
        x = _t.l2_normalize(x, 1 if rows else 0, _epsilon() ** 2)
        product = _t.mat_mul(x, x, not rows, rows)
        size = product.lengths[0]
        off = product * (1.0 - _t.eye([size, size], x.dtype))
        return self.factor * 0.5 * _t.reduce_sum(abs(off), None, False) / (size * (size - 1.0) / 2.0)


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer


def get(identifier):
    """The regularizer of that name; a callable is itself."""
    return _get(identifier, globals(), "regularizer", Regularizer)
