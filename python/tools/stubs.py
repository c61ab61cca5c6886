"""Writes the type stubs of the package from what it has: ``python tools/stubs.py`` in an environment where it is installed.

Ops come from the table through ``_names``; functions from their own signatures. The result is checked in, and a test compares
it with what would be written.
"""

import inspect
import pathlib

HEAD = '''"""Written by python/tools/stubs.py; change that, or the package, not this."""

from typing import Any, Callable

from tonnage._tonnage import DType, Plan, Tensor

'''
MODULES = ["", "math", "nn", "linalg", "random", "bitwise", "signal", "debugging", "memory"]


def text_of(value):
    """A default as a stub shows it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return "..."


def signature(function):
    """The arguments of a function, with their defaults."""
    parts, star = [], False
    for parameter in inspect.signature(function).parameters.values():
        kind, name = parameter.kind, parameter.name
        if kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{name}: Any")
            star = True
        elif kind is parameter.VAR_KEYWORD:
            parts.append(f"**{name}: Any")
        else:
            if kind is parameter.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            default = "" if parameter.default is parameter.empty else f" = {text_of(parameter.default)}"
            parts.append(f"{name}: Any{default}")
    return ", ".join(parts)


def stub(name, value):
    """The line of a name; none for what has no stub."""
    from tonnage import _tonnage

    if isinstance(value, _tonnage.Op):
        parameters = repr(value).partition("(")[2].partition(")")[0].split(", ")
        typed = ", ".join([*(f"{p}: Any" for p in parameters), "name: Any = None"])
        return f"def {name}({typed}) -> Tensor: ..."
    if isinstance(value, _tonnage.DType):
        return f"{name}: DType"
    if value is _tonnage.Tensor or value is _tonnage.DType or value is _tonnage.Plan:
        return None
    if inspect.isclass(value):
        return f"class {name}:\n    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n    def __getattr__(self, name: str) -> Any: ..."
    if inspect.isfunction(value):
        return f"def {name}({signature(value)}) -> Any: ..."
    return None


def written(module):
    """The stub of a module."""
    import tonnage

    of = getattr(tonnage, module) if module else tonnage
    lines = [stub(name, value) for name, value in sorted(vars(of).items()) if not name.startswith("_")]
    modules = []
    if not module:
        names = [m for m in MODULES if m] + ["config", "errors", "keras", "compat", "autograph", "nest", "profiler", "experimental",
                                             "data", "train", "initializers", "losses", "metrics", "optimizers"]
        modules = [f"{name}: Any" for name in sorted(names)] + ["newaxis: None"]
    return HEAD + "\n".join([*modules, *(line for line in lines if line)]) + "\n"


def main():
    folder = pathlib.Path(__file__).parent.parent / "tonnage"
    for module in MODULES:
        (folder / f"{module or '__init__'}.pyi").write_text(written(module), encoding="utf-8")
    (folder / "py.typed").write_text("", encoding="utf-8")


if __name__ == "__main__":
    main()
