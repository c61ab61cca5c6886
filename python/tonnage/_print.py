"""``tf.print``: values when the program runs, in functions too."""

import sys

from . import _nest
from . import _tonnage as _t


def print(*inputs, output_stream=None, end="\n", sep=" ", summarize=3, name=None):
    """Prints values when the program comes here; in a function each time that it runs.

    Of long axes the first and the last ``summarize`` elements are shown; -1 shows all.

    >>> tf.print("values:", tf.range(10), output_stream=sys.stdout)
    values: [0 1 2 ... 7 8 9]
    """
    leaves = [leaf for value in inputs for leaf in _nest.flatten(value)]
    tensors = [leaf for leaf in leaves if isinstance(leaf, (_t.Tensor, _t.Variable))]

    def show(values):
        rest = iter(values)

        def text(leaf):
            return summary(next(rest), summarize) if isinstance(leaf, (_t.Tensor, _t.Variable)) else str(leaf)

        texts = []
        for value in inputs:
            if _nest.is_nested(value):
                made = [leaf if isinstance(leaf, str) else _Plain(text(leaf)) for leaf in _nest.flatten(value)]
                texts.append(str(_nest.pack_sequence_as(value, made)))
            else:
                texts.append(text(value))
        line = sep.join(texts) + end
        if isinstance(output_stream, str) and output_stream.startswith("file://"):
            with open(output_stream[7:], "a", encoding="utf-8") as file:
                file.write(line)
        else:
            (output_stream or sys.stderr).write(line)
        return []

    given = [_t.to_tensor(t, None, None) for t in tensors]
    if any(t.is_symbolic for t in given) or _t.is_tracing():
        _t.host_callback(show, given, [])
    else:
        show(given)


class _Plain:
    """Text that stands in a list without quotes."""

    def __init__(self, text):
        self._text = text

    def __repr__(self):
        return self._text


def summary(tensor, edge):
    """The elements of a tensor as text; of long axes the first and the last few. Reads no more than is shown."""
    edge = -1 if edge is None else int(edge)

    def shown(tensor, depth):
        if tensor.ndim == 0:
            return _element(tensor.item(), tensor.dtype)
        length = tensor.lengths[0]
        short = edge < 0 or length <= 2 * edge
        places = range(length) if short else [*range(edge), *range(length - edge, length)]
        if tensor.ndim == 1:
            parts = [_element(v, tensor.dtype) for v in (tensor.numpy() if short else [tensor[i].item() for i in places])]
        else:
            parts = [shown(tensor[i], depth + 1) for i in places]
        if not short:
            parts.insert(edge, "...")
        between = " " if tensor.ndim == 1 else "\n" * (tensor.ndim - 1) + " " * (depth + 1)
        return "[" + between.join(parts) + "]"

    return shown(tensor, 0)


def _element(value, dtype):
    if dtype == "string":
        return _quoted(value)
    if dtype.is_bool:
        return str(int(value))
    if not dtype.is_floating:
        return str(value)
    # As few digits as say the number, of two choices that TensorFlow has.
    few, many, read = (15, 17, float) if dtype.name == "float64" else (6, 9, _as_float32)
    value = float(value)
    text = f"{value:.{few}g}"
    return text if read(text) == value or value != value else f"{value:.{many}g}"


def _as_float32(text):
    import numpy as np

    return float(np.float32(text))


_ESCAPES = {ord(k): v for k, v in {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}.items()}
_ESCAPES |= {code: f"\\{code:03o}" for code in [*range(32), 127] if code not in _ESCAPES}


def _quoted(text):
    """A string in quotes; bytes that are no text stay what they are."""
    return '"' + text.decode("utf-8", "surrogateescape").translate(_ESCAPES) + '"'
