"""Figures over batches. What a metric remembers are variables, updated in place: inside of a training step they are part of
the plan."""

from ..saving import get as _get
from .base import Mean, MeanMetricWrapper, MeanTensor, Metric, Sum  # noqa: F401
from .counts import (  # noqa: F401
    AUC, F1Score, FBetaScore, FalseNegatives, FalsePositives, Precision, PrecisionAtRecall, Recall, RecallAtPrecision,
    SensitivityAtSpecificity, SpecificityAtSensitivity, TrueNegatives, TruePositives,
)
from .figures import (  # noqa: F401
    Accuracy, BinaryAccuracy, BinaryCrossentropy, BinaryIoU, CategoricalAccuracy, CategoricalCrossentropy, CategoricalHinge,
    CosineSimilarity, Hinge, IoU, KLDivergence, LogCoshError, MeanAbsoluteError, MeanAbsolutePercentageError, MeanIoU,
    MeanSquaredError, MeanSquaredLogarithmicError, OneHotMeanIoU, Poisson, R2Score, RootMeanSquaredError,
    SparseCategoricalAccuracy, SparseCategoricalCrossentropy, SparseTopKCategoricalAccuracy, SquaredHinge,
    TopKCategoricalAccuracy, binary_accuracy, categorical_accuracy, sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy, top_k_categorical_accuracy,
)

mse = MSE = MeanSquaredError
mae = MAE = MeanAbsoluteError
mape = MAPE = MeanAbsolutePercentageError
msle = MSLE = MeanSquaredLogarithmicError
bce, rmse = BinaryCrossentropy, RootMeanSquaredError


def get(identifier):
    """The metric of that name; a callable is itself."""
    return _get(identifier, globals(), "metric", Metric)
