"""Written by python/tools/stubs.py; change that, or the package, not this."""

from collections.abc import Callable, Sequence
from tonnage._shape import TensorSpec
from tonnage._tonnage import Plan
from tonnage._typing import Bytes
from tonnage._variable import Variable
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import tonnage._tonnage
_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
class BoundFunction(Function[_P, _R]):
    def __init__(self, instance: Any, function: Any) -> None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
class ConcreteFunction:
    def __init__(self, function: Any, args: Any, kwargs: Any) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def graph(self) -> str: ...
    @property
    def inputs(self) -> list[Any]: ...
    @property
    def output_dtypes(self) -> Any: ...
    @property
    def output_shapes(self) -> Any: ...
    @property
    def outputs(self) -> list[TensorSpec]: ...
    def plan(self) -> Plan: ...
    @property
    def structured_input_signature(self) -> Any: ...
    @property
    def structured_outputs(self) -> Any: ...
    @property
    def trainable_variables(self) -> tuple[Variable, ...]: ...
    @property
    def variables(self) -> list[Variable]: ...
class Function(tonnage._tonnage.Function, Generic[_P, _R]):
    def __init__(
        self,
        python_function: Callable[_P, _R],
        input_signature: Sequence[Any] | None = None,
        autograph: bool = True,
        reduce_retracing: bool = False,
        budget: Bytes | None = None,
        spill: bool = True,
        exact: bool = False,
        owner: Any = None,
    ) -> None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: Function[Concatenate[Any, _Q], _R], instance: object, owner: Any = None
    ) -> BoundFunction[_Q, _R]: ...
    def experimental_get_tracing_count(self) -> int: ...
    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction: ...
    @property
    def input_signature(self) -> Any: ...
    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str: ...
    @property
    def python_function(self) -> Callable[_P, _R]: ...
    @property
    def variables(self) -> list[Variable]: ...
@overload
def function(
    func: Callable[_P, _R],
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    budget: Bytes | None = None,
    spill: bool = True,
    exact: bool = False,
) -> Function[_P, _R]: ...
@overload
def function(
    func: None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    budget: Bytes | None = None,
    spill: bool = True,
    exact: bool = False,
) -> Callable[[Callable[_P, _R]], Function[_P, _R]]: ...
def numpy_function(func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, stateful: bool = True, name: str | None = None) -> Any: ...
def py_function(func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, name: str | None = None) -> Any: ...
