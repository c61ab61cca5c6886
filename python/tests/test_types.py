"""Types: every public callable has a signature, the stubs say what is there, and a type checker accepts programs that are right and
refuses those that are wrong: the examples, the guide's programs and those of ``typed``."""

import ast
import dis
import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys
import typing

import pytest
import test_guide
import tonnage as tf

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPED = ROOT / "python" / "tests" / "typed"
sys.path.append(str(ROOT / "python" / "tools"))

import stub_names  # noqa: E402
import stub_results  # noqa: E402
import stub_types  # noqa: E402
import stub_written  # noqa: E402
import stubs  # noqa: E402

# What Python's types have no word for: a page, and what its lines hold that are refused.
WITHOUT_TYPES = {"functions": "counted.total"}  # an attribute of a function


def callables():
    """What can be called by a public name: ``(name, value)``, methods among them, but not those of Python's own classes."""
    seen = set()
    for module in stubs.reached():
        for name, value in stubs.public(module).items():
            if not stubs.home(value) or id(value) in seen:
                continue
            seen.add(id(value))
            yield f"{module}.{name}", value
            for part in inspect.getmro(value) if inspect.isclass(value) else ():
                for key, member in vars(part).items() if stubs.home(part) else ():
                    if not key.startswith("_") and callable(getattr(member, "__func__", member)) and id(member) not in seen:
                        seen.add(id(member))
                        yield f"{module}.{name}.{key}", getattr(value, key)


def test_every_public_callable_has_a_signature():
    found, without = 0, {}
    for name, value in callables():
        found += 1
        try:
            inspect.signature(value)
        except (TypeError, ValueError) as error:
            without[name] = str(error)
    assert found > 1000 and not without


def test_signatures_are_those_of_the_callables():
    assert str(inspect.signature(tf.abs)) == "(x, name=None)"
    assert str(inspect.signature(tf.math.atan2)) == "(y, x, name=None)"
    assert inspect.signature(tf.nn.relu).bind(tf.ones([2])).arguments.keys() == {"features"}

    class Scale:
        @tf.function
        def by(self, x, factor=2.0):
            return x * factor

    assert str(inspect.signature(Scale.by)) == "(self, x, factor=2.0)"
    assert str(inspect.signature(Scale().by)) == "(x, factor=2.0)"


def test_the_stubs_are_those_that_would_be_written():
    kept = {stubs.path(name): stubs.written(name) for name in stubs.needed()}
    there = {path for path in (ROOT / "python" / "tonnage").rglob("*.pyi") if path.name != "_typing.pyi"}
    assert there == set(kept), "run python/tools/stubs.py, and remove the stubs of modules that are gone"
    old = [path.name for path, text in kept.items() if path.read_text(encoding="utf-8") != text]
    assert not old, "run python/tools/stubs.py"


def test_the_package_ships_its_types():
    folder = pathlib.Path(tf.__file__).parent
    assert (folder / "py.typed").exists()
    for name in [*stubs.needed(), "tonnage._typing"]:
        path = stubs.path(name)
        assert (folder / path.relative_to(ROOT / "python" / "tonnage")).exists(), name


def nodes(body):
    """The statements of a module or a class by the names that they bind; those of overloads together."""
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.AnnAssign):
            found.setdefault(node.target.id, []).append(node)
        elif isinstance(node, ast.Assign):
            found.setdefault(node.targets[0].id, []).append(node)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found.setdefault(alias.asname or alias.name, []).append(node)
    return found


def parameters(node):
    """The parameters of a function of a stub, as ``inspect`` has them."""
    given, kind = node.args, inspect.Parameter
    plain = [(a, kind.POSITIONAL_ONLY) for a in given.posonlyargs] + [(a, kind.POSITIONAL_OR_KEYWORD) for a in given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + given.defaults
    found = [(a.arg, k, d) for (a, k), d in zip(plain, defaults)]
    found += [(given.vararg.arg, kind.VAR_POSITIONAL, None)] if given.vararg else []
    found += [(a.arg, kind.KEYWORD_ONLY, d) for a, d in zip(given.kwonlyargs, given.kw_defaults)]
    found += [(given.kwarg.arg, kind.VAR_KEYWORD, None)] if given.kwarg else []
    return [kind(name, k, default=kind.empty if d is None else ast.literal_eval(d)) for name, k, d in found]


def same(default, stubbed):
    """Whether a stub shows a default: dots stand for what has no literal."""
    if stubbed is ...:
        return default is not inspect.Parameter.empty and not isinstance(default, (bool, int, str, type(None)))
    return type(default) is type(stubbed) and default == stubbed


def differences(where, value, written, bound=False):
    """What a stub says of a callable that is not so."""
    real = list(inspect.signature(value).parameters.values())
    for node in written:
        told = parameters(node)[1 if bound else 0:]
        if where in stub_written.OVERRIDDEN and [p.name for p in told] == ["self", "args", "kwargs"]:
            continue
        # It does not matter how an object is handed over.
        kinds = [(p.name, None if p.name in ("self", "cls") else p.kind) for p in real]
        if kinds != [(p.name, None if p.name in ("self", "cls") else p.kind) for p in told]:
            yield f"{where}: {inspect.signature(value)} is written as ({ast.unparse(node.args)})"
            continue
        for ours, theirs in zip(real, told):
            # One overload may ask for what another has a default for.
            asked = len(written) > 1 and theirs.default is theirs.empty and any(
                same(ours.default, other.default) for n in written for other in parameters(n) if other.name == ours.name)
            if not asked and not same(ours.default, theirs.default):
                yield f"{where}: {ours} is written as {theirs}"


def of_class(where, cls, body):
    """What the stub of a class says of its members that is not so."""
    for name, member in vars(cls).items():
        member = getattr(member, "__func__", member)
        if name.startswith("_") or f"{where}.{name}" in stub_names.HIDDEN:
            continue
        written = body.get(name, [])
        if isinstance(member, property) or inspect.isgetsetdescriptor(member):
            inherited = any(name in stubs.attributes(base) for base in cls.__mro__[1:] if stubs.home(base))
            if not inherited and not (written and all(isinstance(n, ast.FunctionDef) and n.decorator_list for n in written)):
                yield f"{where}.{name}: a property is not in the stub"
        elif not written:
            if not inspect.ismemberdescriptor(member):
                yield f"{where}.{name} is not in the stub"
        elif isinstance(written[0], ast.FunctionDef):
            yield from differences(f"{where}.{name}", member, written)


@pytest.fixture(scope="module")
def trees():
    """The stubs: names and statements, by module."""
    return {module: nodes(ast.parse(stubs.path(module).read_text(encoding="utf-8")).body) for module in stubs.needed()}


@pytest.fixture(scope="module")
def classes(trees):
    """The classes of the stubs: their names in the tables, and the statements in them."""
    return {vars(stubs.modules()[module])[name]: (stubs.short(module, name), nodes(written[0].body))
            for module, tree in trees.items() for name, written in tree.items() if isinstance(written[0], ast.ClassDef)}


def test_the_stubs_have_all_public_names(trees):
    missing = [f"{module}.{name}" for module in stubs.reached() for name, value in stubs.public(module).items()
               if name not in trees[module] and (inspect.ismodule(value) or stubs.home(value))]
    # Of the package itself all that it shows, but for the file that modules are written in.
    missing += [name for name in dir(tf) if not name.startswith("_") and name not in trees["tonnage"] and name != "module"]
    assert not missing


def test_the_stubs_have_the_parameters_of_functions(trees):
    written = {(module, name): found for module, tree in trees.items() for name, found in tree.items()
               if isinstance(found[0], ast.FunctionDef)}
    wrong = [what for (module, name), found in written.items()
             for what in differences(stubs.short(module, name), vars(stubs.modules()[module])[name], found)]
    assert len(written) > 400 and not wrong, "\n".join(wrong)


def test_the_stubs_have_the_constructors_and_methods_of_classes(classes):
    wrong = []
    for cls, (where, body) in classes.items():
        if hasattr(cls, "_fields"):
            assert tuple(body) == cls._fields
            continue
        wrong += of_class(where, cls, body)
        # Its own constructor, or that of a base.
        told = next((classes[base][1]["__init__"] for base in cls.__mro__ if "__init__" in classes.get(base, [{}])[-1]), None)
        if told:
            wrong += differences(where + ".__init__", cls, told, bound=True)
        elif str(inspect.signature(cls)) not in ("()", "(*args, **kwargs)"):
            wrong.append(f"{where}: {inspect.signature(cls)} has no constructor in the stub")
    assert len(classes) > 200 and not wrong, "\n".join(wrong)


# What constructors of Keras ask for.
ASKED = {
    "activation": "relu", "axes": -1, "backup_dir": "folder", "boundaries": [1], "cell": tf.keras.layers.LSTMCell(2),
    "cells": [tf.keras.layers.LSTMCell(2)], "decay_rate": 0.5, "decay_steps": 3, "dims": (1,), "equation": "ab,bc->ac",
    "filename": "file", "filepath": "model.keras", "filters": 2, "first_decay_steps": 3, "fn": tf.keras.losses.mean_squared_error,
    "function": abs, "height": 2, "initial_learning_rate": 0.1, "inner_optimizer": tf.keras.optimizers.SGD(), "input_dim": 3,
    "kernel_size": 3, "key": 0, "key_dim": 2, "layer": tf.keras.layers.LSTM(2), "n": 2, "num_classes": 3, "num_heads": 2, "op": "add",
    "output_dim": 2, "output_shape": [3], "precision": 0.5, "rate": 0.5, "recall": 0.5, "scale": 2.0, "schedule": abs,
    "sensitivity": 0.5, "specificity": 0.5, "stddev": 0.1, "target_class_ids": [0], "target_shape": (2,), "units": 3, "values": [0.1, 0.2],
    "width": 2,
}
# What they ask for although it has a default.
ASKED_TOO = {"CategoryEncoding": {"num_tokens": 3}, "Discretization": {"bin_boundaries": [0.5]}, "InputLayer": {"shape": [2]}}


def test_the_stubs_have_the_attributes_that_objects_have(classes):
    missing, made = set(), 0
    for part in "layers losses metrics optimizers optimizers.schedules callbacks initializers regularizers constraints".split():
        for name, cls in stubs.public(f"tonnage.keras.{part}").items():
            if not inspect.isclass(cls) or name in ("CallbackList", "legacy"):
                continue
            asked = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
            thing = cls(**{p.name: ASKED[p.name] for p in asked}, **ASKED_TOO.get(name, {}))
            made += 1
            told = {key for base in cls.__mro__ if base in classes for key in classes[base][1]}
            missing |= {f"{cls.__module__}.{cls.__name__}.{key}" for key in vars(thing) if not key.startswith("_") and key not in told}
    assert made > 150 and not missing, "\n".join(sorted(missing))


def found(where):
    """What a row of a table is about: the value, or nothing where there is none. An attribute that methods give is itself."""
    parts = ["tonnage", *where.split(".")]
    split = next(i for i in range(len(parts), 0, -1) if ".".join(parts[:i]) in stubs.modules())
    value = stubs.modules()[".".join(parts[:split])]
    for part in parts[split:]:
        if inspect.isclass(value) and part in stubs.attributes(value):
            return part
        value = vars(value).get(part) or getattr(value, part, None)
    return value


def test_the_tables_of_types_have_no_row_for_what_is_gone():
    gone = []
    for where in stub_types.EXACT:
        owner, _, parameter = where.rpartition(".")
        value = found(owner.removesuffix(".__init__"))
        if value is None or parameter not in inspect.signature(getattr(value, "__func__", value)).parameters:
            gone.append(where)
    rows = [*stub_results.RESULTS, *stub_written.OVERRIDDEN, *stub_written.NARROWER, *stub_written.BASES, *stub_names.HIDDEN]
    gone += [where for where in rows if not where.startswith(".") and found(where) is None]
    used = {parameter for name, value in callables() for parameter in inspect.signature(value).parameters}
    gone += [name for table in (stub_types.PARAMETERS, stub_types.KERAS) for name in table if name not in used]
    assert not gone, gone


def test_differences_are_found():
    def real(a, b=1, *, c=None):
        pass

    for text, wrong in [("a, b=1, *, c=None", 0), ("a, b=2, *, c=None", 1), ("a, b, *, c=None", 1), ("a, d=1, *, c=None", 1),
                        ("a, b=1, c=None", 1), ("a, b=True, *, c=None", 1), ("a, b=..., *, c=None", 1), ("a, b=1", 1)]:
        assert len(list(differences("real", real, ast.parse(f"def real({text}): ...").body))) == wrong, text
    pair = ast.parse("def real(a, b, *, c=None): ...\ndef real(a, b=1, *, c=None): ...").body
    assert not list(differences("real", real, pair))
    assert same((), ...) and not same(inspect.Parameter.empty, ...)


def pages(folder):
    """The guide's programs as modules: those of a page one after the other, each with the names of those before it, which it may give
    new meanings. Lines are those of the page."""
    for page in test_guide.PAGES:
        known = {}
        for number, (line, program, _) in enumerate(test_guide.blocks(page.read_text(encoding="utf-8"))):
            name = f"guide_{re.sub(r'[^a-z]', '_', page.stem.lower())}_{number}"
            tree = ast.parse(program)
            again = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
            first = "; ".join(f"from {module} import {known_name}" for known_name, module in known.items() if known_name not in again)
            path = folder / f"{name}.py"
            path.write_text(first + "\n" * line + program, encoding="utf-8")
            # What the program stores is what it binds; variables of comprehensions are not.
            stored = (step.argval for step in dis.get_instructions(compile(tree, name, "exec")) if step.opname == "STORE_NAME")
            known |= dict.fromkeys(sorted(stored), name)
            yield path


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """What mypy refuses, by file: lines and reasons. One process for everything; what it knows of NumPy stays with the environment."""
    folder = tmp_path_factory.mktemp("pages")
    files = [*(ROOT / "python" / "tonnage").rglob("*.pyi"), *test_guide.PROGRAMS, *pages(folder), *sorted(TYPED.glob("*.py"))]
    made = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--cache-dir", os.path.join(sys.prefix, "mypy"), "--check-untyped-defs",
         # Lists that start empty, names that are given a new meaning, Keras, which has no types: these are not about the package.
         "--disable-error-code=var-annotated", "--disable-error-code=no-redef", "--disable-error-code=import-untyped", "--no-pretty", "--hide-error-context", "--no-error-summary", *map(str, files)],
        capture_output=True, text=True, cwd=folder, env={**os.environ, "MYPYPATH": f"{ROOT / 'python'}{os.pathsep}{folder}"})
    assert made.returncode in (0, 1), made.stdout + made.stderr
    found = {path.resolve(): [] for path in files}
    for file, line, what in re.findall(r"^(.+?):(\d+): error: (.*)$", made.stdout, re.M):
        found[(folder / file).resolve()].append((int(line), what))
    return found


def test_a_type_checker_accepts_what_is_right(refused):
    wrong = []
    for path, errors in refused.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        without = next((text for page, text in WITHOUT_TYPES.items() if path.stem.startswith(f"guide_{page}_")), None)
        wrong += [f"{path.name}:{line}: {what}" for line, what in errors if path.name != "wrong.py" and not (
            without and without in lines[line - 1])]
    assert len(refused) > 100 and not wrong, "\n".join(wrong)


def test_a_type_checker_refuses_what_is_wrong(refused):
    path = TYPED / "wrong.py"
    marked = {number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if "# wrong: " in line}
    found = {line for line, _ in refused[path]}
    assert len(marked) > 50 and found == marked, f"not refused: {marked - found}, refused: {found - marked}"


def is_a(value, told):
    """Whether a value is of a type, as far as it can be seen."""
    origin, inner = typing.get_origin(told), typing.get_args(told)
    if origin is None:
        return told is typing.Any or isinstance(value, told)
    return isinstance(value, origin) and all(is_a(part, inner[0]) for part in value)


def right(path):
    """A module of programs that are right."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAMS = [(path, node.name) for path in sorted(TYPED.glob("right*.py"))
            for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]


@pytest.mark.filterwarnings("ignore::tonnage._notices.TonnageWarning")
@pytest.mark.parametrize("path, program", PROGRAMS, ids=[name for _, name in PROGRAMS])
def test_what_is_right_runs_and_has_the_types_that_it_says(path, program, tmp_path, monkeypatch):
    def check(value, told):
        assert is_a(value, told), f"{value!r:.80} is no {told}"
        return value

    monkeypatch.setattr(typing, "assert_type", check)
    run = getattr(right(path), program)
    run(*([tmp_path] if inspect.signature(run).parameters else []))
