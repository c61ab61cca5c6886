"""What is trained on, a batch at a time: arrays, datasets, generators. Arrays are never copied whole."""

import math

import numpy as np

from ... import _nest
from ... import _tonnage as _t
from ...config import device


def unpack(data):
    """``(x, y, sample_weight)`` of what a batch is; what is not there is ``None``."""
    if isinstance(data, list):
        data = tuple(data)
    if not isinstance(data, tuple):
        return data, None, None
    if len(data) > 3:
        raise ValueError(f"Data is expected to be in format `x`, `(x,)`, `(x, y)`, or `(x, y, sample_weight)`, found {len(data)} "
                         "parts")
    return (*data, None, None)[:3]


def pack(x, y=None, sample_weight=None):
    """A batch of these, without what is not there at the end."""
    if sample_weight is not None:
        return x, y, sample_weight
    return (x,) if y is None else (x, y)


def alone(batch):
    """The batch as a step gets it: inputs without anything beside them are given as they are, not as a tuple of one."""
    return batch[0] if len(batch) == 1 and not isinstance(batch[0], (tuple, list)) else batch


def as_array(value):
    """Something with rows: an array or a tensor. Lists become arrays."""
    if isinstance(value, (_t.Tensor, _t.Variable, np.ndarray)):
        return value
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    return np.asarray(value)


def _is_arrays(value):
    if value is None:
        return True
    if isinstance(value, dict):
        return all(_is_arrays(v) for v in value.values())
    if isinstance(value, (_t.Tensor, _t.Variable, np.ndarray)) or hasattr(value, "__array__"):
        return True
    return isinstance(value, (list, tuple))


def arrays(value):
    """Nested arrays; a list of numbers is one array, a list of arrays several."""
    if value is None:
        return None
    if isinstance(value, dict):
        return {k: arrays(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and value and all(hasattr(v, "__array__") and np.ndim(v) > 0 for v in value):
        return type(value)(as_array(v) for v in value)
    return as_array(value)


def tensor(value):
    """A batch as a tensor, floats as float32, on the device of the scope."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        value = value.astype(np.float32)
    return _t.to_scope(_t.to_tensor(value, None, None))


class Arrays:
    """Batches of arrays, in order or shuffled."""

    def __init__(self, x, y=None, sample_weight=None, batch_size=None, shuffle=False, class_weight=None, ranks=None):
        self.data = pack(arrays(x), arrays(y), arrays(sample_weight))
        flat = [a for a in _nest.flatten(list(self.data)) if a is not None]
        if not flat:
            raise ValueError("there is nothing to train on: x is empty")
        lengths = [len(a.shape) and int(a.shape[0]) for a in flat]
        if any(len(a.shape) == 0 for a in flat):
            raise ValueError("data need a first axis, that of the batch; a scalar was given")
        if len(set(lengths)) > 1:
            shapes = ", ".join(str(tuple(a.shape)) for a in flat)
            raise ValueError(f"Data cardinality is ambiguous. Make sure all arrays contain the same number of samples. Shapes: "
                             f"{shapes}")
        self.rows = lengths[0]
        self.batch_size = 32 if batch_size is None else int(batch_size)
        if self.batch_size <= 0:
            raise ValueError(f"batch_size must be positive. Received: {batch_size}")
        self.shuffle, self.class_weight, self.ranks = shuffle, class_weight, ranks
        self.steps = math.ceil(self.rows / self.batch_size)

    def __iter__(self):
        order = None
        if self.shuffle == "batch":
            starts = self._permutation(self.steps) * self.batch_size
        else:
            order = self._permutation(self.rows) if self.shuffle else None
            starts = range(0, self.rows, self.batch_size)
        for start in starts:
            stop = min(int(start) + self.batch_size, self.rows)
            if self.ranks is not None:
                first, last = self.ranks.part(stop - int(start))
                start, stop = int(start) + first, int(start) + last
            rows = slice(int(start), stop) if order is None else order[start:stop]
            batch = tuple(None if part is None else _nest.map_structure(lambda a: _rows(a, rows), part)
                          for part in self.data)
            yield alone(weighted(batch, self.class_weight))

    def _permutation(self, n):
        """A random order: on several ranks that of the first."""
        order = np.random.permutation(n)
        return order if self.ranks is None else self.ranks.broadcast(_t.to_tensor(order, None, None), 0).numpy()


def _rows(array, rows):
    if array is None:
        return None
    if isinstance(array, np.ndarray):
        return tensor(array[rows])
    if isinstance(rows, slice):
        whole = rows.start == 0 and rows.stop == array.lengths[0] if isinstance(array, _t.Tensor) else False
        return tensor(array if whole else array[rows])
    with device(array.device):  # the rows' numbers beside the array
        rows = _t.to_tensor(rows, None, None)
    return tensor(_t.gather(array, rows, 0, 0))


def weighted(batch, class_weight):
    """The batch with weights by class."""
    if class_weight is None:
        return batch
    x, y, weight = unpack(batch)
    if weight is not None:
        raise ValueError("You cannot `class_weight` and `sample_weight` at the same time.")
    if y is None or isinstance(y, (list, tuple, dict)):
        raise ValueError("`class_weight` is only supported for Models with a single output.")
    labels = np.asarray(y.numpy() if hasattr(y, "numpy") else y)
    if labels.ndim > 1:
        labels = labels.argmax(-1) if labels.shape[-1] > 1 else labels[..., 0]
    table = {int(k): float(v) for k, v in class_weight.items()}
    weights = np.array([table.get(int(label), 1.0) for label in labels.ravel()], "float32").reshape(labels.shape)
    return x, y, tensor(weights)


class Stream:
    """Batches that come as they are: datasets, generators, objects with ``__len__`` and ``__getitem__``."""

    def __init__(self, data, steps=None, class_weight=None, ranks=None):
        if ranks is not None and hasattr(data, "_of_rank"):
            data, ranks = data if data._is_of_rank else data._of_rank(ranks), None
        self.data, self.class_weight, self.ranks = data, class_weight, ranks
        self.indexed = hasattr(data, "__getitem__") and hasattr(data, "__len__") and not hasattr(data, "element_spec")
        self.steps = steps
        if steps is None and hasattr(data, "cardinality"):
            known = int(data.cardinality())
            self.steps = known if known >= 0 else None
            if known == -1:
                raise ValueError("When passing an infinitely repeating dataset, please specify a `steps_per_epoch` value so that "
                                 "epoch level callbacks continue to work. The value can be arbitrary.")
        elif steps is None and self.indexed:
            self.steps = len(data)
        self._running = None

    def _items(self):
        if self.indexed:
            return (self.data[i] for i in range(len(self.data)))
        return iter(self.data)

    def __iter__(self):
        # Where epochs have so many steps, the next one goes on where the last one ended.
        if self.steps is None or self._running is None:
            self._running = self._items()
        done = 0
        while self.steps is None or done < self.steps:
            try:
                item = next(self._running)
            except StopIteration:
                self._running = None
                if done == 0 and self.steps is not None and not hasattr(self.data, "__next__"):
                    self._running = self._items()
                    item = next(self._running, None)
                    if item is None:
                        return
                else:
                    return
            done += 1
            parts = tuple(item) if isinstance(item, (tuple, list)) else (item,)
            parts = tuple(None if p is None else _nest.map_structure(lambda v: v if v is None else tensor(v), p) for p in parts)
            if self.ranks is not None:
                parts = tuple(None if p is None else _nest.map_structure(self._part, p) for p in parts)
            yield alone(weighted(parts, self.class_weight))
        if hasattr(self.data, "cardinality") or self.indexed:
            known = len(self.data) if self.indexed else int(self.data.cardinality())
            if known == self.steps:
                self._running = None
        if hasattr(self.data, "on_epoch_end"):
            self.data.on_epoch_end()


    def _part(self, value):
        """The rows of this rank, of a batch that all have."""
        if value is None:
            return None
        first, last = self.ranks.part(value.lengths[0])
        return value[first:last]


def batches(x, y=None, sample_weight=None, batch_size=None, steps=None, shuffle=False, class_weight=None, ranks=None):
    """What goes over ``x`` and ``y`` in batches; on several ranks, the part of each batch that is this one's."""
    if isinstance(x, (Arrays, Stream)):
        return x
    if x is None:
        raise ValueError("there is nothing to work on: x is None")
    if _is_arrays(x) and not hasattr(x, "element_spec"):
        made = Arrays(x, y, sample_weight, batch_size, shuffle, class_weight, ranks)
        return Limited(made, steps) if steps is not None and steps < made.steps else made
    if isinstance(x, (str, bytes)) or not (hasattr(x, "__iter__") or hasattr(x, "__getitem__")):
        raise ValueError(f"Unrecognized data type: x={x!r:.60} (of type {type(x)}); give arrays, tensors, a dataset or a generator")
    if y is not None or sample_weight is not None:
        raise ValueError(f"When providing `x` as a {type(x).__name__}, `y` and `sample_weight` come with it, and must not be passed")
    # Batches come as they are: a batch size says nothing of them, as in Keras.
    return Stream(x, steps, class_weight, ranks)


class Limited:
    """The first batches of each epoch."""

    def __init__(self, data, steps):
        self.data, self.steps = data, steps

    def __iter__(self):
        for i, batch in enumerate(self.data):
            if i >= self.steps:
                return
            yield batch


def split(data, share):
    """Arrays cut in two: the rest, and a share at the end."""
    if not 0 < share < 1:
        raise ValueError(f"`validation_split` must be between 0 and 1, received: {share}")
    flat = [a for a in _nest.flatten(list(data)) if a is not None]
    rows = int(flat[0].shape[0])
    at = int(math.floor(rows * (1.0 - share)))
    if at == 0 or at == rows:
        raise ValueError(f"Training data contains {rows} samples, which is not sufficient to split it into a validation and "
                         f"training set as specified by `validation_split={share}`.")

    def cut(part, rows):
        return None if part is None else _nest.map_structure(lambda a: a[rows], part)

    return tuple(cut(p, slice(0, at)) for p in data), tuple(cut(p, slice(at, None)) for p in data)
