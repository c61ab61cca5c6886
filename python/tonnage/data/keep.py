"""Elements that are kept, and elements that are made ahead of time."""

import json
import os

from .. import _nest
from .. import _tonnage as _t
from .threads import ahead
from .transforms import _Of


class Cache(_Of):
    """Elements kept in memory from the first whole pass on."""

    def __init__(self, source):
        super().__init__(source)
        self._kept = None

    def _iterate(self):
        if self._kept is not None:
            yield from self._kept
            return
        held = []
        for element in self._source._iterate():
            held.append(element)
            yield element
        self._kept = held


class FileCache(_Of):
    """Elements kept in a file from the first whole pass on, and read from there one at a time."""

    def __init__(self, source, path):
        super().__init__(source)
        self._path = os.fspath(path)

    def _iterate(self):
        if os.path.exists(self._path):
            yield from self._read()
            return
        held, first = [], None
        for number, element in enumerate(self._source._iterate()):
            first = element if first is None else first
            held.extend((f"{number}/{i}", part) for i, part in enumerate(_nest.flatten(element)))
            yield element
        if held:
            _t.save_tensors(self._path, held, [("elements", json.dumps(len(held) // len(_nest.flatten(first))))])

    def _read(self):
        file = _t.TensorFile(self._path)
        spec = self.element_spec
        count = len(_nest.flatten(spec))
        for number in range(json.loads(file.note("elements") or "0")):
            yield _nest.pack_sequence_as(spec, [file.read(f"{number}/{i}") for i in range(count)])


class Prefetch(_Of):
    """Elements made ahead of time."""

    def __init__(self, source, count):
        super().__init__(source)
        if count < -1:
            raise ValueError(f"`buffer_size` must be positive or tf.data.AUTOTUNE. Received: {count}")
        self._ahead = 2 if count == -1 else count

    def _iterate(self):
        return self._source._iterate() if self._ahead == 0 else ahead(self._source._iterate, self._ahead)


class IgnoreErrors(_Of):
    """Without the elements that raise an error as they are made."""

    def _iterate(self):
        items = self._source._iterate()
        while True:
            try:
                yield next(items)
            except StopIteration:
                return
            except (ArithmeticError, ValueError, RuntimeError):
                if getattr(items, "gi_frame", True) is None:
                    return  # a generator that failed has ended

    def _count(self):
        return -2 if self._source._count() >= 0 else self._source._count()
