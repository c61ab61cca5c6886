"""What layers ask of their inputs, and layers that differ in the rank of those alone."""
from ..._notices import ignores


class InputSpec:
    """What a layer asks of an input: its rank, and lengths of axes."""

    @ignores("InputSpec", "allow_last_axis_squeeze", "optional")
    def __init__(self, dtype=None, shape=None, ndim=None, max_ndim=None, min_ndim=None, axes=None,
                 allow_last_axis_squeeze=False, name=None, optional=False):
        self.dtype, self.shape = dtype, None if shape is None else tuple(shape)
        self.ndim = len(self.shape) if self.shape is not None else ndim
        self.max_ndim, self.min_ndim, self.axes = max_ndim, min_ndim, dict(axes or {})

    def check(self, layer, place, shape):
        """Raises where an input of that shape does not fit, naming the layer and both sides."""
        rank, start = len(shape), f'Input {place} of layer "{layer.name}" is incompatible with the layer: '
        received = f"Full shape received: {tuple(shape)}"
        if self.ndim is not None and rank != self.ndim:
            raise ValueError(f"{start}expected ndim={self.ndim}, found ndim={rank}. {received}")
        if self.max_ndim is not None and rank > self.max_ndim:
            raise ValueError(f"{start}expected max_ndim={self.max_ndim}, found ndim={rank}. {received}")
        if self.min_ndim is not None and rank < self.min_ndim:
            raise ValueError(f"{start}expected min_ndim={self.min_ndim}, found ndim={rank}. {received}")
        wanted = dict(self.axes)
        wanted.update({i: n for i, n in enumerate(self.shape or ()) if n is not None})
        for axis, length in wanted.items():
            if length is not None and shape[axis] not in (None, length):
                raise ValueError(f"{start}expected axis {axis} of input shape to have value {length}, but received input "
                                 f"with shape {tuple(shape)}")


def of_rank(module, base, name, rank, doc):
    """The class of a layer for sequences, images or volumes, of what they share."""
    return type(name, (base,), {"rank": rank, "__doc__": doc, "__module__": module})
