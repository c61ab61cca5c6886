"""The ops of the table that take tensors alone, under TensorFlow's names: one line each.

``MATH`` and ``NN`` give for a name its row and what its arguments are called.
"""

from . import _tonnage as _t

_X = ("x",)
_XY = ("x", "y")

MATH = {
    "abs": ("abs", _X), "acos": ("acos", _X), "acosh": ("acosh", _X), "add": ("add", _XY),
    "asin": ("asin", _X), "asinh": ("asinh", _X), "atan": ("atan", _X), "atan2": ("atan2", ("y", "x")),
    "atanh": ("atanh", _X), "ceil": ("ceil", _X), "cos": ("cos", _X), "cosh": ("cosh", _X),
    "digamma": ("digamma", _X), "divide_no_nan": ("divide_no_nan", _XY), "erf": ("erf", _X), "erfc": ("erfc", _X),
    "exp": ("exp", _X), "expm1": ("expm1", _X), "floor": ("floor", _X), "floordiv": ("floor_div", _XY),
    "floormod": ("mod", _XY), "mod": ("mod", _XY), "greater": ("greater", _XY),
    "greater_equal": ("greater_equal", _XY), "is_finite": ("is_finite", _X), "is_inf": ("is_inf", _X),
    "is_nan": ("is_nan", _X), "less": ("less", _XY), "less_equal": ("less_equal", _XY), "lgamma": ("lgamma", _X),
    "log": ("log", _X), "log1p": ("log1p", _X), "logical_and": ("logical_and", _XY),
    "logical_not": ("logical_not", _X), "logical_or": ("logical_or", _XY), "logical_xor": ("logical_xor", _XY),
    "maximum": ("maximum", _XY), "minimum": ("minimum", _XY), "multiply": ("mul", _XY), "negative": ("neg", _X),
    "pow": ("pow", _XY), "reciprocal": ("reciprocal", _X), "rint": ("round", _X), "round": ("round", _X),
    "rsqrt": ("rsqrt", _X), "sigmoid": ("sigmoid", _X), "sign": ("sign", _X), "sin": ("sin", _X),
    "sinh": ("sinh", _X), "softplus": ("softplus", ("features",)), "softsign": ("softsign", ("features",)),
    "sqrt": ("sqrt", _X), "square": ("square", _X), "squared_difference": ("squared_difference", _XY),
    "subtract": ("sub", _XY), "tan": ("tan", _X), "tanh": ("tanh", _X), "xlogy": ("xlogy", _XY),
}

NN = {
    "relu": ("relu", ("features",)), "relu6": ("relu6", ("features",)), "selu": ("selu", ("features",)),
    "sigmoid": ("sigmoid", _X), "softplus": ("softplus", ("features",)), "softsign": ("softsign", ("features",)),
    "tanh": ("tanh", _X),
}

BITWISE = {
    "bitwise_and": ("bitwise_and", _XY), "bitwise_or": ("bitwise_or", _XY), "bitwise_xor": ("bitwise_xor", _XY),
    "invert": ("bitwise_not", _X), "left_shift": ("shift_left", _XY), "right_shift": ("shift_right", _XY),
}


def made(table):
    """Callables for a table."""
    ops = {name: _t.Op(row, name, parameters) for name, (row, parameters) in table.items()}
    for op in ops.values():
        op.__doc__ = op.doc
    return ops
