"""Keras' models in ``tf.memory``: a step as a function that can be planned, and bytes in the progress bar."""

import sys

import numpy as np

from .. import _nest
from .. import _tonnage as _t
from .._function import Function, function
from .._shape import TensorSpec


def is_model(f):
    """Whether it is a model of Keras."""
    return isinstance(f, getattr(sys.modules["keras"], "Model", ()))


def step_of(model, batch=None):
    """A step of training, or where the model is not compiled of prediction, as a function, and the batch that it takes. Builds what ``fit``
    would build first."""
    import keras

    specs = _specs(model, batch)
    if model.compiled:
        model._symbolic_build(data_batch=specs)
    elif not model.built:
        model(_nest.map_structure(lambda spec: keras.KerasTensor(tuple(spec.shape), spec.dtype.name), specs[0]))
    step = model.train_step if model.compiled else model.predict_step
    return function(lambda batch: step(batch), autograph=False), specs


def _specs(model, batch):
    """A batch as types: given so, as arrays, as a number of rows, or with an open one."""
    if batch is not None and not isinstance(batch, (int, np.integer)):
        return tuple(_nest.map_structure(_spec, part) for part in (batch if isinstance(batch, (tuple, list)) else (batch,)))
    # A sequential model is a functional one inside.
    graph = getattr(model, "_functional", None) or model
    if not hasattr(graph, "_inputs_struct"):
        raise ValueError("a number of rows is enough for models whose inputs are known; give (x, y) of arrays or tf.TensorSpec")

    def rows_of(tensor):
        return TensorSpec([batch, *tensor.shape[1:]], tensor.dtype)

    x = _nest.map_structure(rows_of, graph._inputs_struct)
    return (x, _targets(model, graph._outputs_struct, rows_of)) if model.compiled and model.loss is not None else (x,)


def _spec(value):
    if value is None or isinstance(value, TensorSpec):
        return value
    value = value if hasattr(value, "dtype") else np.asarray(value)
    # As Keras feeds them.
    return TensorSpec(value.shape, "float32" if value.dtype == np.float64 else value.dtype)


def _targets(model, outputs, rows_of):
    """What losses compare outputs with: of their types, or numbers of classes."""
    from keras import losses

    def target(tensor, loss):
        loss, spec = losses.get(loss), rows_of(tensor)
        sparse = isinstance(loss, losses.SparseCategoricalCrossentropy) or loss is losses.sparse_categorical_crossentropy
        return TensorSpec(spec.shape[:-1], "int32") if sparse else spec

    if isinstance(model.loss, dict):
        given = [model.loss.get(name) for name in model.output_names]
    else:
        given = list(model.loss) if isinstance(model.loss, (list, tuple)) else [model.loss] * len(model.outputs)
    return _nest.pack_sequence_as(outputs, [target(tensor, loss) for tensor, loss in zip(_nest.flatten(outputs), given)])


def _planned(f, depth=0):
    """The functions that a function of Keras calls."""
    found = [f] if isinstance(f, Function) else []
    for cell in getattr(f, "__closure__", None) or () if depth < 4 else ():
        found += _planned(cell.cell_contents, depth + 1)
    return found


def progress():
    """A callback that adds bytes to what the progress bar shows."""
    import keras

    class Progress(keras.callbacks.Callback):
        """Bytes that are held now, the most so far, and the peak that was predicted for the last step."""

        def on_train_batch_end(self, batch, logs=None):
            self._add(logs)

        def on_epoch_end(self, epoch, logs=None):
            self._add(logs)

        def _add(self, logs):
            if logs is None:
                return
            held = _t.memory_info("cpu:0")
            logs.update(bytes_now=held["current"], bytes_peak=held["peak"])
            runs = [run for run in (f.last_run() for f in _planned(self.model.train_function)) if run]
            if runs:
                logs["bytes_predicted"] = max(run["predicted"] for run in runs)

    return Progress()
