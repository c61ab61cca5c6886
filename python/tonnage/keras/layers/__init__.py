"""Layers: weights are made when the first input comes; calls are names over ops, planned as part of the function around
them."""

from .activation import ELU, Activation, LeakyReLU, PReLU, ReLU, Softmax  # noqa: F401
from .attention import AdditiveAttention, Attention, MultiHeadAttention  # noqa: F401
from .base import Layer  # noqa: F401
from .cells import GRUCell, LSTMCell, SimpleRNNCell, StackedRNNCells  # noqa: F401
from .conv import (  # noqa: F401
    Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose, Convolution1D, Convolution2D, Convolution3D,
    DepthwiseConv1D, DepthwiseConv2D, SeparableConv1D, SeparableConv2D, SeparableConvolution1D, SeparableConvolution2D,
)
from .core import (  # noqa: F401
    ActivityRegularization, AlphaDropout, Dense, Dropout, EinsumDense, Embedding, GaussianDropout, GaussianNoise, Identity,
    Input, InputLayer, Lambda, Masking, SpatialDropout1D, SpatialDropout2D, SpatialDropout3D,
)
from .merging import (  # noqa: F401
    Add, Average, Concatenate, Dot, GetItem, Maximum, Minimum, Multiply, Operator, Subtract, add, average, concatenate, dot,
    maximum, minimum, multiply, subtract,
)
from .normalization import (  # noqa: F401
    BatchNormalization, GroupNormalization, LayerNormalization, RMSNormalization, UnitNormalization,
)
from .pooling import (  # noqa: F401
    AveragePooling1D, AveragePooling2D, AveragePooling3D, AvgPool1D, AvgPool2D, AvgPool3D, GlobalAveragePooling1D,
    GlobalAveragePooling2D, GlobalAveragePooling3D, GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D, GlobalMaxPool1D,
    GlobalMaxPool2D, GlobalMaxPool3D, GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D, MaxPool1D, MaxPool2D,
    MaxPool3D, MaxPooling1D, MaxPooling2D, MaxPooling3D,
)
from .preprocessing import (  # noqa: F401
    CategoryEncoding, CenterCrop, Discretization, Normalization, RandomFlip, Rescaling, Resizing,
)
from .conv_recurrent import ConvLSTM1D, ConvLSTM2D, ConvLSTM3D  # noqa: F401
from .recurrent import GRU, LSTM, RNN, SimpleRNN  # noqa: F401
from .reshaping import (  # noqa: F401
    Cropping1D, Cropping2D, Cropping3D, Flatten, Permute, RepeatVector, Reshape, UpSampling1D, UpSampling2D, UpSampling3D,
    ZeroPadding1D, ZeroPadding2D, ZeroPadding3D,
)
from .spec import InputSpec  # noqa: F401
from .wrappers import Bidirectional, TimeDistributed, Wrapper  # noqa: F401


def serialize(layer):
    """A layer as plain data."""
    from ..saving import serialize_keras_object

    return serialize_keras_object(layer)


def deserialize(config, custom_objects=None):
    """A layer from plain data."""
    from ..saving import deserialize_keras_object

    return deserialize_keras_object(config, custom_objects)


def __getattr__(name):
    from ..._missing import missing

    raise missing(__name__, name, globals())
