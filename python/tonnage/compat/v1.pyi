"""Written by python/tools/stubs.py; change that, or the package, not this."""

import builtins
from tonnage import (
    _nest as _nest, as_dtype as as_dtype, autograph as autograph, bitwise as bitwise, compat as compat, config as config,
    data as data, debugging as debugging, distribute as distribute, dtypes as dtypes, errors as errors,
    experimental as experimental, image as image, init_scope as init_scope, inside_function as inside_function, install as install,
    io as io, is_tensor as is_tensor, keras as keras, linalg as linalg, lookup as lookup, math as math, memory as memory,
    module as module, nn as nn, onnx as onnx, profiler as profiler, random as random, raw_ops as raw_ops, sets as sets,
    signal as signal, sparse as sparse, strings as strings, test as test, version as version
)
from tonnage._array import (
    bitcast as bitcast, broadcast_dynamic_shape as broadcast_dynamic_shape, broadcast_static_shape as broadcast_static_shape,
    broadcast_to as broadcast_to, cast as cast, concat as concat, constant as constant, convert_to_tensor as convert_to_tensor,
    dynamic_update_slice as dynamic_update_slice, ensure_shape as ensure_shape, expand_dims as expand_dims, eye as eye,
    fill as fill, get_static_value as get_static_value, identity as identity, linspace as linspace, ones as ones,
    ones_like as ones_like, pad as pad, range as range, rank as rank, repeat as repeat, reshape as reshape, reverse as reverse,
    roll as roll, saturate_cast as saturate_cast, shape as shape, size as size, slice as slice, split as split, squeeze as squeeze,
    stack as stack, strided_slice as strided_slice, tile as tile, transpose as transpose, unstack as unstack, zeros as zeros,
    zeros_like as zeros_like
)
from tonnage._complex import complex as complex
from tonnage._composite import VariableAggregation as VariableAggregation, VariableSynchronization as VariableSynchronization
from tonnage._control import (
    case as case, cond as cond, foldl as foldl, foldr as foldr, map_fn as map_fn, scan as scan, switch_case as switch_case,
    vectorized_map as vectorized_map, while_loop as while_loop
)
from tonnage._function import function as function, numpy_function as numpy_function, py_function as py_function
from tonnage._gradient import (
    GradientTape as GradientTape, UnconnectedGradients as UnconnectedGradients, custom_gradient as custom_gradient,
    gradients as gradients, hessians as hessians, recompute_grad as recompute_grad, stop_gradient as stop_gradient
)
from tonnage._index import (
    Unique as Unique, UniqueWithCounts as UniqueWithCounts, argsort as argsort, boolean_mask as boolean_mask,
    dynamic_partition as dynamic_partition, gather as gather, gather_nd as gather_nd,
    histogram_fixed_width as histogram_fixed_width, meshgrid as meshgrid, one_hot as one_hot, scatter_nd as scatter_nd,
    searchsorted as searchsorted, sequence_mask as sequence_mask, sort as sort, tensor_scatter_nd_add as tensor_scatter_nd_add,
    tensor_scatter_nd_max as tensor_scatter_nd_max, tensor_scatter_nd_min as tensor_scatter_nd_min,
    tensor_scatter_nd_sub as tensor_scatter_nd_sub, tensor_scatter_nd_update as tensor_scatter_nd_update, unique as unique,
    unique_with_counts as unique_with_counts, where as where
)
from tonnage._print import print as print
from tonnage._ragged import RaggedTensor as RaggedTensor, RaggedTensorSpec as RaggedTensorSpec
from tonnage._shape import (
    Dimension as Dimension, IndexedSlices as IndexedSlices, StandIn as StandIn, TensorShape as TensorShape,
    TensorSpec as TensorSpec, TypeSpec as TypeSpec
)
from tonnage._tensor_array import TensorArray as TensorArray
from tonnage._tonnage import DType as DType, Tensor as Tensor
from tonnage._typing import DTypeLike, ShapeLike, TensorLike
from tonnage._variable import Variable as Variable
from tonnage.compat import _train as _train
from tonnage.compat._graph import (
    ConfigProto as ConfigProto, GPUOptions as GPUOptions, Graph as Graph, Initializer as Initializer,
    InteractiveSession as InteractiveSession, Operation as Operation, Question as Question, Session as Session,
    disable_eager_execution as _disable_eager_execution, disable_eager_execution as disable_eager_execution,
    enable_eager_execution as _enable_eager_execution, enable_eager_execution as enable_eager_execution,
    executing_eagerly as executing_eagerly, get_default_graph as get_default_graph, get_default_session as get_default_session,
    placeholder as placeholder, placeholder_with_default as placeholder_with_default, reset_default_graph as reset_default_graph
)
from tonnage.config import device as device
from tonnage.debugging import (
    Assert as Assert, assert_equal as assert_equal, assert_greater as assert_greater, assert_less as assert_less,
    assert_rank as assert_rank
)
from tonnage.keras import initializers as initializers, losses as losses, metrics as metrics, optimizers as optimizers
from tonnage.keras.initializers import RandomUniform as _RandomUniform
from tonnage.linalg import einsum as einsum, matmul as matmul, norm as norm, tensordot as tensordot
from tonnage.math import (
    abs as abs, acos as acos, acosh as acosh, add as add, add_n as add_n, argmax as argmax, argmin as argmin, asin as asin,
    asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh, clip_by_global_norm as clip_by_global_norm,
    clip_by_norm as clip_by_norm, clip_by_value as clip_by_value, cos as cos, cosh as cosh, cumsum as cumsum, divide as divide,
    equal as equal, exp as exp, floor as floor, global_norm as global_norm, greater as greater, greater_equal as greater_equal,
    less as less, less_equal as less_equal, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    maximum as maximum, minimum as minimum, multiply as multiply, negative as negative, not_equal as not_equal, pow as pow,
    reduce_all as reduce_all, reduce_any as reduce_any, reduce_logsumexp as reduce_logsumexp, reduce_max as reduce_max,
    reduce_mean as reduce_mean, reduce_min as reduce_min, reduce_prod as reduce_prod, reduce_sum as reduce_sum, round as round,
    scalar_mul as scalar_mul, sigmoid as sigmoid, sign as sign, sin as sin, sinh as sinh, sqrt as sqrt, square as square,
    subtract as subtract, tan as tan, tanh as tanh, truediv as truediv
)
from tonnage.module import Module as Module, control_dependencies as control_dependencies, group as group, no_op as no_op
from tonnage.nn import depth_to_space as depth_to_space, space_to_depth as space_to_depth
from tonnage.sparse import SparseTensor as SparseTensor, SparseTensorSpec as SparseTensorSpec
from typing import Any, Self

AUTO_REUSE: str
class GraphKeys:
    GLOBAL_STEP: str
    GLOBAL_VARIABLES: str
    LOCAL_VARIABLES: str
    LOSSES: str
    REGULARIZATION_LOSSES: str
    SUMMARIES: str
    TRAINABLE_VARIABLES: str
    UPDATE_OPS: str
def Print(input_: TensorLike, data: TensorLike, message: str | None = None, first_n: Any = None, summarize: int | None = None, name: str | None = None) -> Any: ...
def add_to_collection(name: str | None, value: TensorLike) -> Any: ...
def assign(ref: Any, value: TensorLike, validate_shape: builtins.bool | None = None, use_locking: builtins.bool | None = None, name: str | None = None) -> Any: ...
def assign_add(ref: Any, value: TensorLike, use_locking: builtins.bool | None = None, name: str | None = None) -> Any: ...
def assign_sub(ref: Any, value: TensorLike, use_locking: builtins.bool | None = None, name: str | None = None) -> Any: ...
bfloat16: DType
bool: DType
def constant_initializer(value: TensorLike = 0, dtype: DTypeLike = 'float32') -> Any: ...
class container:
    name: Any
    def __init__(self, container_name: Any) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: Any) -> None: ...
double: DType
float16: DType
float32: DType
float64: DType
def get_collection(key: str, scope: Any = None) -> list[Any]: ...
def get_collection_ref(key: str) -> Any: ...
def get_variable(name: str | None, shape: ShapeLike | None = None, dtype: DTypeLike | None = None, initializer: Any = None, regularizer: Any = None, trainable: builtins.bool | None = None, collections: Any = None, caching_device: Any = None, partitioner: Any = None, validate_shape: builtins.bool | None = True, use_resource: Any = None, custom_getter: Any = None, constraint: Any = None, synchronization: Any = None, aggregation: Any = None) -> Variable: ...
def get_variable_scope() -> Any: ...
def global_variables(scope: Any = None) -> list[Variable]: ...
def global_variables_initializer() -> Initializer: ...
def glorot_uniform_initializer(seed: int | None = None, dtype: DTypeLike = 'float32') -> Any: ...
half: DType
int16: DType
int32: DType
int64: DType
int8: DType
def is_variable_initialized(variable: Any) -> Any: ...
def local_variables(scope: Any = None) -> Any: ...
def local_variables_initializer() -> Any: ...
def name_scope(name: str | None, default_name: Any = None, values: TensorLike | None = None) -> Any: ...
newaxis: None
def ones_initializer(dtype: DTypeLike = 'float32') -> Any: ...
def random_normal_initializer(mean: TensorLike = 0.0, stddev: TensorLike = 1.0, seed: int | None = None, dtype: DTypeLike = 'float32') -> Any: ...
def report_uninitialized_variables(var_list: Any = None, name: str | None = None) -> Any: ...
def reset_container(name: str | None) -> Any: ...
string: DType
def to_float(x: TensorLike, name: str | None = None) -> Any: ...
def to_int32(x: TensorLike, name: str | None = None) -> Any: ...
def trainable_variables(scope: Any = None) -> list[Variable]: ...
uint16: DType
uint32: DType
uint64: DType
uint8: DType
class variable_scope:
    def __init__(self, name_or_scope: Any, default_name: Any = None, values: TensorLike | None = None, initializer: Any = None, reuse: Any = None, dtype: DTypeLike | None = None, **unknown: Any) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: Any) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def original_name_scope(self) -> Any: ...
    def reuse_variables(self) -> Any: ...
def variables_initializer(var_list: Any, name: str | None = 'init') -> Any: ...
def zeros_initializer(dtype: DTypeLike = 'float32') -> Any: ...
initialize_all_variables = global_variables_initializer
disable_v2_behavior = _disable_eager_execution
enable_v2_behavior = _enable_eager_execution
nest = _nest
random_uniform_initializer = _RandomUniform
train = _train
