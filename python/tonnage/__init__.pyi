"""Written by python/tools/stubs.py; change that, or the package, not this."""

import builtins
from tonnage import (
    _nest as _nest, autograph as autograph, bitwise as bitwise, compat as compat, config as config, data as data,
    debugging as debugging, distribute as distribute, errors as errors, experimental as experimental, image as image, io as io,
    keras as keras, linalg as linalg, lookup as lookup, math as math, memory as memory, nn as nn, onnx as onnx,
    profiler as profiler, random as random, raw_ops as raw_ops, sets as sets, signal as signal, sparse as sparse,
    strings as strings, test as test, train as train
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
from tonnage._tonnage import DType as DType, DType as _DType, Tensor as Tensor
from tonnage._typing import DTypeLike, TensorLike
from tonnage._variable import Variable as Variable
from tonnage.config import device as device
from tonnage.debugging import (
    Assert as Assert, assert_equal as assert_equal, assert_greater as assert_greater, assert_less as assert_less,
    assert_rank as assert_rank
)
from tonnage.keras import initializers as initializers, losses as losses, metrics as metrics, optimizers as optimizers
from tonnage.keras.initializers import (
    Constant as _Constant, Ones as _Ones, RandomNormal as _RandomNormal, RandomUniform as _RandomUniform, Zeros as _Zeros
)
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
from tonnage.module import (
    Module as Module, control_dependencies as control_dependencies, group as group, name_scope as name_scope, no_op as no_op
)
from tonnage.nn import depth_to_space as depth_to_space, space_to_depth as space_to_depth
from tonnage.sparse import SparseTensor as SparseTensor, SparseTensorSpec as SparseTensorSpec
from typing import Any, TypeAlias

def as_dtype(type_value: DTypeLike) -> DType: ...
bfloat16: DType
bool: DType
double: DType
class dtypes:
    DType: TypeAlias = _DType
    @staticmethod
    def as_dtype(type_value: DTypeLike) -> DType: ...
    bfloat16: DType
    bool: DType
    @staticmethod
    def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor: ...
    @staticmethod
    def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Any: ...
    double: DType
    float16: DType
    float32: DType
    float64: DType
    half: DType
    int16: DType
    int32: DType
    int64: DType
    int8: DType
    @staticmethod
    def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor: ...
    string: DType
    uint16: DType
    uint32: DType
    uint64: DType
    uint8: DType
def executing_eagerly() -> builtins.bool: ...
float16: DType
float32: DType
float64: DType
half: DType
class init_scope:
    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: Any) -> None: ...
def inside_function() -> builtins.bool: ...
def install() -> Any: ...
int16: DType
int32: DType
int64: DType
int8: DType
def is_tensor(x: object) -> builtins.bool: ...
newaxis: None
string: DType
uint16: DType
uint32: DType
uint64: DType
uint8: DType
class version:
    VERSION: str
constant_initializer = _Constant
nest = _nest
ones_initializer = _Ones
random_normal_initializer = _RandomNormal
random_uniform_initializer = _RandomUniform
zeros_initializer = _Zeros
