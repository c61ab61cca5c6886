"""Runs the cases of the ``onnx`` package on Tonnage: ``python onnx_cases.py [--slice] [WORD ...]``, in an environment that has both.

The package generates a case for each use of each op, and ships older cases and whole classifiers whose weights are fills. Each is
compared with what the package expects, by its own tolerances. ``onnx_failures.txt`` has the cases that fail, by their reasons: a case that fails and is
not there ends the run with an error, and so does one that is there and passes. The list may only shrink. With words, only cases with
one of them in their names run; ``--slice`` runs every tenth; ``--write`` writes the list anew.
"""

import collections
import pathlib
import re
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests

import tonnage as tf

LIST = pathlib.Path(__file__).with_name("onnx_failures.txt")

# Shipped cases: folders of models and data.
SHIPPED = ("simple", "pytorch-converted", "pytorch-operator")

# What a file of a value holds, by the type of the model's input or output.
VALUES = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}

# Why numbers may differ, by a word in the name of a case.
DIFFERENT = {
    "bernoulli": "other numbers: random ones, of another generator than NumPy's",
    "dft": "other numbers: the package computes in f64, and tolerates an error of 1e-7 where the spectrum is 0",
    "attention": "other numbers: in 16 bits the package rounds after every op, and tolerates less than the last digit",
}


def listed():
    """The cases that are known to fail: ``{case: reason}``."""
    found, reason = {}, None
    for line in LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else ():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            found[line] = reason
    return found


def read(path, kind):
    """A value of a file."""
    proto = VALUES.get(kind, onnx.TensorProto)()
    proto.ParseFromString(path.read_bytes())
    return plain(proto)


def plain(value):
    """A value as NumPy has it."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def cases(words, tenth):
    """``(name, model's path or model, [(inputs, outputs)], rtol, atol)`` of each case."""
    found = []
    for case in collect_testcases(None):
        found.append((case.name, case.model, case.data_sets, case.rtol, case.atol))
    for kind in SHIPPED:
        for case in load_model_tests(kind=kind):
            folder = pathlib.Path(case.model_dir)
            found.append((f"{kind}/{case.name}", folder / "model.onnx", sorted(folder.glob("test_data_set_*")), case.rtol, case.atol))
    light = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for path in sorted(light.glob("*.onnx")):
        found.append((f"light/{path.stem}", path, [path.with_name(path.stem + "_output_0.pb")], 1e-3, 1e-5))
    if words:
        return [case for case in found if any(word in case[0] for word in words)]
    return found[::10] if tenth else found


def sets(model, given):
    """Inputs and outputs of a case: the generated ones are there, the others are read."""
    if isinstance(given, tuple):
        return [plain(value) for value in given[0]], [plain(value) for value in given[1]]
    kinds = [[value.type.WhichOneof("value") for value in values] for values in (model.graph.input, model.graph.output)]
    if given.suffix == ".pb":
        # Inputs of the classifiers are made as the package makes them; a weight's place is taken by whatever comes.
        sizes = [[dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.input]
        images = [(np.arange(np.prod(size)).reshape(size) / np.prod(size)).astype(np.float32) for size in sizes]
        return images, [read(given, "tensor_type")]
    return [[read(given / f"{end}_{at}.pb", kind) for at, kind in enumerate(kinds[place]) if (given / f"{end}_{at}.pb").exists()]
            for place, end in enumerate(("input", "output"))]


def tensor(value):
    """A value as a model takes it."""
    if value is None:
        return None
    if isinstance(value, list):
        return [tensor(one) for one in value]
    array = np.asarray(value)
    if array.dtype.name == "bfloat16":
        return tf.cast(tf.constant(array.astype(np.float32)), tf.bfloat16)
    return tf.constant(array)


def compare(made, expected, rtol, atol):
    """Raises where a value is not what is expected."""
    if isinstance(expected, list):
        assert isinstance(made, list) and len(made) == len(expected), "another number of tensors"
        for one, other in zip(made, expected):
            compare(one, other, rtol, atol)
        return
    expected = np.asarray(expected)
    if expected.dtype.name == "bfloat16":
        made, expected = tf.cast(made, tf.float32), expected.astype(np.float32)
    made = made.numpy()
    assert made.dtype == expected.dtype, f"dtype {made.dtype}, not {expected.dtype}"
    assert made.shape == expected.shape, f"shape {made.shape}, not {expected.shape}"
    np.testing.assert_allclose(made, expected, rtol=rtol, atol=atol)


def outcome(model, data, rtol, atol, folder):
    """``None`` where a case passes, otherwise why not."""
    path = model
    try:
        if not isinstance(model, pathlib.Path):
            path = folder / "case.onnx"
            path.write_bytes(model.SerializeToString())
        message = onnx.load(path) if isinstance(model, pathlib.Path) else model
        loaded = tf.onnx.load(path)
        weights = {one.name for one in message.graph.initializer}
        for given in data:
            inputs, outputs = sets(message, given)
            names = [value.name for value in message.graph.input]
            inputs = [tensor(value) for name, value in zip(names, inputs) if name not in weights]
            made = list(loaded(*inputs).values())
            assert len(made) == len(outputs), f"{len(made)} outputs, not {len(outputs)}"
            for one, other in zip(made, outputs):
                compare(one, other, rtol, atol)
    except AssertionError as error:
        return "other numbers: " + " ".join(str(error).split())
    except Exception as error:
        return re.sub(r" \(at [^)]*\)", "", " ".join(str(error).replace(f"{path}: ", "").split()))
    return None


def reason(name, why):
    """What several cases have in common: the refusal without the node's name."""
    if why.startswith("other numbers"):
        return next((said for word, said in DIFFERENT.items() if word in name), why)
    return re.sub(r"(node|input|tensor) `[^`]*`", r"\1", why)[:150]


def main(words):
    """Runs the cases; the exit status."""
    warnings.filterwarnings("ignore")
    flags = {word for word in words if word.startswith("--")}
    words = [word for word in words if word not in flags]
    known, failed, passed = listed(), {}, []
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, model, data, rtol, atol in cases(words, "--slice" in flags):
            why = outcome(model, data, rtol, atol, pathlib.Path(folder))
            kind = name.split("/")[0] if "/" in name else "node"
            counts[kind, why is None] += 1
            if why is None:
                passed.append(name)
            else:
                failed[name] = why
                if words:
                    print(f"{name}: {why}")
    for kind in sorted({kind for kind, _ in counts}):
        print(f"{kind}: {counts[kind, True]} of {counts[kind, True] + counts[kind, False]}")
    if "--write" in flags:
        by_reason = collections.defaultdict(list)
        for name, why in failed.items():
            by_reason[reason(name, why)].append(name)
        text = "".join(f"# {why}\n" + "".join(f"{name}\n" for name in sorted(names)) + "\n" for why, names in sorted(by_reason.items()))
        LIST.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
        return 0
    new = sorted(set(failed) - set(known))
    over = sorted(set(passed) & set(known))
    for name in new:
        print(f"fails, and is not listed: {name}: {failed[name]}")
    for name in over:
        print(f"passes, and is listed as failing: {name}")
    print(f"{len(passed)} passed, {len(new) + len(over)} failed")
    return 1 if new or over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
