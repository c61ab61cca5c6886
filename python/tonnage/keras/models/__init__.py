"""Models: layers that are trained."""

from .files import load_model, save_model  # noqa: F401
from .model import Functional, Model
from .sequential import Sequential

__all__ = ["Functional", "Model", "Sequential", "clone_model", "load_model", "save_model"]


def clone_model(model, input_tensors=None, clone_function=None):
    """A model of the same layers with weights of its own."""
    from ..saving import deserialize_keras_object, serialize_keras_object

    if clone_function is not None or input_tensors is not None:
        raise ValueError("clone_model makes a model of the same layers; change its get_config() for another one")
    config = serialize_keras_object(model)
    config.pop("compile_config", None)
    return deserialize_keras_object(config)


def model_from_json(json_string, custom_objects=None):
    """A model from the text that ``to_json`` gave, without its weights."""
    import json

    from ..saving import deserialize_keras_object

    return deserialize_keras_object(json.loads(json_string), custom_objects)
