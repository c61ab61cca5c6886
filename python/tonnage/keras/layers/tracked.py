"""What a layer holds: weights and layers inside, found by walking its attributes in the order in which they were set; and the
losses that they add."""

from ... import _nest
from ... import _tonnage as _t
from ..._shape import TensorShape
from ..._variable import Variable
from ...module import Module
from .. import backend, constraints, initializers, regularizers
from ..._notices import ignores


class Tracked(Module):
    """A module that holds weights and other such modules."""

    _not_tracked = ("_made_with", "_nodes", "_losses", "_trainable", "_build_shapes")

    @ignores("Tracked.add_weight", "autocast", "aggregation")
    def add_weight(self, shape=None, initializer=None, dtype=None, trainable=True, autocast=True, regularizer=None,
                   constraint=None, aggregation=None, name=None, **unknown):
        """A weight of the layer. One that starts as zeros or random numbers takes no memory before it is written."""
        if isinstance(shape, str):  # older programs give the name first
            shape, initializer, name = initializer, dtype if not isinstance(dtype, (str, _t.DType)) else None, shape
        if unknown.keys() - {"synchronization", "experimental_autocast", "use_resource", "layout", "overwrite_with_gradient"}:
            raise ValueError(f"Unrecognized keyword arguments of add_weight: {sorted(unknown)}")
        dtype = _t.DType(dtype) if dtype is not None else self.dtype
        usual = "glorot_uniform" if dtype.is_floating else "zeros"
        initializer = initializers.get(usual if initializer is None else initializer)
        lengths = TensorShape(() if shape is None else shape).as_list()
        if any(n is None for n in lengths):
            raise ValueError(f"Shapes used to initialize variables must be fully-defined (no `None` dimensions). Received: "
                             f"shape={tuple(lengths)} for variable {name!r} of layer {self.name!r}")

        def make():
            value = initializer(lengths, dtype=dtype)
            return Variable(value, trainable=trainable, name=name or "weight", dtype=dtype,
                            constraint=constraints.get(constraint))

        # Weights of a layer that was made outside of what is traced are made there too: they outlive the trace.
        made = make() if self._in_trace else backend.eagerly(make)
        made.regularizer = regularizers.get(regularizer)
        vars(self).setdefault("_weights", []).append(made)
        return made

    add_variable = add_weight

    def _held(self):
        """What its attributes hold: variables, then layers, each once."""
        found = [], [], set()
        own = vars(self)
        _collect(own.get("_weights", ()), *found)
        for key, value in list(own.items()):
            if key not in self._not_tracked and not key.startswith("_tonnage_method_"):
                _collect(value, *found)
        return found[0], found[1]

    def _flatten_layers(self, include_self=True, recursive=True, _seen=None):
        seen = set() if _seen is None else _seen
        if id(self) in seen:
            return
        seen.add(id(self))
        if include_self:
            yield self
        for layer in self._held()[1]:
            if recursive:
                yield from layer._flatten_layers(True, True, seen)
            elif id(layer) not in seen:
                yield layer

    @property
    def weights(self):
        """All its variables: its own, then those of layers inside, in the order of their making."""
        found, seen = [], set()
        for layer in self._flatten_layers():
            for variable in layer._own_variables():
                if variable.number not in seen:
                    seen.add(variable.number)
                    found.append(variable)
        return found

    def _own_variables(self):
        return self._held()[0]

    variables = weights

    @property
    def trainable_weights(self):
        """Those that are trained; none of a layer that is frozen."""
        if not self.trainable:
            return []
        found, seen = [], set()
        for layer in self._flatten_layers():
            for variable in layer._own_variables() if layer.trainable else ():
                if variable.trainable and variable.number not in seen:
                    seen.add(variable.number)
                    found.append(variable)
        return found

    trainable_variables = trainable_weights

    @property
    def non_trainable_weights(self):
        """The others."""
        trained = {v.number for v in self.trainable_weights}
        return [v for v in self.weights if v.number not in trained]

    non_trainable_variables = non_trainable_weights

    def get_weights(self):
        """The values of all its variables."""
        return [v.numpy() for v in self.weights]

    def set_weights(self, weights):
        """Gives all its variables other values."""
        own = self.weights
        if len(weights) != len(own):
            raise ValueError(f"You called `set_weights(weights)` on layer {self.name!r} with a weight list of length "
                             f"{len(weights)}, but the layer was expecting {len(own)} weights.")
        for variable, value in zip(own, weights):
            if tuple(variable.shape) != tuple(getattr(value, "shape", ())):
                raise ValueError(f"Layer {self.name!r} weight shape {tuple(variable.shape)} is not compatible with provided "
                                 f"weight shape {tuple(getattr(value, 'shape', ()))}.")
        for variable, value in zip(own, weights):
            variable.assign(value)

    def count_params(self):
        """How many numbers its variables have."""
        if not self.built and not self.weights:
            raise ValueError(f"You tried to call `count_params` on layer {self.name!r}, but the layer isn't built. You can "
                             f"build it manually via: `layer.build(input_shape)`.")
        return sum(v.shape.num_elements() for v in self.weights)

    # Losses.

    def add_loss(self, loss):
        """A loss besides that of the model: a tensor, or several."""
        self._losses.extend(_nest.flatten(loss))

    @property
    def losses(self):
        """What was added in the last call, then penalties on weights; of layers inside, too."""
        layers = list(self._flatten_layers())
        found = [loss for layer in layers for loss in layer._losses]
        for layer in layers:
            for variable in layer._own_variables() if layer.trainable else ():
                regularizer = getattr(variable, "regularizer", None)
                if regularizer is not None and variable.trainable:
                    found.append(regularizer(variable))
        return found

    def _clear_losses(self):
        for layer in self._flatten_layers():
            layer._losses = []


def _collect(value, variables, layers, seen):
    """Puts the variables and layers of a value into lists. (A function inside of a method that calls itself would be a circle, which
    keeps the variables until the collector comes.)"""
    if isinstance(value, _t.Variable):
        if value.number not in seen:
            seen.add(value.number)
            variables.append(value)
    elif isinstance(value, Tracked):
        if id(value) not in seen:
            seen.add(id(value))
            layers.append(value)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _collect(part, variables, layers, seen)
    elif isinstance(value, dict):
        for part in value.values():
            _collect(part, variables, layers, seen)
    elif isinstance(value, Module):
        for variable in value.variables:
            _collect(variable, variables, layers, seen)
