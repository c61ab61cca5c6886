"""Names that ``stubs.py`` has to know: where those in types come from, and which members of classes stubs show."""

import tonnage

# Where names in types come from.
HOMES = {name: module for module, names in {
    "collections.abc": "Callable Generator Iterable Iterator Mapping Sequence",
    "contextlib": "AbstractContextManager",
    "typing": "Any Concatenate Generic NamedTuple ParamSpec Self SupportsIndex TypeAlias TypeVar overload",
    "tonnage._function": "BoundFunction ConcreteFunction Function",
    "tonnage._gradient": "GradientTape",
    "tonnage._shape": "IndexedSlices TensorShape TensorSpec",
    "tonnage._tensor": "Ref",
    "tonnage._tonnage": "DType Plan Tensor Timeline",
    "tonnage._typing": "Axes Bytes DTypeLike Ints Length Named Path ShapeLike TensorLike TextLike",
    "tonnage._variable": "Variable",
    "tonnage.compat._graph": "Graph Initializer Operation Session",
    "tonnage.data.dataset": "Dataset",
    "tonnage.memory": "ShardedPlan",
    "tonnage.keras.callbacks.base": "Callback CallbackList History",
    "tonnage.keras.layers.base": "Layer",
    "tonnage.keras.layers.symbolic": "KerasTensor",
    "tonnage.keras.mixed_precision": "DTypePolicy",
    "tonnage.keras.optimizers.base": "Optimizer",
    "tonnage.train.checkpoint": "Checkpoint",
}.items() for name in names.split()}

# Names that a module finds when it is asked for them.
LAZY = {
    "tonnage": (*tonnage._LAZY, *tonnage._FROM, *tonnage._FROM_KERAS),
    "tonnage.compat": ("v1",),
    "tonnage.compat.v1": [name for name in dir(tonnage) if not name.startswith("_")],
}

_BINARY = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
_COMPARISONS = "eq ge gt le lt ne".split()
# Operators of two sides, and of one.
ARITHMETIC = {f"__{side}{name}__" for name in _BINARY for side in ("", "r")} | {f"__{name}__" for name in _COMPARISONS}
SIGNS = {"__abs__", "__invert__", "__neg__", "__pos__", "__round__"}
# Special methods that a type checker asks for.
DUNDERS = ARITHMETIC | SIGNS | {f"__{name}__" for name in (
    "array bool call contains dlpack dlpack_device enter exit float get getitem hash index int iter len next").split()}
# What a class has by the way it is made, and that is no use: comparisons of dtypes, a constructor that passes on what it is given.
HIDDEN = {f"_tonnage.DType.__{name}__" for name in _COMPARISONS if name != "eq"} | {"keras.saving.Configured"}
# Attributes whose names are not written where they are set.
ATTRIBUTES = {
    "keras.layers.cells._Cell": ("kernel", "recurrent_kernel"),
    "keras.layers.conv._Separable": ("depthwise_kernel", "pointwise_kernel"),
    **{f"keras.layers.recurrent.{name}": ("units",) for name in ("GRU", "LSTM", "SimpleRNN")},
    **{f"keras.losses.{name}": ("axis", "from_logits", "label_smoothing") for name in ("BinaryCrossentropy", "CategoricalCrossentropy")},
    "keras.losses.BinaryFocalCrossentropy": ("alpha", "apply_class_balancing", "axis", "from_logits", "gamma", "label_smoothing"),
    "keras.losses.Huber": ("delta",),
    "keras.losses.SparseCategoricalCrossentropy": ("axis", "from_logits", "ignore_class"),
    "keras.metrics.counts._Counts": ("fn", "fp", "tn", "tp"),
}
# Classes whose operators give a tensor.
LIKE_TENSORS = ("_tonnage.Tensor", "_variable.Variable")
