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

    specs = specs_of(model, batch)
    if model.compiled:
        model._symbolic_build(data_batch=specs)
    elif not model.built:
        model(_nest.map_structure(lambda spec: keras.KerasTensor(tuple(spec.shape), spec.dtype.name), specs[0]))
    step = model.train_step if model.compiled else model.predict_step
    return function(lambda batch: step(batch), autograph=False), specs


def specs_of(model, batch):
    """A batch as types: given so, as arrays, as a number of rows, or with an open one."""
    if batch is not None and not isinstance(batch, (int, np.integer)):
        return tuple(_nest.map_structure(_spec, part) for part in (batch if isinstance(batch, (tuple, list)) else (batch,)))
    inputs, outputs = _known(model)

    def rows_of(tensor):
        return TensorSpec([batch, *tensor.shape[1:]], tensor.dtype)

    x = _nest.map_structure(rows_of, inputs)
    return (x, _targets(model, outputs, rows_of)) if model.compiled and model.loss is not None else (x,)


def _known(model):
    """What a model takes and returns, as far as it knows: of a subclass the shapes that it was built with, of the dtype of its policy."""
    import keras

    # A sequential model is a functional one inside.
    graph = getattr(model, "_functional", None) or model
    if hasattr(graph, "_inputs_struct"):
        return graph._inputs_struct, graph._outputs_struct
    shapes = list((model._build_shapes_dict or {}).values())
    if len(shapes) != 1:
        raise ValueError("a number of rows is enough for models whose inputs are known; give (x, y) of arrays or tf.TensorSpec")
    inputs = keras.tree.map_shape_structure(lambda shape: keras.KerasTensor(shape, model.input_dtype), shapes[0])
    return inputs, model.compute_output_spec(inputs)


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

    flat = _nest.flatten(outputs)
    if isinstance(model.loss, dict):
        names = sorted(outputs) if isinstance(outputs, dict) else model.output_names
        given = [model.loss.get(name) for name in names]
    else:
        given = list(model.loss) if isinstance(model.loss, (list, tuple)) else [model.loss] * len(flat)
    return _nest.pack_sequence_as(outputs, [target(tensor, loss) for tensor, loss in zip(flat, given)])


def summary(model, batch=None):
    """A model as a table, with bytes."""
    if not model.built:
        raise ValueError(f"the model {model.name!r} is not built: call it on a batch, or fit it, first")
    plan = None
    if batch is not None:
        step, specs = step_of(model, batch)
        plan = step.plan(specs)
    layers = {layer.name: layer for layer in model.layers}
    held = dict.fromkeys(layers, 0)
    others = 0
    for path, size in plan.by_layer() if plan else ():
        name = next((part for part in path.split("/") if part in layers), None)
        if name is None:
            others += size
        else:
            held[name] += size
    table = [("layer (type)", "output shape", "parameters", "bytes", "at the peak")]
    table += [(f"{name} ({type(layer).__name__})", _shape_text(layer), f"{layer.count_params():,}", f"{_bytes(layer.weights):,}",
               f"{held[name]:,}" if plan else "") for name, layer in layers.items()]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = [f"model {model.name!r}"]
    lines += ["  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip() for row in table]
    lines.append(f"parameters: {model.count_params():,}, {_bytes(model.weights):,} bytes; trained {_bytes(model.trainable_weights):,}")
    if model.compiled and model.optimizer is not None and model.optimizer.built:
        lines.append(f"state of the optimizer: {_bytes(model.optimizer.variables):,} bytes")
    if plan:
        rows = next(spec.shape[0] for spec in _nest.flatten(specs[0]))
        what = "training" if model.compiled else "prediction"
        lines.append(f"a step of {what}, {rows} rows: {plan.peak:,} bytes at the peak, outside of layers {others:,}")
    return "\n".join(lines)


def _bytes(variables):
    return sum(int(np.prod(v.shape)) * _t.DType(v.dtype).size for v in variables)


def _shape_text(layer):
    try:
        shapes = _nest.flatten(layer.output)
    except (AttributeError, ValueError):
        return ""  # it was never called with symbols
    return ", ".join(str(tuple(shape.shape)) for shape in shapes)


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
