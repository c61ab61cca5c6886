"""Written by python/tools/stubs.py; change that, or the package, not this."""

from collections.abc import Mapping
from tonnage.keras.layers.activation import (
    Activation as Activation, ELU as ELU, LeakyReLU as LeakyReLU, PReLU as PReLU, ReLU as ReLU, Softmax as Softmax
)
from tonnage.keras.layers.attention import (
    AdditiveAttention as AdditiveAttention, Attention as Attention, MultiHeadAttention as MultiHeadAttention
)
from tonnage.keras.layers.base import Layer as Layer
from tonnage.keras.layers.cells import (
    GRUCell as GRUCell, LSTMCell as LSTMCell, SimpleRNNCell as SimpleRNNCell, StackedRNNCells as StackedRNNCells
)
from tonnage.keras.layers.conv import (
    Conv1D as Conv1D, Conv1D as _Conv1D, Conv1DTranspose as Conv1DTranspose, Conv2D as Conv2D, Conv2D as _Conv2D,
    Conv2DTranspose as Conv2DTranspose, Conv3D as Conv3D, Conv3D as _Conv3D, Conv3DTranspose as Conv3DTranspose,
    DepthwiseConv1D as DepthwiseConv1D, DepthwiseConv2D as DepthwiseConv2D, SeparableConv1D as SeparableConv1D,
    SeparableConv1D as _SeparableConv1D, SeparableConv2D as SeparableConv2D, SeparableConv2D as _SeparableConv2D
)
from tonnage.keras.layers.conv_recurrent import ConvLSTM1D as ConvLSTM1D, ConvLSTM2D as ConvLSTM2D, ConvLSTM3D as ConvLSTM3D
from tonnage.keras.layers.core import (
    ActivityRegularization as ActivityRegularization, AlphaDropout as AlphaDropout, Dense as Dense, Dropout as Dropout,
    EinsumDense as EinsumDense, Embedding as Embedding, GaussianDropout as GaussianDropout, GaussianNoise as GaussianNoise,
    Identity as Identity, Input as Input, InputLayer as InputLayer, Lambda as Lambda, Masking as Masking,
    SpatialDropout1D as SpatialDropout1D, SpatialDropout2D as SpatialDropout2D, SpatialDropout3D as SpatialDropout3D
)
from tonnage.keras.layers.merging import (
    Add as Add, Average as Average, Concatenate as Concatenate, Dot as Dot, GetItem as GetItem, Maximum as Maximum,
    Minimum as Minimum, Multiply as Multiply, Operator as Operator, Subtract as Subtract, add as add, average as average,
    concatenate as concatenate, dot as dot, maximum as maximum, minimum as minimum, multiply as multiply, subtract as subtract
)
from tonnage.keras.layers.normalization import (
    BatchNormalization as BatchNormalization, GroupNormalization as GroupNormalization, LayerNormalization as LayerNormalization,
    RMSNormalization as RMSNormalization, UnitNormalization as UnitNormalization
)
from tonnage.keras.layers.pooling import (
    AveragePooling1D as AveragePooling1D, AveragePooling1D as _AveragePooling1D, AveragePooling2D as AveragePooling2D,
    AveragePooling2D as _AveragePooling2D, AveragePooling3D as AveragePooling3D, AveragePooling3D as _AveragePooling3D,
    GlobalAveragePooling1D as GlobalAveragePooling1D, GlobalAveragePooling1D as _GlobalAveragePooling1D,
    GlobalAveragePooling2D as GlobalAveragePooling2D, GlobalAveragePooling2D as _GlobalAveragePooling2D,
    GlobalAveragePooling3D as GlobalAveragePooling3D, GlobalAveragePooling3D as _GlobalAveragePooling3D,
    GlobalMaxPooling1D as GlobalMaxPooling1D, GlobalMaxPooling1D as _GlobalMaxPooling1D, GlobalMaxPooling2D as GlobalMaxPooling2D,
    GlobalMaxPooling2D as _GlobalMaxPooling2D, GlobalMaxPooling3D as GlobalMaxPooling3D, GlobalMaxPooling3D as _GlobalMaxPooling3D,
    MaxPooling1D as MaxPooling1D, MaxPooling1D as _MaxPooling1D, MaxPooling2D as MaxPooling2D, MaxPooling2D as _MaxPooling2D,
    MaxPooling3D as MaxPooling3D, MaxPooling3D as _MaxPooling3D
)
from tonnage.keras.layers.preprocessing import (
    CategoryEncoding as CategoryEncoding, CenterCrop as CenterCrop, Discretization as Discretization,
    Normalization as Normalization, RandomFlip as RandomFlip, Rescaling as Rescaling, Resizing as Resizing
)
from tonnage.keras.layers.recurrent import GRU as GRU, LSTM as LSTM, RNN as RNN, SimpleRNN as SimpleRNN
from tonnage.keras.layers.reshaping import (
    Cropping1D as Cropping1D, Cropping2D as Cropping2D, Cropping3D as Cropping3D, Flatten as Flatten, Permute as Permute,
    RepeatVector as RepeatVector, Reshape as Reshape, UpSampling1D as UpSampling1D, UpSampling2D as UpSampling2D,
    UpSampling3D as UpSampling3D, ZeroPadding1D as ZeroPadding1D, ZeroPadding2D as ZeroPadding2D, ZeroPadding3D as ZeroPadding3D
)
from tonnage.keras.layers.spec import InputSpec as InputSpec
from tonnage.keras.layers.wrappers import Bidirectional as Bidirectional, TimeDistributed as TimeDistributed, Wrapper as Wrapper
from typing import Any

def deserialize(config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any: ...
def serialize(layer: Layer) -> Any: ...
AvgPool1D = _AveragePooling1D
AvgPool2D = _AveragePooling2D
AvgPool3D = _AveragePooling3D
Convolution1D = _Conv1D
Convolution2D = _Conv2D
Convolution3D = _Conv3D
GlobalAvgPool1D = _GlobalAveragePooling1D
GlobalAvgPool2D = _GlobalAveragePooling2D
GlobalAvgPool3D = _GlobalAveragePooling3D
GlobalMaxPool1D = _GlobalMaxPooling1D
GlobalMaxPool2D = _GlobalMaxPooling2D
GlobalMaxPool3D = _GlobalMaxPooling3D
MaxPool1D = _MaxPooling1D
MaxPool2D = _MaxPooling2D
MaxPool3D = _MaxPooling3D
SeparableConvolution1D = _SeparableConv1D
SeparableConvolution2D = _SeparableConv2D
