"""What ``stubs.py`` cannot find by looking at the package: overloads, type variables, results that follow from arguments."""

# Methods that users write in classes of their own, with parameters of their own.
OVERRIDDEN = {
    "keras.layers.base.Layer.build", "keras.layers.base.Layer.call", "keras.layers.base.Layer.compute_mask",
    "keras.models.model.Model.build", "keras.models.model.Model.call", "keras.models.sequential.Sequential.build",
    "keras.models.sequential.Sequential.call",
}

# Methods and properties that take or give something else than those of the same name in a base.
NARROWER = {"keras.metrics.base.MeanMetricWrapper.update_state", "keras.metrics.figures.RootMeanSquaredError.update_state", *(
    f"keras.layers.tracked.Tracked.{name}" for name in ("variables", "trainable_variables", "non_trainable_variables"))}

_FUNCTION_OPTIONS = """    input_signature: Sequence[Any] | None = None,
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
    exact: bool = False,"""

# What stands before the rest, by module: type variables, and names that another module gives all of.
FIRST = {
    "compat": ["import tonnage", "v2 = tonnage"],
    "_function": ["import tonnage._tonnage", '_P = ParamSpec("_P")', '_Q = ParamSpec("_Q")', '_R = TypeVar("_R")'],
    "_gradient": ['_P = ParamSpec("_P")', '_R = TypeVar("_R")'],
    "keras.saving": ['_T = TypeVar("_T")'],
    "_nest": ['_T = TypeVar("_T")'],
    "module": ['_F = TypeVar("_F", bound=Callable[..., Any])'],
    "autograph": ['_F = TypeVar("_F", bound=Callable[..., Any])'],
}

# The bases of classes that have other ones for a type checker.
BASES = {
    "_function.Function": "tonnage._tonnage.Function, Generic[_P, _R]",
    "_function.BoundFunction": "Function[_P, _R]",
    "_shape.TensorShape": "Sequence[Length]",
    "memory.Info": "dict[str, Any]",
}

# What is written out: overloads, and results that follow from arguments.
WRITTEN = {
    "_function.function": f"""@overload
def function(
    func: Callable[_P, _R],
{_FUNCTION_OPTIONS}
) -> Function[_P, _R]: ...
@overload
def function(
    func: None = None,
{_FUNCTION_OPTIONS}
) -> Callable[[Callable[_P, _R]], Function[_P, _R]]: ...""",
    "_function.Function.__init__": """def __init__(
    self,
    python_function: Callable[_P, _R],
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    reduce_retracing: bool = False,
    budget: Bytes | None = None,
    spill: bool = True,
    exact: bool = False,
    owner: Any = None,
) -> None: ...""",
    "_function.Function.__call__": "def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...",
    "_function.Function.__get__": """@overload
def __get__(self, instance: None, owner: Any = None) -> Self: ...
@overload
def __get__(
    self: Function[Concatenate[Any, _Q], _R], instance: object, owner: Any = None
) -> BoundFunction[_Q, _R]: ...""",
    "_function.BoundFunction.__init__": "def __init__(self, instance: Any, function: Any) -> None: ...",
    "_function.BoundFunction.__call__": "def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...",
    "_gradient.custom_gradient": """@overload
def custom_gradient(f: Callable[_P, tuple[_R, Callable[..., Any]]]) -> Callable[_P, _R]: ...
@overload
def custom_gradient(
    f: None = None,
) -> Callable[[Callable[_P, tuple[_R, Callable[..., Any]]]], Callable[_P, _R]]: ...""",
    "_gradient.recompute_grad": "def recompute_grad(f: Callable[_P, _R]) -> Callable[_P, _R]: ...",
    **{f"_gradient.GradientTape.{name}": "\n".join(f"""@overload
def {name}(
    self, target: Any, sources: {sources}, {more}
) -> {gives}: ...""" for sources, gives in (("Tensor | Variable", "Any"), ("list[Any]", "list[Any]"),
                                           ("tuple[Any, ...]", "tuple[Any, ...]"), ("dict[str, Any]", "dict[str, Any]")))
       for name, more in (("gradient", "output_gradients: Any = None, unconnected_gradients: str = 'none'"),
                          ("jacobian", "unconnected_gradients: str = 'none', parallel_iterations: int | None = None, "
                                       "experimental_use_pfor: bool = True"))},
    "_shape.TensorShape.__getitem__": """@overload
def __getitem__(self, key: SupportsIndex) -> Length: ...
@overload
def __getitem__(self, key: slice) -> TensorShape: ...""",
    "_tonnage.Tensor.__buffer__": "def __buffer__(self, flags: int, /) -> memoryview: ...",
    "_nest.map_structure": "def map_structure(func: Callable[..., Any], *structures: Any, **kwargs: Any) -> Any: ...",
    "keras.layers.base.Layer.__call__": "def __call__(self, *args: Any, **kwargs: Any) -> Any: ...",
    "module.Module.with_name_scope": "def with_name_scope(cls, method: _F) -> _F: ...",
    "autograph.do_not_convert": """@overload
def do_not_convert(func: _F) -> _F: ...
@overload
def do_not_convert(func: None = None) -> Callable[[_F], _F]: ...""",
}
