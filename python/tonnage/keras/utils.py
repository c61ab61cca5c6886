"""Small helpers."""

import random as _random

import numpy as _np

from .saving import (  # noqa: F401
    CustomObjectScope, custom_object_scope, deserialize_keras_object, get_custom_objects, get_registered_name,
    get_registered_object, register_keras_serializable, serialize_keras_object,
)


def to_categorical(x, num_classes=None):
    """Numbers of classes as rows of zeros with a one."""
    numbers = _np.asarray(x.numpy() if hasattr(x, "numpy") else x, dtype="int64")
    shape = numbers.shape[:-1] if numbers.ndim > 1 and numbers.shape[-1] == 1 else numbers.shape
    flat = numbers.reshape(-1)
    count = int(num_classes or (flat.max() + 1 if flat.size else 0))
    if flat.size and (flat.min() < 0 or flat.max() >= count):
        raise ValueError(f"numbers of classes from {flat.min()} to {flat.max()} do not fit {count} classes")
    made = _np.zeros((flat.size, count), "float64")
    made[_np.arange(flat.size), flat] = 1
    return made.reshape(*shape, count)


def normalize(x, axis=-1, order=2):
    """An array with norms of 1 along an axis."""
    x = _np.asarray(x)
    norms = _np.linalg.norm(x, order, axis, keepdims=True)
    norms[norms == 0] = 1
    return x / norms


def set_random_seed(seed):
    """Seeds Python's random numbers, NumPy's and Tonnage's."""
    if not isinstance(seed, int):
        raise ValueError(f"Argument `seed` must be an integer. Received: seed={seed} (of type {type(seed)})")
    from .. import random

    _random.seed(seed)
    _np.random.seed(seed)
    random.set_seed(seed)


def split_dataset(dataset, left_size=None, right_size=None, shuffle=False, seed=None):
    """Arrays or a dataset cut in two datasets: by shares or by numbers of elements."""
    from .. import data

    if not isinstance(dataset, data.Dataset):
        dataset = data.Dataset.from_tensor_slices(dataset)
    count = len(dataset)
    size = lambda s: int(round(s * count)) if isinstance(s, float) else s  # noqa: E731
    left, right = size(left_size), size(right_size)
    if left is None and right is None:
        raise ValueError("At least one of the `left_size` or `right_size` must be specified.")
    left = count - right if left is None else left
    right = count - left if right is None else right
    if left < 0 or right < 0 or left + right > count:
        raise ValueError(f"sizes {left} and {right} for {count} elements")
    if shuffle:
        dataset = dataset.shuffle(count, seed=seed, reshuffle_each_iteration=False)
    return dataset.take(left), dataset.skip(left).take(right)


def timeseries_dataset_from_array(data, targets, sequence_length, sequence_stride=1, sampling_rate=1, batch_size=128,
                                  shuffle=False, seed=None, start_index=None, end_index=None):
    """Windows over rows, with targets, as a dataset: rows are gathered a batch at a time."""
    from .. import _tonnage as _t
    from .. import data as _data

    array = _t.to_tensor(_np.asarray(data), None, None)
    start, end = start_index or 0, len(array) if end_index is None else end_index
    starts = _np.arange(start, end - (sequence_length - 1) * sampling_rate, sequence_stride, dtype="int64")
    if targets is not None:
        starts = starts[starts < len(targets)]
        goals = _t.to_tensor(_np.asarray(targets), None, None)
    made = _data.Dataset.from_tensor_slices(starts)
    if shuffle:
        made = made.shuffle(len(starts), seed=seed)
    if batch_size is not None:
        made = made.batch(batch_size)
    steps = _t.to_tensor(_np.arange(sequence_length, dtype="int64") * sampling_rate, None, None)

    def windows(first):
        places = _t.expand_dims(first, -1) + steps
        rows = _t.gather(array, places, 0, 0)
        return rows if targets is None else (rows, _t.gather(goals, first, 0, 0))

    return made.map(windows)


def pad_sequences(sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre", value=0.0):
    """Lists of different lengths as one array: filled up, or cut, at their start or their end.

    >>> tf.keras.utils.pad_sequences([[1], [2, 3], [4, 5, 6]], maxlen=2)
    array([[0, 1],
           [2, 3],
           [5, 6]], dtype=int32)
    """
    for what, given in (("padding", padding), ("truncating", truncating)):
        if given not in ("pre", "post"):
            raise ValueError(f'Invalid {what} type: {given!r}. Expected "pre" or "post".')
    if not all(hasattr(row, "__len__") for row in sequences):
        raise ValueError(f"`sequences` must be a list of iterables. Received: {sequences!r:.60}")
    rows = [_np.asarray(row) for row in sequences]
    length = max((len(row) for row in rows), default=0) if maxlen is None else int(maxlen)
    rest = next((row.shape[1:] for row in rows if len(row)), ())
    made = _np.full((len(rows), length, *rest), value, dtype)
    for to, row in zip(made, rows):
        row = row[max(0, len(row) - length):] if truncating == "pre" else row[:length]
        start = length - len(row) if padding == "pre" else 0
        if len(row):
            to[start:start + len(row)] = row
    return made


class Sequence:
    """A base for data by the number of the batch: ``__len__`` and ``__getitem__``."""

    def __init__(self, workers=1, use_multiprocessing=False, max_queue_size=10):
        if workers != 1 or use_multiprocessing:
            from .._notices import once

            once("Sequence", "workers do nothing: batches are made as they are needed; tf.data has threads")

    def __getitem__(self, index):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def on_epoch_end(self):
        """At the end of an epoch."""


PyDataset = Sequence


def plot_model(*args, **kwargs):
    """There is nothing to draw with; ``model.summary()`` prints."""
    raise ImportError("plot_model needs graphviz, which Tonnage does not use; model.summary() prints the layers")


def bytes_text(n):
    """Bytes as plans print them: ``1.50 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.2f} {unit}"
        n /= 1024
