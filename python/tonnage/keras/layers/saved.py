"""A layer as data: what it was made with, the shapes that it was built for, and its variables."""

import functools
import inspect

from ..._shape import TensorShape
from ..saving import Configured, deserialize_keras_object, serialize_keras_object


@functools.lru_cache(maxsize=None)
def parameters(function):
    """What a function takes."""
    return inspect.signature(function).parameters


class Saved(Configured):
    """A layer that can be made again."""

    def get_config(self):
        """What it was made with, as plain data."""
        config = super().get_config()
        config.update(name=self.name, trainable=self.trainable, dtype=serialize_keras_object(self.dtype_policy))
        config.pop("input_shape", None)
        takes = parameters(type(self).__init__)
        if not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
            config = {k: v for k, v in config.items() if k in takes}
        return config

    @classmethod
    def from_config(cls, config):
        """Made again from what :meth:`get_config` gave."""
        return cls(**{k: deserialize_keras_object(v) for k, v in config.items()})

    def get_build_config(self):
        """The shapes that it was built for."""
        shapes = vars(self).get("_build_shapes")
        return None if shapes is None else {"input_shape": shapes}

    def build_from_config(self, config):
        """Makes the weights for the shapes that :meth:`get_build_config` gave."""
        shapes = config["input_shape"]
        if self.built or shapes is None:
            return
        if isinstance(shapes, dict) and set(shapes) == set(list(parameters(type(self).build))[1:]):
            self.build(**{k: _as_shapes(v) for k, v in shapes.items()})
        else:
            self.build(_as_shapes(shapes))

    def save_own_variables(self, store):
        """Puts what it holds itself into a dictionary, to be saved."""
        for i, variable in enumerate(self._own_variables()):
            store[str(i)] = variable

    def load_own_variables(self, store):
        """Takes what it holds itself out of a dictionary."""
        own = self._own_variables()
        if len(store) != len(own):
            raise ValueError(f"Layer {self.name!r} expected {len(own)} variables, but received {len(store)} variables during "
                             f"loading.")
        for i, variable in enumerate(own):
            variable.assign(store[str(i)])

    def __repr__(self):
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def plain_shapes(shapes):
    """Shapes as JSON has them."""
    if shapes is None:
        return None
    if isinstance(shapes, dict):
        return {k: plain_shapes(v) for k, v in shapes.items()}
    if isinstance(shapes, (list, tuple)) and any(isinstance(s, (TensorShape, list, tuple, dict)) for s in shapes):
        return [plain_shapes(s) for s in shapes]
    return [None, *shapes[1:]] if len(shapes) else []


def _as_shapes(shapes):
    if isinstance(shapes, dict):
        return {k: _as_shapes(v) for k, v in shapes.items()}
    if isinstance(shapes, list) and any(isinstance(s, (list, dict)) for s in shapes):
        return [_as_shapes(s) for s in shapes]
    return None if shapes is None else TensorShape(shapes)
