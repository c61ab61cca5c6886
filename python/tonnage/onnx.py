"""``tf.onnx``: ONNX models as planned functions. What a call takes is known before it runs, and weights stay in the file where a budget wants it."""

from . import _tonnage as _t
from ._variable import wrap as _wrap


class Model:
    """A model of a file; see :func:`load`."""

    def __init__(self, path, budget=None, trainable=False):
        self._model = _t.OnnxModel(str(path), budget, trainable)
        self.inputs = dict(self._model.inputs())
        self.outputs = dict(self._model.outputs())

    @property
    def trainable_variables(self):
        """The weights that tapes watch and optimizers update, in the order of the file; none unless it was loaded to be trained."""
        return [_wrap(raw) for raw in self._model.variables()]

    def __call__(self, *inputs, **named):
        """Runs it on inputs, in order or by name. A dict of outputs comes back; a sequence is a list of tensors."""
        names = list(self.inputs)
        if len(inputs) > len(names):
            raise ValueError(f"{len(inputs)} inputs for a model that takes {len(names)}: {', '.join(names)}")
        given = dict(zip(names, inputs))
        for name, value in named.items():
            if name not in self.inputs or name in given:
                raise ValueError(f"no input `{name}` is left; the model takes {', '.join(names)}")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise ValueError(f"inputs are missing: {', '.join(missing)}")
        return dict(zip(self.outputs, self._model.call([given[name] for name in names])))

    def plan(self, **lengths):
        """What a call would take, with the lengths that the file leaves open: ``model.plan(batch=8)``. Runs nothing."""
        return self._model.plan(list(lengths.items()))

    def plans(self, bounds, **lengths):
        """The plan of each segment of a model in which the data decide sizes: ``model.plans({"durations": 800}, phonemes=100)``. A bound is the most that a
        number may be that is only known when the model runs, or a length, by the name of the value."""
        return self._model.plans(list(lengths.items()), list(bounds.items()))

    def last_run(self):
        """What the last call took, beside what was predicted: a dict for each planned segment."""
        return self._model.last_run()

    def max_batch(self, name, budget, **lengths):
        """The largest length of a name with which a call fits into a budget."""
        return self._model.max_batch(name, list(lengths.items()), budget)


def load(path, budget=None, trainable=False):
    """Opens an ONNX model. Its nodes are read; its weights are read when they are first needed, or by each call where they do not fit.

    ``budget`` are the bytes that a call may hold, such as ``"256MiB"``; one that does not fit is refused before it starts. With ``trainable``
    the weights are variables, which a tape around a call watches; inside of a ``tf.function`` a call is part of it.
    """
    return Model(path, budget, trainable)
