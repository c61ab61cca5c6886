"""What is known of elements before they come: which lengths are open, how many rows a batch has."""

from .. import _nest
from .._shape import TensorShape, TensorSpec


def _rows(source, size, drop):
    """The length of the first axis of batches, where all of them are full."""
    return size if drop or source._count() == -1 else None


def batch(source, size, drop):
    """Of elements that are stacked."""
    rows = _rows(source, size, drop)
    return _nest.map_structure(lambda s: TensorSpec([rows, *s.shape], s.dtype), source.element_spec)


def padded_batch(source, size, shapes, drop):
    """Of elements that are filled up."""
    element, rows, made = source.element_spec, _rows(source, size, drop), []
    for spec, shape in zip(_nest.flatten(element), _of_each(shapes, element, None)):
        inner = list(spec.shape) if shape is None else TensorShape(shape).as_list()
        made.append(TensorSpec([rows, *inner], spec.dtype))
    return _nest.pack_sequence_as(element, made)


def parted(element, ranks):
    """Of the part of each batch that one of several ranks gets."""
    def one(spec):
        rows = spec.shape[0] if len(spec.shape) else None
        return TensorSpec([rows // ranks if rows is not None and rows % ranks == 0 else None, *spec.shape[1:]], spec.dtype)

    return _nest.map_structure(lambda s: one(s) if isinstance(s, TensorSpec) else s, element)


def padding(element, shapes, values):
    """For each tensor of an element: the shape that it is filled up to, if one is given, and the number that fills it."""
    shapes = [None if shape is None else TensorShape(shape).as_list() for shape in _of_each(shapes, element, None)]
    values = [value.numpy() if hasattr(value, "numpy") else value for value in _of_each(values, element, 0)]
    # Empty strings are as zeros.
    values = [0 if value is None or value in ("", b"") else value.item() if hasattr(value, "item") else value for value in values]
    return list(zip(shapes, values))


def _of_each(given, element, usual):
    """What is given for each part of an element."""
    flat = _nest.flatten(element)
    if given is None:
        return [usual] * len(flat)
    if not isinstance(element, (tuple, dict)):
        return [given]
    if isinstance(given, (int, float)) or not isinstance(given, (tuple, dict, list)):
        return [given] * len(flat)
    parts = [given[k] for k in sorted(given)] if isinstance(given, dict) else list(given)
    if len(parts) != len(flat):
        raise ValueError(f"{len(parts)} shapes or values for {len(flat)} parts of an element")
    return parts


def either(first, second):
    """Of elements of one dataset or of another: lengths that differ are open."""
    a, b = first.element_spec, second.element_spec
    _nest.assert_same_structure(a, b)
    return _nest.map_structure(_general, a, b)


def _general(a, b):
    if not isinstance(a, TensorSpec) or not isinstance(b, TensorSpec):
        return a
    if a.dtype != b.dtype or len(a.shape) != len(b.shape):
        raise TypeError(f"Incompatible types of the datasets: {a} and {b}")
    return TensorSpec([m if m == n else None for m, n in zip(a.shape, b.shape)], a.dtype)


def rows(source):
    """Of the rows of elements."""
    return _nest.map_structure(lambda s: TensorSpec(list(s.shape)[1:], s.dtype), source.element_spec)


def first_length(source):
    """How many rows each element has, where that is known."""
    return next((s.shape[0] for s in _nest.flatten(source.element_spec) if len(s.shape)), None)
