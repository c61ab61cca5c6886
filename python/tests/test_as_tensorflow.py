"""``import tensorflow`` served by Tonnage: what is found, what is refused, how programs are started. Each in a process of its own."""

import os
import subprocess
import sys

import pytest

import tonnage

# Where the package under test lies: beside the sources there may be none that was built.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(tonnage.__file__)))


def run(*arguments, **environment):
    """Runs Python; what it printed, and what it wrote as errors."""
    variables = {**os.environ, "PYTHONPATH": PACKAGE, **environment}
    variables.pop("KERAS_BACKEND", None) if "KERAS_BACKEND" not in environment else None
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=variables)
    return done.stdout.strip(), done.stderr


def program(text, **environment):
    return run("-c", text, **environment)


FOUND = {
    "the module": ("import tensorflow as tf", "tf.constant([1, 2]).numpy().tolist()", "[1, 2]"),
    "the classes are Tonnage's": ("import tensorflow as tf, tonnage", "tf.Tensor is tonnage.Tensor", "True"),
    "a module below": ("import tensorflow.math as m", "float(m.sqrt(4.0))", "2.0"),
    "a name of a module": ("from tensorflow.nn import relu", "float(relu(-1.0))", "0.0"),
    "a class that is a module": ("from tensorflow.data.experimental import AUTOTUNE", "AUTOTUNE", "-1"),
    "a module that is loaded late": ("from tensorflow import data", "len(data.Dataset.range(3))", "3"),
    "inner names that Keras imports": ("from tensorflow.python.eager import context", "context.async_wait()", "None"),
    "the version of the names": ("import tensorflow as tf", "tf.__version__.split('.')[0] + tf.version.VERSION[:2]", "22."),
}


@pytest.mark.parametrize("case", FOUND, ids=str)
def test_finds(case):
    imports, value, expected = FOUND[case]
    out, errors = program(f"import tonnage\ntonnage.install()\ntonnage.install()\n{imports}\nprint({value})")
    assert (out, errors) == (expected, "")


MISSING = {
    "a name": ("import tensorflow as tf; tf.no_such_name", "AttributeError: module 'tonnage' has no attribute 'no_such_name'"),
    "a name that is meant": ("import tensorflow as tf; tf.nn.reLu", "did you mean 'relu'?"),
    "a module": ("import tensorflow.no_such_module", "ModuleNotFoundError: No module named 'tensorflow.no_such_module'"),
    "an inner module": ("import tensorflow.python.framework.ops", "ModuleNotFoundError: No module named 'tensorflow.python.framework.ops'"),
    "an inner name": ("from tensorflow.python.ops import math_ops; math_ops.add", "of its inner modules what Keras uses"),
    "an internal name": ("import tensorflow as tf; tf.__internal__.dispatch", "has no attribute 'dispatch'"),
}


@pytest.mark.parametrize("case", MISSING, ids=str)
def test_misses_in_plain_words(case):
    imports, words = MISSING[case]
    out, errors = program(f"import tonnage; tonnage.install()\n{imports}")
    assert words in errors.splitlines()[-1]


def test_another_tensorflow_is_refused(tmp_path):
    (tmp_path / "tensorflow.py").write_text("")
    out, errors = program("import tensorflow, tonnage; tonnage.install()", PYTHONPATH=f"{PACKAGE}{os.pathsep}{tmp_path}")
    assert errors.splitlines()[-1].startswith("ImportError: tonnage.install(): another tensorflow was imported before, from ")


def fake_keras(folder, version):
    """A package of that name and version, in which nothing is."""
    (folder / "keras").mkdir()
    (folder / "keras" / "__init__.py").write_text(f"__version__ = {version!r}")
    (folder / f"keras-{version}.dist-info").mkdir()
    (folder / f"keras-{version}.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: keras\nVersion: {version}\n")
    return f"{folder}{os.pathsep}{PACKAGE}"


@pytest.mark.parametrize("version, taken", [("3.14.2", False), ("3.15.0", True), ("3.15.9", True), ("3.16.0", False), ("4.0.0rc1", False)])
def test_versions_of_keras(tmp_path, version, taken):
    out, errors = program("import tonnage; tonnage.install(); import keras; print(keras.__version__)", PYTHONPATH=fake_keras(tmp_path, version))
    if taken:
        assert (out, errors) == (version, "")
    else:
        last = errors.splitlines()[-1]
        assert last.startswith(f"ImportError: keras {version} is installed, but Tonnage runs keras from 3.15 up to, without, 3.16")


def test_keras_that_was_imported_before_is_refused(tmp_path):
    out, errors = program("import keras, tonnage; tonnage.install()", PYTHONPATH=fake_keras(tmp_path, "3.15.0"))
    assert "keras was imported before" in errors.splitlines()[-1]


def test_another_backend_is_refused():
    out, errors = program("import tonnage; tonnage.install()", KERAS_BACKEND="jax")
    assert "KERAS_BACKEND is 'jax'" in errors.splitlines()[-1]


def test_importing_tonnage_loads_none_of_it():
    out, errors = program("import sys, tonnage; print([m for m in sys.modules if 'tensorflow' in m or 'keras' in m or m.endswith('distribute')])")
    assert (out, errors) == ("[]", "")


PROGRAM = "import sys, tensorflow as tf\nif __name__ == '__main__':\n    print(sys.argv[1:], int(tf.add(1, 2)))\n"


def test_programs_modules_and_commands_are_run(tmp_path):
    (tmp_path / "its_own.py").write_text("value = 3")
    (tmp_path / "program.py").write_text("import its_own\n" + PROGRAM)
    expected = "['a', '-b'] 3"
    assert run("-m", "tonnage", str(tmp_path / "program.py"), "a", "-b") == (expected, "")
    assert run("-m", "tonnage", "-c", PROGRAM, "a", "-b") == (expected, "")
    assert run("-m", "tonnage", "-m", "program", "a", "-b", PYTHONPATH=f"{PACKAGE}{os.pathsep}{tmp_path}") == (expected, "")


def test_nothing_to_run_is_told():
    assert run("-m", "tonnage")[1].startswith("usage: python -m tonnage")
    assert run("-m", "tonnage", "--help")[0].startswith("usage: python -m tonnage")
