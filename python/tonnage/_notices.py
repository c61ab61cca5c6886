"""What Tonnage has to tell without being asked, once each, as Python warnings."""

import warnings

from . import _tonnage as _t

_told = set()


class TonnageWarning(UserWarning):
    """Something that a user will want to know."""


def once(key, text):
    """Warns the first time that ``key`` comes up."""
    if key not in _told:
        _told.add(key)
        warnings.warn(text, TonnageWarning, stacklevel=4)


def _heard(text):
    warnings.warn(text, TonnageWarning, stacklevel=3)


_t.listen(_heard)
