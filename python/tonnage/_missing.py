"""Names that are not there: the error says which is nearest."""


def missing(module, name, names):
    """The error for a name that a module has not."""
    if name.startswith("__"):  # what Python itself asks for, as modules are imported
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    import difflib

    public = [n for n in names if not n.startswith("_")]
    near = difflib.get_close_matches(name, public, 1, 0.6)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")
