"""Layers that take several inputs, and operators on symbolic inputs."""

import operator

from ... import _tonnage as _t
from ..backend import epsilon
from ..saving import serialize_keras_object
from .base import Layer

_maximum, _minimum = (_t.Op(n, n, ["x", "y"]) for n in ("maximum", "minimum"))


class _Merge(Layer):
    """Several tensors as one; shapes broadcast."""

    supports_masking = True

    def build(self, input_shape):
        """Checks that there are several."""
        if not isinstance(input_shape, (list, tuple)) or not isinstance(input_shape[0], (tuple, list)) and not hasattr(
                input_shape[0], "rank"):
            raise ValueError(f"A merge layer should be called on a list of inputs. Received: input_shape={input_shape} (not a "
                             f"list of shapes) in layer {self.name!r}")
        if len(input_shape) < 2 and type(self) is not Concatenate:
            raise ValueError(f"A merge layer should be called on a list of at least 2 inputs. Received {len(input_shape)} "
                             f"inputs in layer {self.name!r}")
        self._check(input_shape)

    def _check(self, shapes):
        first = shapes[0]
        for other in shapes[1:]:
            for a, b in zip(reversed(tuple(first)[1:]), reversed(tuple(other)[1:])):
                if a is not None and b is not None and a != b and 1 not in (a, b):
                    raise ValueError(f"Inputs have incompatible shapes. Received shapes {tuple(first)[1:]} and "
                                     f"{tuple(other)[1:]} in layer {self.name!r}")

    def call(self, inputs):
        """Computes."""
        # Ranks that differ are made one after the batch.
        rank = max(t.ndim for t in inputs)
        same = []
        for tensor in self._agreed(inputs):
            while tensor.ndim < rank:
                tensor = _t.expand_dims(tensor, 1)
            same.append(tensor)
        return self._merge(same)

    def _agreed(self, inputs):
        """The inputs, integers beside floats as floats."""
        dtypes = {t.dtype.name for t in inputs}
        mixed = len(dtypes) > 1 and any(t.dtype.is_floating for t in inputs)
        return [_t.cast(t, self.compute_dtype) for t in inputs] if mixed else list(inputs)

    def _merge(self, inputs):
        made = inputs[0]
        for other in inputs[1:]:
            made = self._pair(made, other)
        return made

    def compute_mask(self, inputs, mask=None):
        """Where one of the inputs has something; none where one of them has no mask."""
        if not mask or any(m is None for m in mask):
            return None
        made = mask[0]
        for other in mask[1:]:
            made = made | other
        return made


class Add(_Merge):
    """The sum."""

    _pair = staticmethod(operator.add)


class Subtract(_Merge):
    """The difference of two."""

    _pair = staticmethod(operator.sub)

    def _check(self, shapes):
        if len(shapes) != 2:
            raise ValueError(f"A `Subtract` layer should be called on exactly 2 inputs. Received: {len(shapes)}")
        super()._check(shapes)


class Multiply(_Merge):
    """The product."""

    _pair = staticmethod(operator.mul)

    def call(self, inputs, mask=None):
        """Computes. What is masked counts as 1, as in Keras; where all is, the product is 0."""
        mask = mask or [None] * len(inputs)
        wide = [None if m is None else _t.expand_dims(m, -1) for m in mask]
        inputs = [x if m is None else _t.where_(m, x, _t.ones_like(x)) for x, m in zip(inputs, wide)]
        made = super().call(inputs)
        some = self.compute_mask(inputs, wide)
        return made if some is None else _t.where_(some, made, _t.zeros_like(made))


class Average(_Merge):
    """The mean."""

    _takes_floats = True

    _pair = staticmethod(operator.add)

    def _merge(self, inputs):
        return super()._merge(inputs) / float(len(inputs))


class _Extreme(_Merge):
    """The largest or the smallest; of the inputs that a mask leaves out at a step, none is asked."""

    def call(self, inputs, mask=None):
        """Computes."""
        mask = mask or [None] * len(inputs)
        wide = [None if m is None else _t.expand_dims(m, -1) for m in mask]
        made, known = inputs[0], wide[0]
        for other, there in zip(inputs[1:], wide[1:]):
            other = other if there is None else _t.where_(there, other, made)
            made = made if known is None else _t.where_(known, made, other)
            known = None if there is None or known is None else known | there
            made = super().call([made, other])
        return made


class Maximum(_Extreme):
    """The largest."""

    _pair = staticmethod(lambda a, b: _maximum(a, b))


class Minimum(_Extreme):
    """The smallest."""

    _pair = staticmethod(lambda a, b: _minimum(a, b))


class Concatenate(_Merge):
    """One after the other along an axis."""

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def _check(self, shapes):
        rank = len(shapes[0])
        for other in shapes:
            rest = [(a, b) for i, (a, b) in enumerate(zip(shapes[0], other)) if i != self.axis % rank]
            if len(other) != rank or any(a is not None and b is not None and a != b for a, b in rest):
                raise ValueError(f"A `Concatenate` layer requires inputs with matching shapes except for the concatenation "
                                 f"axis. Received: input_shape={[tuple(s) for s in shapes]} in layer {self.name!r}")

    def call(self, inputs):
        """Computes."""
        return _t.concat(self._agreed(inputs), self.axis)

    def compute_mask(self, inputs, mask=None):
        """The masks one after the other; where one of them has something, if it is the last axis that grows."""
        if not mask or all(m is None for m in mask):
            return None
        if self.axis % inputs[0].ndim == inputs[0].ndim - 1:
            return super().compute_mask(inputs, mask)
        masks = [_t.ones_like(_t.cast(x[..., 0], "bool")) if m is None else m for x, m in zip(inputs, mask)]
        return _t.concat(masks, self.axis) if self.axis % inputs[0].ndim < masks[0].ndim else masks[0]


class Dot(_Merge):
    """The product along one axis of each."""

    def __init__(self, axes, normalize=False, **kwargs):
        super().__init__(**kwargs)
        self.axes, self.normalize = axes, normalize

    def _check(self, shapes):
        a, b = self._axes([len(s) for s in shapes])
        if None not in (shapes[0][a], shapes[1][b]) and shapes[0][a] != shapes[1][b]:
            raise ValueError(f"Incompatible input shapes: axis values {shapes[0][a]} (at axis {a}) != {shapes[1][b]} (at axis "
                             f"{b}). Full input shapes: {tuple(shapes[0])}, {tuple(shapes[1])} in layer {self.name!r}")

    def _axes(self, ranks):
        axes = [self.axes] * 2 if isinstance(self.axes, int) else list(self.axes)
        return [axis % rank for axis, rank in zip(axes, ranks)]

    def call(self, inputs):
        """Computes."""
        x, y = inputs
        a, b = self._axes([x.ndim, y.ndim])
        if self.normalize:
            x, y = _t.l2_normalize(x, a, epsilon() ** 2), _t.l2_normalize(y, b, epsilon() ** 2)
        letters = iter("bcdefghij")
        batch, summed = next(letters), "z"
        left = [batch] + [summed if i == a else next(letters) for i in range(1, x.ndim)]
        right = [batch] + [summed if i == b else next(letters) for i in range(1, y.ndim)]
        rest = [n for n in left[1:] + right[1:] if n != summed]
        made = _t.einsum(f"{''.join(left)},{''.join(right)}->{batch}{''.join(rest)}", [x, y])
        return _t.expand_dims(made, -1) if made.ndim == 1 else made

    def compute_mask(self, inputs, mask=None):
        """None: the steps of the inputs are no longer there."""
        return None


class Operator(Layer):
    """An operator between symbolic inputs, or of one with a constant."""

    def __init__(self, op, constant=None, swapped=False, **kwargs):
        super().__init__(**{"name": None, **kwargs})
        self.op, self.constant, self.swapped = op, constant, swapped

    def call(self, inputs):
        """Computes."""
        run = getattr(operator, self.op)
        if isinstance(inputs, (list, tuple)):
            first, second = inputs
        elif self.constant is None:
            return run(inputs)
        else:
            first, second = inputs, self.constant
        return run(second, first) if self.swapped else run(first, second)


class GetItem(Layer):
    """Parts of a symbolic input."""

    def __init__(self, key, **kwargs):
        super().__init__(**kwargs)
        self.key = key

    def call(self, inputs):
        """Computes."""
        return inputs[self.key]

    def get_config(self):
        """What it was made with, as plain data."""
        keys = self.key if isinstance(self.key, tuple) else (self.key,)
        plain = [{"slice": [k.start, k.stop, k.step]} if isinstance(k, slice) else "..." if k is Ellipsis else k
                 for k in keys]
        return {"key": plain, "name": self.name, "dtype": serialize_keras_object(self.dtype_policy)}

    @classmethod
    def from_config(cls, config):
        """Made again from what :meth:`get_config` gave."""
        keys = tuple(slice(*k["slice"]) if isinstance(k, dict) else Ellipsis if k == "..." else k for k in config["key"])
        return cls(keys, name=config["name"])


def _function(cls):
    def merge(inputs, **kwargs):
        return cls(**kwargs)(inputs)

    merge.__name__, merge.__doc__ = cls.__name__.lower(), cls.__doc__
    return merge


add, subtract, multiply, average, maximum, minimum = map(_function, (Add, Subtract, Multiply, Average, Maximum, Minimum))


def concatenate(inputs, axis=-1, **kwargs):
    """One after the other along an axis."""
    return Concatenate(axis, **kwargs)(inputs)


def dot(inputs, axes=-1, **kwargs):
    """The product along one axis of each."""
    return Dot(axes, **kwargs)(inputs)
