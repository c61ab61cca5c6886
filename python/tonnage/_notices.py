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


def no_effect(where, **given):
    """Warns once of arguments that ask for something, and change nothing here."""
    for name, asked in given.items():
        if asked:
            once((where, name), f"{where}: {name} has no effect here")


def tell(text):
    """Warns."""
    warnings.warn(text, TonnageWarning, stacklevel=3)


_t.listen(tell)
