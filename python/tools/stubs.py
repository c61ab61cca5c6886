"""Writes the type stubs of the package from what it has: ``python tools/stubs.py`` in an environment where it is installed.

Each module that holds a public name has a stub. Names, parameters and defaults are those of the objects themselves, as
``inspect.signature`` gives them; types are those of ``stub_types.py``. The result is checked in, and a test compares it with what would
be written. ``_typing.pyi`` alone is written by hand.
"""

import ast
import builtins
import collections
import functools
import importlib
import inspect
import math
import pathlib
import pkgutil
import re
import textwrap

import stub_names as known
import stub_results as results
import stub_types as types
import stub_written as by_hand
import tonnage
from tonnage import _tonnage

HEAD = '"""Written by python/tools/stubs.py; change that, or the package, not this."""\n'
WORD = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
PLAIN = {bool: "bool", int: "int", float: "float", str: "str", type(None): "None", _tonnage.DType: "DType"}


@functools.cache
def modules():
    """Every module of the package, by its name."""
    names = [module.name for module in pkgutil.walk_packages(tonnage.__path__, "tonnage.")]
    return {name: importlib.import_module(name) for name in ["tonnage", *names]}


def short(name, *parts):
    """A name as the tables have it: without that of the package."""
    return ".".join([*name.split(".")[1:], *parts])


@functools.cache
def ops():
    """The module that each op of the table was made in, which it does not know itself."""
    return {id(value): name for name in ("tonnage.bitwise", "tonnage.nn", "tonnage.math")
            for value in vars(modules()[name]).values() if isinstance(value, _tonnage.Op)}


def home(value):
    """The module that a class or a function is written in; none for other values, and for what is not of the package."""
    if isinstance(value, _tonnage.Op):
        return ops().get(id(value))
    if inspect.isclass(value) and vars(_tonnage).get(value.__name__) is value:
        return "tonnage._tonnage"
    written_in = value.__module__ if inspect.isclass(value) or inspect.isfunction(value) else None
    return written_in if written_in in modules() else None


def own_name(value):
    """What a class or a function is called in its home."""
    names = vars(modules()[home(value)])
    name = value.__name__
    return name if names.get(name) is value else next(key for key, other in names.items() if other is value)


@functools.cache
def source(name):
    """The source of a module: its lines and its statements; nothing of the extension."""
    file = pathlib.Path(modules()[name].__file__)
    text = file.read_text(encoding="utf-8") if file.suffix == ".py" else ""
    return text.splitlines(), ast.parse(text).body


def passed_on(name):
    """The names that a module gives on from others: imports that are marked as such, and assignments."""
    lines, statements = source(name)
    for node in statements:
        if isinstance(node, ast.ImportFrom) and "F401" in lines[node.lineno - 1]:
            for alias in node.names:
                every = vars(importlib.import_module("." * node.level + node.module, name)) if alias.name == "*" else ()
                yield from every or [alias.asname or alias.name]
        elif isinstance(node, ast.Assign):
            yield from (part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name))


@functools.cache
def public(name):
    """The public names of a module and their values."""
    module = modules()[name]
    lazy = known.LAZY.get(name, ())
    values = {**{key: getattr(module, key) for key in lazy}, **vars(module)}
    own = {key for key, value in values.items() if home(value) == name or type(value) in PLAIN}
    chosen = {*getattr(module, "__all__", ()), *passed_on(name), *lazy, *own}
    return {key: values[key] for key in sorted(chosen) if not key.startswith("_")}


@functools.cache
def reached():
    """The modules that public names lead to, from ``tonnage`` on."""
    found, rest = [], ["tonnage"]
    while rest:
        name = rest.pop()
        if name not in found and name in modules():
            found.append(name)
            rest += [value.__name__ for value in public(name).values() if inspect.ismodule(value)]
    return found


@functools.cache
def shown():
    """All that has a stub: what public names stand for, the bases of classes, what types name. Its modules by its identity."""
    values = [value for name in reached() for value in public(name).values()]
    values += [vars(modules()[module])[name] for name, module in known.HOMES.items() if module in modules()]
    values += [base for value in values if inspect.isclass(value) for base in value.__mro__]
    return {id(value): home(value) for value in values if home(value)}


def needed():
    """The modules that have a stub."""
    return sorted({*reached(), *shown().values()})


@functools.cache
def attributes(cls):
    """The public attributes that the methods of a class give its objects, as far as no base has them."""
    body = [node for node in source(home(cls))[1] if isinstance(node, ast.ClassDef) and node.name == cls.__qualname__]
    found = {node.attr for tree in body for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
             and isinstance(node.value, ast.Name) and node.value.id == "self" and not node.attr.startswith("_")}
    found.update(known.ATTRIBUTES.get(short(home(cls), cls.__qualname__), ()))
    of_bases = {key for base in cls.__mro__[1:] if home(base) for key in attributes(base)}
    return sorted(found - of_bases - set(dir(cls)))


def default(parameter):
    """A default as a stub shows it."""
    value = parameter.default
    if value is parameter.empty:
        return ""
    literal = value is None or isinstance(value, (bool, int, str)) or isinstance(value, float) and math.isfinite(value)
    return f" = {value!r}" if literal else " = ..."


class Stub:
    """The stub of one module, as it grows."""

    def __init__(self, name):
        self.name = name
        values = public(name)
        if name not in reached():
            values = {key: value for key, value in values.items() if shown().get(id(value)) == name}
        self.own = {key: value for key, value in values.items() if home(value) == name or type(value) in PLAIN}
        self.others = {key: value for key, value in values.items() if home(value) not in (None, name) or inspect.ismodule(value)}
        self.imports = collections.defaultdict(set)
        self.private = []

    def typed(self, text, hidden=()):
        """A type, with what it names imported. Builtins that the module or the class has names for are named in full."""
        for word in sorted(set(WORD.findall(text))):
            if word in vars(builtins) and (word in hidden or word in self.own):
                self.imports["builtins"].add(None)
                text = re.sub(rf"(?<![\w.]){word}\b", f"builtins.{word}", text)
            elif word == "np":
                self.imports["numpy"].add(None)
            elif word in known.HOMES and known.HOMES[word] != self.name and word not in self.own:
                self.imports[known.HOMES[word]].add((word, None))
            elif inspect.isclass(vars(modules()[self.name]).get(word)) and home(vars(modules()[self.name])[word]) == self.name:
                self.reference(vars(modules()[self.name])[word])
        return text

    def reference(self, cls):
        """How another class is named here. A private one of this module is written too; those of others get a private name."""
        name = own_name(cls)
        if home(cls) == self.name:
            if name not in self.own and name not in self.private:
                self.private.append(name)
            return name
        alias = "_" + name.lstrip("_")
        self.imports[home(cls)].add((name, alias))
        return alias

    def parameter(self, where, parameter, hidden):
        """One parameter: its type goes by what it is of, by its name, by its default."""
        name, keras = parameter.name, where.startswith("keras.")
        variadic = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        text = types.EXACT.get(f"{where}.{name}")
        if text is None and not variadic:
            text = types.of_method(where) or (types.KERAS if keras else types.PARAMETERS).get(name) or types.by_suffix(name)
        if text is None and isinstance(parameter.default, (bool, int, float, str)):
            number = not isinstance(parameter.default, (bool, str)) and short(self.name) in results.GIVE_TENSORS
            text = "TensorLike" if number else PLAIN[type(parameter.default)]
        text = text or "Any"
        if parameter.default is None and not re.search(r"\b(None|Any|object)$", text):
            text += " | None"
        return f"{variadic}{name}: {self.typed(text, hidden)}{default(parameter)}"

    def parameters(self, where, found, hidden):
        """The parameters of a function, with the marks between their kinds."""
        parts = []
        for before, parameter in zip([None, *found], found):
            if before and before.kind is before.POSITIONAL_ONLY is not parameter.kind:
                parts.append("/")
            if parameter.kind is parameter.KEYWORD_ONLY and (
                    not before or before.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)):
                parts.append("*")
            bound = before is None and parameter.name in ("self", "cls")
            parts.append(parameter.name if bound else self.parameter(where, parameter, hidden))
        if found and found[-1].kind is inspect.Parameter.POSITIONAL_ONLY:
            parts.append("/")
        return ", ".join(parts)

    def function(self, name, value, where, hidden=(), mark=None):
        """The lines of a function."""
        if where in by_hand.WRITTEN:
            lines = self.typed(by_hand.WRITTEN[where], hidden).split("\n")
            return [part for line in lines for part in ([mark, line] if mark and line.startswith("def ") else [line])]
        if where in by_hand.OVERRIDDEN:
            shown = self.typed("self, *args: Any, **kwargs: Any", hidden)
        else:
            shown = self.parameters(where, list(inspect.signature(value).parameters.values()), hidden)
        gives = self.typed(results.result(where, short(self.name)), hidden)
        ignored = self.ignored(where, name in ("__eq__", "__ne__") and "bool" not in gives)
        return [*([mark] if mark else []), f"def {name}({shown}) -> {gives}: ...{ignored}"]

    def ignored(self, where, narrower=False):
        """The comment on what does not fit the base: a type checker would refuse the stub."""
        return "  # type: ignore[override]" if narrower or where in by_hand.NARROWER else ""

    def member(self, name, value, where, hidden):
        """The lines of a member of a class."""
        mark = {staticmethod: "@staticmethod", classmethod: "@classmethod"}.get(type(value))
        if where in by_hand.WRITTEN and name != "__init__":
            return self.function(name, value, where, hidden, mark)
        if name.startswith("_") and name not in known.DUNDERS or where in known.HIDDEN or value is None and name == "__hash__":
            return []
        if isinstance(value, property) or inspect.isgetsetdescriptor(value):
            gives = self.typed(results.result(where, short(self.name)), hidden)
            set_by = [f"@{name}.setter", f"def {name}(self, value: {gives}) -> None: ..."]
            return ["@property", f"def {name}(self) -> {gives}: ...{self.ignored(where)}", *(set_by if getattr(value, "fset", None) else [])]
        value = value.__func__ if mark else value
        if mark == "@staticmethod" and home(value) and vars(modules()[home(value)]).get(value.__qualname__) is value:
            where = short(home(value), value.__qualname__)  # a function of a module, under another name
        if inspect.isclass(value):
            return [f"{name}: {self.typed('TypeAlias')} = {self.reference(value)}"] if home(value) else []
        if callable(value):
            return self.function(name, value, where, hidden, mark)
        if inspect.ismemberdescriptor(value):
            return []
        text = results.RESULTS.get(where) or ("Any" if value is None else PLAIN.get(type(value), "Any"))
        return [f"{name}: {self.typed(text, hidden)}"]

    def cls(self, name, value):
        """The lines of a class."""
        where = short(self.name, name)
        if hasattr(value, "_fields"):
            bases = self.typed("NamedTuple")
            body = [f"{field}: {self.typed(results.result(f'{where}.{field}', short(self.name)))}"
                    + ("  # type: ignore[assignment]" if hasattr(tuple, field) else "") for field in value._fields]
        else:
            bases = self.typed(by_hand.BASES[where]) if where in by_hand.BASES else ", ".join(
                self.reference(base) if home(base) else base.__name__ for base in value.__bases__ if base is not object)
            # What a base has, or only the interpreter sees, is written where the table has it.
            more = {key.rpartition(".")[2] for key in by_hand.WRITTEN if key.rpartition(".")[0] == where}
            own = {**dict.fromkeys(more), **vars(value)}
            hidden = set(own)
            body = [f"{key}: {self.typed(results.result(f'{where}.{key}', short(self.name)), hidden)}" for key in attributes(value)]
            if f"{where}.__init__" in by_hand.WRITTEN:
                body += self.function("__init__", value, f"{where}.__init__", hidden)
            elif "__init__" in vars(value) or "__new__" in vars(value) and where not in known.HIDDEN:
                taken = self.parameters(f"{where}.__init__", list(inspect.signature(value).parameters.values()), hidden)
                body.append(f"def __init__({', '.join(filter(None, ['self', taken]))}) -> None: ...")
            of_bases = {key for base in value.__mro__[1:] if home(base) for key in attributes(base)}
            for key in sorted(set(own) - of_bases):
                body += self.member(key, own[key], f"{where}.{key}", hidden)
        return [f"class {name}({bases}):" if bases else f"class {name}:", *("    " + line for line in body or ["..."])]

    def value(self, name, value):
        """The lines of a name of the module."""
        if inspect.isclass(value):
            return self.cls(name, value)
        if home(value):
            return self.function(name, value, short(self.name, name))
        return [f"{name}: {self.typed(PLAIN[type(value)])}"]

    def written(self):
        """The text of the stub."""
        body = [self.typed(line) for line in by_hand.FIRST.get(short(self.name), ())]
        shown = {}
        for key, value in self.own.items():
            first = own_name(value) if home(value) and own_name(value) in self.own else key
            shown[key] = self.value(key, value) if key == first else [f"{key} = {first}"]
        for key in self.private:  # grows as they name each other
            shown[key] = self.value(key, vars(modules()[self.name])[key])
        # Names that stand for others come after those.
        for key in sorted(shown, key=lambda key: (len(shown[key]) == 1 and " = " in shown[key][0].partition("(")[0], key)):
            body += shown[key]
        for key, value in self.others.items():
            module, _, name = value.__name__.rpartition(".") if inspect.ismodule(value) else (home(value), ".", own_name(value))
            # A name is passed on where it is imported as itself; another name for it has to be given to it.
            alias = key if key == name else "_" + name.lstrip("_")
            self.imports[module].add((name, alias))
            body += [f"{key} = {alias}"] if key != name else []
        return HEAD + "".join(f"\n{line}" for line in [*self.imported(), "", *body]) + "\n"

    def imported(self):
        """The lines of the imports; ``as`` makes a name public."""
        for module, names in sorted(self.imports.items()):
            if None in names:
                yield f"import {module}" + (" as np" if module == "numpy" else "")
            parts = [f"{name} as {alias}" if alias else name for name, alias in sorted(names - {None}, key=str)
                     if alias or (name, name) not in names]
            line = f"from {module} import {', '.join(parts)}"
            if parts and len(line) > 132:
                rows = textwrap.wrap(", ".join(part.replace(" ", "~") for part in parts), 128, break_long_words=False)
                yield from [f"from {module} import (", *(f"    {row}".replace("~", " ") for row in rows), ")"]
            elif parts:
                yield line


def written(name):
    """The text of the stub of a module."""
    return Stub(name).written()


def path(name):
    """The file of the stub of a module."""
    file = pathlib.Path(__file__).parent.parent / name.replace(".", "/")
    return file / "__init__.pyi" if file.is_dir() else file.with_suffix(".pyi")


def main():
    for name in needed():
        path(name).write_text(written(name), encoding="utf-8")


if __name__ == "__main__":
    main()
