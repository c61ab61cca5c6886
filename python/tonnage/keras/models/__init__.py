"""Models: layers that are trained."""

from ..layers.core import InputLayer as _InputLayer
from . import graph
from .files import load_model, save_model  # noqa: F401
from .model import Functional, Model
from .sequential import Sequential

__all__ = ["Functional", "Model", "Sequential", "clone_model", "load_model", "save_model"]


def clone_model(model, input_tensors=None, clone_function=None):
    """A model of the same layers with weights of its own. ``clone_function`` makes a layer's other one, or gives the layer
    itself back, which both models then have."""
    if input_tensors is not None:
        raise ValueError("clone_model makes inputs of its own; call the clone with input_tensors instead")
    clone = clone_function or _clone
    if isinstance(model, Sequential):
        start = [] if model._start is None else [_clone(model._start)]
        made = Sequential([*start, *(clone(layer) for layer in model.layers)], name=model.name, trainable=model.trainable)
        if made._graph is None and model.built and vars(model).get("_build_shapes") is not None:
            made.build(model._build_shapes)
        return made
    if model._graph is None or clone_function is None and type(model) is not Model:
        if clone_function is not None:
            raise ValueError(f"clone_function is for models whose layers are known, and {type(model).__name__} computes in a call()")
        return _clone(model)
    given = {layer.name: layer for layer in model._graph.layers}
    inputs, outputs = graph.from_config(model.get_config(), lambda entry: (
        _clone if isinstance(given[entry["name"]], _InputLayer) else clone)(given[entry["name"]]))
    made = type(model)(inputs, outputs, name=model.name)
    made._trainable = model._trainable
    return made


def _clone(layer):
    if isinstance(layer, (Sequential, Model)) and (isinstance(layer, Sequential) or type(layer) is Model):
        return clone_model(layer)
    return type(layer).from_config(layer.get_config())


def model_from_json(json_string, custom_objects=None):
    """A model from the text that ``to_json`` gave, without its weights."""
    import json

    from ..saving import deserialize_keras_object

    return deserialize_keras_object(json.loads(json_string), custom_objects)
