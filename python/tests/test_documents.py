"""The programs of the documents that the project grew from: each runs unchanged but for its import line.

The folder is named by the environment's ``TONNAGE_DOCUMENTS``; without it there is nothing to run.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import tonnage

FOLDER = os.environ.get("TONNAGE_DOCUMENTS")


def programs():
    if not FOLDER:
        return []
    made = []
    for path in sorted(pathlib.Path(FOLDER).glob("*.txt")):
        for i, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.S)):
            made.append(pytest.param(block, id=f"{path.stem[:3]}-{i + 1}"))
    return made


# Of the program alone: what `getrusage` says begins with the most that its parent held.
WATCH = """
_status = open("/proc/self/status").read()
print("peak", int(_status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


@pytest.mark.skipif(not FOLDER or not os.path.exists("/proc/self/status"), reason="TONNAGE_DOCUMENTS names no folder")
@pytest.mark.parametrize("program", programs())
def test_a_documents_program_runs_as_it_was_meant(program, tmp_path):
    assert "import tensorflow as tf" in program
    file = tmp_path / "program.py"
    file.write_text(program.replace("import tensorflow as tf", "import tonnage as tf") + WATCH)
    made = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    *lines, peak = made.stdout.splitlines()
    if "result) #Output: [5 7 9]" in program:
        assert lines == ["[5 7 9]"]
    if "Result shape" in program:
        assert lines[0] == "Result shape: (100, 100)"
    if "get_memory_info" in program:
        assert re.fullmatch(r"\{'current': \d+, 'peak': \d+\}", lines[0])
    assert int(peak.split()[1]) < 64  # MiB, NumPy among them


@pytest.mark.skipif(not FOLDER, reason="TONNAGE_DOCUMENTS names no folder")
@pytest.mark.parametrize("program", [p for p in programs() if "keras" in p.values[0]])
def test_a_documents_program_that_uses_keras_runs_unchanged_with_keras_itself(program, tmp_path):
    (tmp_path / "program.py").write_text(program)
    variables = {**os.environ, "PYTHONPATH": str(pathlib.Path(tonnage.__file__).resolve().parents[1])}
    variables.pop("KERAS_BACKEND", None)
    made = subprocess.run([sys.executable, "-m", "tonnage", str(tmp_path / "program.py")], capture_output=True, text=True, timeout=120, env=variables)
    if "Sequential([custom_layer])" in program:  # what is no layer, Keras refuses, on TensorFlow too
        assert "Only instances of `keras.Layer` can be added to a Sequential model" in made.stderr
    else:
        assert made.returncode == 0, made.stderr
