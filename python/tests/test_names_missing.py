"""Names that are not there: a suggestion is the same name, or one of the same kind, or there is none."""

import inspect
import random
import re

import pytest

import tonnage as tf

MODULES = [tf, tf.math, tf.nn, tf.linalg, tf.random, tf.memory, tf.data, tf.keras, tf.keras.layers, tf.debugging, tf.train, tf.config, tf.signal]

# Names of TensorFlow that are not here, and that are no misspellings of what is.
OTHERS = """strings io image sparse ragged lite sets summary test queue types quantization RaggedTensor SparseTensor Session save load
sequential Sequential string_split fingerprint guarantee_const TFRecordDataset TextVectorization AUTOTUNE foo bar html tempfile
contextlib inspect functools ignores refuse""".split()


def suggestion(module, name):
    try:
        getattr(module, name)
    except AttributeError as error:
        assert f"{module.__name__!r} has no attribute {name!r}" in str(error)
        found = re.search("did you mean '(.*)'", str(error))
        return found and found[1]
    return None


def kind(module, name):
    value = getattr(module, name)
    return "module" if inspect.ismodule(value) else "class" if inspect.isclass(value) else "other"


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_a_misspelled_name_finds_one_of_its_kind(module):
    rng, found, asked = random.Random(module.__name__), 0, 0
    # Of other modules, what is a module is a file that they are made of, or is imported.
    names = [n for n in dir(module) if not n.startswith("_") and len(n) > 5 and n != "ignores"
             and (module in (tf, tf.keras) or kind(module, n) != "module")]
    for name in rng.sample(names, min(60, len(names))):
        at = rng.randrange(1, len(name) - 1)
        for wrong in (name[:at] + name[at + 1:], name[:at] + name[at] + name[at:], name[:at] + name[at + 1] + name[at] + name[at + 2:]):
            if hasattr(module, wrong):
                continue
            meant = suggestion(module, wrong)
            asked += 1
            found += meant == name
            if meant is not None and meant.lower().replace("_", "") != wrong.lower().replace("_", ""):
                # A class for a class; what begins with a small letter may be a function, a module or a dtype.
                assert meant[0].isupper() == name[0].isupper(), (wrong, meant)
    assert found > 0.8 * asked > 0


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_another_name_finds_none(module):
    for name in OTHERS:
        meant = suggestion(module, name)
        assert meant is None or meant.lower() == name.lower(), (name, meant)


@pytest.mark.parametrize("module, wrong, meant", [
    (tf, "variable", "Variable"), (tf, "reduceSum", "reduce_sum"), (tf, "flaot32", "float32"), (tf, "kears", "keras"), (tf, "linlag", "linalg"),
    (tf.keras.layers, "dense", "Dense"), (tf.keras, "model", "Model"), (tf.nn, "Softmax", "softmax"), (tf.memory, "hmtl", None),
    (tf, "Session", None), (tf.keras, "layerss", "layers"),
])
def test_what_was_meant(module, wrong, meant):
    assert suggestion(module, wrong) == meant
    if meant is not None:
        assert kind(module, meant)


def test_a_module_of_tensorflow_that_is_not_here_is_called_that():
    with pytest.raises(AttributeError, match="'summary': it is a module of TensorFlow that Tonnage does not have"):
        tf.summary  # noqa: B018
    for name in ("linalg", "keras", "data"):
        assert inspect.ismodule(getattr(tf, name))
