"""What Tonnage has to tell without being asked, once each, as Python warnings."""

import functools
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


def ignores(where, *names):
    """Decorates a function that takes arguments which change nothing here: one that asks for something warns once."""
    def decorate(function):
        code, given = function.__code__, function.__defaults__ or ()
        first = code.co_argcount - len(given)
        known = {**{code.co_varnames[first + i]: d for i, d in enumerate(given)}, **(function.__kwdefaults__ or {})}
        places = [(name, code.co_varnames.index(name), known[name]) for name in names]

        @functools.wraps(function)
        def call(*args, **kwargs):
            for name, at, default in places:
                value = args[at] if at < min(len(args), code.co_argcount) else kwargs.get(name, default)
                if value is not default and value != default:
                    once((where, name), f"{where}: {name} has no effect here")
            return function(*args, **kwargs)

        return call

    return decorate


def refuse(where, unknown):
    """Raises where arguments were given that nobody knows."""
    if unknown:
        raise TypeError(f"{where} got unexpected keyword arguments: {', '.join(sorted(unknown))}")


def tell(text):
    """Warns."""
    warnings.warn(text, TonnageWarning, stacklevel=3)


_t.listen(tell)
