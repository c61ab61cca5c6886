"""``tf.onnx``: ONNX models as planned functions. Weights stay in the file, and what a call takes is known before it runs."""

from . import _tonnage as _t


class Model:
    """A model of a file; see :func:`load`."""

    def __init__(self, path, budget=None):
        self._model = _t.OnnxModel(str(path), budget)
        self.inputs = dict(self._model.inputs())
        self.outputs = dict(self._model.outputs())

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

    def last_run(self):
        """What the last call took, beside what was predicted: a dict for each planned segment."""
        return self._model.last_run()

    def max_batch(self, name, budget, **lengths):
        """The largest length of a name with which a call fits into a budget."""
        return self._model.max_batch(name, list(lengths.items()), budget)


def load(path, budget=None):
    """Opens an ONNX model. Its nodes are read, its weights are not: those stay in the file.

    ``budget`` are the bytes that a call may hold, such as ``"256MiB"``; one that does not fit is refused before it starts.
    """
    return Model(path, budget)
