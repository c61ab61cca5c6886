"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage.keras.metrics.base import (
    Mean as Mean, MeanMetricWrapper as MeanMetricWrapper, MeanTensor as MeanTensor, Metric as Metric, Sum as Sum
)
from tonnage.keras.metrics.counts import (
    AUC as AUC, F1Score as F1Score, FBetaScore as FBetaScore, FalseNegatives as FalseNegatives, FalsePositives as FalsePositives,
    Precision as Precision, PrecisionAtRecall as PrecisionAtRecall, Recall as Recall, RecallAtPrecision as RecallAtPrecision,
    SensitivityAtSpecificity as SensitivityAtSpecificity, SpecificityAtSensitivity as SpecificityAtSensitivity,
    TrueNegatives as TrueNegatives, TruePositives as TruePositives
)
from tonnage.keras.metrics.figures import (
    Accuracy as Accuracy, BinaryAccuracy as BinaryAccuracy, BinaryCrossentropy as BinaryCrossentropy,
    BinaryCrossentropy as _BinaryCrossentropy, BinaryIoU as BinaryIoU, CategoricalAccuracy as CategoricalAccuracy,
    CategoricalCrossentropy as CategoricalCrossentropy, CategoricalHinge as CategoricalHinge, CosineSimilarity as CosineSimilarity,
    Hinge as Hinge, IoU as IoU, KLDivergence as KLDivergence, LogCoshError as LogCoshError, MeanAbsoluteError as MeanAbsoluteError,
    MeanAbsoluteError as _MeanAbsoluteError, MeanAbsolutePercentageError as MeanAbsolutePercentageError,
    MeanAbsolutePercentageError as _MeanAbsolutePercentageError, MeanIoU as MeanIoU, MeanSquaredError as MeanSquaredError,
    MeanSquaredError as _MeanSquaredError, MeanSquaredLogarithmicError as MeanSquaredLogarithmicError,
    MeanSquaredLogarithmicError as _MeanSquaredLogarithmicError, OneHotMeanIoU as OneHotMeanIoU, Poisson as Poisson,
    R2Score as R2Score, RootMeanSquaredError as RootMeanSquaredError, RootMeanSquaredError as _RootMeanSquaredError,
    SparseCategoricalAccuracy as SparseCategoricalAccuracy, SparseCategoricalCrossentropy as SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy, SquaredHinge as SquaredHinge,
    TopKCategoricalAccuracy as TopKCategoricalAccuracy, binary_accuracy as binary_accuracy,
    categorical_accuracy as categorical_accuracy, sparse_categorical_accuracy as sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy, top_k_categorical_accuracy as top_k_categorical_accuracy
)
from typing import Any

def get(identifier: Any) -> Any: ...
MAE = _MeanAbsoluteError
MAPE = _MeanAbsolutePercentageError
MSE = _MeanSquaredError
MSLE = _MeanSquaredLogarithmicError
bce = _BinaryCrossentropy
mae = _MeanAbsoluteError
mape = _MeanAbsolutePercentageError
mse = _MeanSquaredError
msle = _MeanSquaredLogarithmicError
rmse = _RootMeanSquaredError
