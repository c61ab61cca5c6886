"""Policies: which dtype layers compute in, and which their weights have."""

from .. import _tonnage as _t
from .backend import floatx as _floatx
from .optimizers import LossScaleOptimizer  # noqa: F401
from .saving import Configured as _Configured

_global = [None]


class DTypePolicy(_Configured):
    """The dtype that a layer computes in, and that of its weights: ``"mixed_bfloat16"`` computes in bfloat16 and keeps
    weights in float32."""

    def __init__(self, name="float32"):
        text = getattr(name, "name", name)
        if not isinstance(text, str):
            raise TypeError(f"'name' must be a string, such as 'mixed_float16'. Received: name={name!r}")
        self.name = text
        if text.startswith("mixed_"):
            compute, variable = text[len("mixed_"):], "float32"
            if compute not in ("float16", "bfloat16"):
                raise ValueError(f"Cannot convert {text!r} to a mixed precision DTypePolicy. Valid policies include "
                                 "'mixed_float16', 'mixed_bfloat16'.")
        else:
            compute = variable = _t.DType(text).name
        self.compute_dtype, self.variable_dtype = compute, variable

    def __eq__(self, other):
        return isinstance(other, DTypePolicy) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f'<DTypePolicy "{self.name}">'


Policy = DTypePolicy


def dtype_policy():
    """The policy of layers that are given none."""
    return _global[0] or DTypePolicy(_floatx())


def set_dtype_policy(policy):
    """Sets the policy of layers that are made from here on."""
    _global[0] = policy if isinstance(policy, (DTypePolicy, type(None))) else DTypePolicy(policy)


global_policy, set_global_policy = dtype_policy, set_dtype_policy


def get(identifier):
    """The policy of that name; a policy is itself."""
    if identifier is None:
        return dtype_policy()
    if isinstance(identifier, dict):
        return DTypePolicy(**identifier.get("config", identifier))
    return identifier if isinstance(identifier, DTypePolicy) else DTypePolicy(identifier)
