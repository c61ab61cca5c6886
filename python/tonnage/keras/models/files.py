"""Models in files: weights by their place in the model, and whole models with their configuration beside the weights.

One file of named tensors (safetensors) holds all of it; it appears whole or not at all, and neither writing nor reading takes more
than the tensor in hand. Names follow the structure (``dense/kernel``, ``dense_1/kernel``), not the names that layers were given,
so that a model which is built again finds its weights.
"""

import json
import os

from ... import _tonnage as _t
from ...module import camel_to_snake
from ..._notices import ignores

_CONFIG, _FORMAT = "keras_config", "tonnage model"


def named_weights(model):
    """The variables of a model by their places."""
    made = {}
    _visit(model, "", made, set())
    return made


def _visit(layer, lead, made, seen):
    if id(layer) in seen:
        return
    seen.add(id(layer))
    for variable in layer._own_variables():
        if variable.number not in seen:
            seen.add(variable.number)
            _put(made, lead + variable.plain_name.rpartition("/")[2], variable)
    counts = {}
    for child in _children(layer):
        base = camel_to_snake(type(child).__name__.lstrip("_"))
        count = counts[base] = counts.get(base, -1) + 1
        _visit(child, f"{lead}{base}_{count}/" if count else f"{lead}{base}/", made, seen)


def _children(layer):
    return layer.layers if hasattr(layer, "layers") and isinstance(layer.layers, list) else layer._held()[1]


def _put(made, name, variable):
    unique, count = name, 0
    while unique in made:
        count += 1
        unique = f"{name}_{count}"
    made[unique] = variable


def _checked(path, overwrite):
    path = os.fspath(path)
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"{path} is there already; pass overwrite=True to replace it")
    if path.endswith((".h5", ".hdf5")):
        from ..._notices import once

        once("h5", f"{path}: the file is written as safetensors, whatever its name; HDF5 is not there")
    return path


def _need_built(model, what):
    from ..layers.base import Layer

    # A `build` of the program's own may have left out layers that make their weights when they are called.
    later = (layer for layer in model.layers if not layer.built and type(layer).build is not Layer.build)
    if not model.built or not model.weights and any(later):
        raise ValueError(f"You are {what} a model that is not yet built: {model.name!r}. Make sure to build the model first, by "
                         "calling it on data or `build(input_shape)`.")


def save_weights(model, path, overwrite=True):
    """Writes the weights to a file."""
    path = _checked(path, overwrite)
    _need_built(model, "saving the weights of")
    _t.save_tensors(path, list(named_weights(model).items()), [("format", _FORMAT)])


def load_weights(model, path, skip_mismatch=False):
    """Gives a model the weights of a file."""
    _need_built(model, "loading weights into")
    _refuse_checkpoint(os.fspath(path))
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no file of weights for model {model.name!r} at {os.fspath(path)!r}")
    _load(_t.TensorFile(os.fspath(path)), named_weights(model), skip_mismatch, f"model {model.name!r}")


def _refuse_checkpoint(path):
    if not os.path.exists(path) and os.path.exists(f"{path}.index"):
        raise ValueError(f"{path} is a checkpoint of TensorFlow, which is not supported yet: open it where it was made, and save the "
                         "tensors there by their names as safetensors or npz")


def _load(file, variables, skip, what):
    names = {n for n in file.names() if not n.startswith("optimizer/")}
    wrong = [f"{n} is not in the file" for n in variables if n not in names]
    wrong += [f"{n} is in the file and not in the {what}" for n in sorted(names) if n not in variables]
    there = [n for n in variables if n in names]
    for name in list(there):
        saved, own = tuple(file.lengths(name)), tuple(variables[name].shape)
        if saved != own:
            wrong.append(f"{name} has the shape {saved} in the file and {own} in the {what}")
            there.remove(name)
    if wrong and not skip:
        raise ValueError(f"the file is of another model: {'; '.join(wrong)}")
    if wrong:
        from ..._notices import once

        once(("skipped", tuple(wrong)), f"loaded without what does not match: {'; '.join(wrong)}")
    for name in there:
        file.load(name, variables[name])


@ignores("save_model", "zipped")
def save_model(model, path, overwrite=True, include_optimizer=True, zipped=None, **unknown):
    """Writes a whole model to one file."""
    from ..saving import serialize_keras_object

    if unknown:
        raise ValueError(f"The following argument(s) are not supported: {sorted(unknown)}")
    path = _checked(path, overwrite)
    config = serialize_keras_object(model)
    tensors = list(named_weights(model).items())
    if include_optimizer and model.optimizer is not None and model.optimizer.built:
        tensors += [(f"optimizer/{i}", v) for i, v in enumerate(model.optimizer.variables)]
    if not include_optimizer:
        config.pop("compile_config", None)
    _t.save_tensors(path, tensors, [("format", _FORMAT), (_CONFIG, json.dumps(config))])


def load_model(path, custom_objects=None, compile=True):
    """A whole model from a file."""
    from ..saving import deserialize_keras_object

    path = os.fspath(path)
    _refuse_checkpoint(path)
    if not os.path.exists(path):
        raise ValueError(f"File not found: filepath={path}. Please ensure the file is an accessible model file.")
    file = _t.TensorFile(path)
    text = file.note(_CONFIG)
    if text is None:
        raise ValueError(f"{path} holds weights, not a whole model: make the model and use load_weights")
    config = json.loads(text)
    compiled = config.pop("compile_config", None)
    model = deserialize_keras_object(config, custom_objects)
    _load(file, named_weights(model), False, f"model {model.name!r}")
    if compiled and compile:
        from ..saving import custom_object_scope

        with custom_object_scope(custom_objects or {}):
            model.compile_from_config(compiled)
        _load_optimizer(file, model)
    return model


def _load_optimizer(file, model):
    saved = [n for n in file.names() if n.startswith("optimizer/")]
    if not saved or model.optimizer is None:
        return
    model.optimizer.build(model.trainable_variables)
    own = model.optimizer.variables
    if len(own) != len(saved):
        from ..._notices import once

        once(("optimizer", model.name), f"the optimizer starts anew: the file has {len(saved)} of its variables, it has {len(own)}")
        return
    for i, variable in enumerate(own):
        file.load(f"optimizer/{i}", variable)
