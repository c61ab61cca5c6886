"""``tf.print``: values when the program runs, in functions too."""

import sys

from . import _nest
from . import _tonnage as _t


def print(*inputs, output_stream=None, end="\n", sep=" ", summarize=3, name=None):
    """Prints values when the program comes here; in a function each time that it runs."""
    leaves = [leaf for value in inputs for leaf in _nest.flatten(value)]
    tensors = [leaf for leaf in leaves if isinstance(leaf, (_t.Tensor, _t.Variable))]

    def show(values):
        rest = iter(values)
        texts = []
        for value in inputs:
            if _nest.is_nested(value):
                made = [next(rest).text() if isinstance(v, (_t.Tensor, _t.Variable)) else v for v in _nest.flatten(value)]
                texts.append(str(_nest.pack_sequence_as(value, made)).replace("'", ""))
            elif isinstance(value, (_t.Tensor, _t.Variable)):
                texts.append(next(rest).text())
            else:
                texts.append(str(value))
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

