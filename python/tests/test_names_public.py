"""Public names: a public module shows what its stub declares and nothing else, and what it shows has a doc. What a module
imports for itself is private to it."""

import ast
import inspect
import pathlib
import types

import pytest

import tonnage as tf


def declared(module):
    """The public names that a module's stub declares."""
    tree = ast.parse(pathlib.Path(module.__file__).with_suffix(".pyi").read_text())
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname for alias in node.names if alias.asname == alias.name)  # the others are the stub's own
    return {name for name in names if not name.startswith("_")}


def public_modules():
    """The package, and the modules that are reached by names that stubs declare."""
    found, left = {}, [tf]
    while left:
        module = left.pop()
        if module.__name__ not in found:
            found[module.__name__] = module
            parts = (getattr(module, name) for name in declared(module))
            left += [part for part in parts if isinstance(part, types.ModuleType)]
    return found


MODULES = public_modules()


def shown(module):
    """The public names of a module, without the files that a package consists of."""
    return {name for name in dir(module) if not name.startswith("_")
            and getattr(getattr(module, name), "__name__", None) != f"{module.__name__}.{name}"}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_shows_what_its_stub_declares(name):
    module = MODULES[name]
    assert sorted(shown(module) - declared(module)) == []


@pytest.mark.parametrize("name", sorted(MODULES))
def test_what_a_module_shows_has_a_doc(name):
    module = MODULES[name]
    assert inspect.getdoc(module)
    own = ((key, getattr(module, key)) for key in sorted(shown(module)))
    documented = ((key, value) for key, value in own if inspect.isclass(value) or callable(value))
    assert [key for key, value in documented if not inspect.getdoc(value)] == []


def test_the_modules_that_programs_import_are_among_them():
    expected = {"tonnage", "tonnage.memory", "tonnage.math", "tonnage.nn", "tonnage.random", "tonnage.data", "tonnage.keras",
                "tonnage.keras.layers", "tonnage.keras.saving", "tonnage.train", "tonnage.linalg"}
    assert expected <= MODULES.keys()


def test_a_name_that_leaks_is_found(monkeypatch):
    monkeypatch.setattr(tf.memory, "helper", len, raising=False)
    assert shown(tf.memory) - declared(tf.memory) == {"helper"}
