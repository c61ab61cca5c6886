"""The programs of the documents that the project grew from, as they stand there: time and memory of each beside TensorFlow.

    python documents.py FOLDER --tensorflow /path/to/a/python/that/has/it [--rounds 3] [--all]

Each program that uses Keras (``--all``: each at all) runs in processes of its own that take turns: ``python -m tonnage program.py`` with Keras from the
registry, the same with ``import tonnage as tf`` and Tonnage's own Keras, and TensorFlow. Time is that of the process, import and all, and the least of
the rounds; memory is the most that was resident. What is asked for is at most a third of both; the status is 1 where that is missed. A program that ends with
an error on TensorFlow is told so, with what it took until then.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

# This folder has files of the names of what programs import.
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

# Of the process alone, also where the program ends with an error.
WATCH = """import atexit
@atexit.register
def _tell():
    status = open("/proc/self/status").read()
    open(PLACE, "w").write(status.partition("VmHWM:")[2].split()[0])
"""

IMPORT = "import tensorflow as tf"

# How a program is run: what starts it, and what it imports.
WAYS = {"keras": (["-m", "tonnage"], IMPORT), "own": ([], "import tonnage as tf"), "tensorflow": ([], IMPORT)}


def programs(folder, everything):
    """The programs, by the document and their place in it."""
    for path in sorted(pathlib.Path(folder).glob("*.txt")):
        for i, text in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.S)):
            if everything or "keras" in text:
                yield f"{path.stem[:3]}-{i + 1}", text


def taken(python, way, text):
    """Seconds, KiB, and the last line of an error or none."""
    words, line = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        file, place = pathlib.Path(folder, "program.py"), pathlib.Path(folder, "peak")
        file.write_text(WATCH.replace("PLACE", repr(str(place))) + text.replace(IMPORT, line), encoding="utf-8")
        variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        variables.pop("KERAS_BACKEND", None)
        start = time.perf_counter()
        done = subprocess.run([python, *words, str(file)], capture_output=True, text=True, cwd=folder, env=variables)
        seconds = time.perf_counter() - start
        if not place.exists():
            sys.exit(f"{way}: {done.stderr[-2000:]}")
        return seconds, int(place.read_text()), done.stderr.strip().splitlines()[-1] if done.returncode else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tensorflow", required=True, help="an interpreter that has TensorFlow and Keras")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    missed = 0
    for name, text in programs(given.folder, given.all):
        runs = {way: [] for way in WAYS}
        for _ in range(given.rounds):
            for way in WAYS:
                runs[way].append(taken(given.tensorflow if way == "tensorflow" else sys.executable, way, text))
        least = {way: (min(run[0] for run in made), min(run[1] for run in made)) for way, made in runs.items()}
        for way, (seconds, kib) in least.items():
            shares = [own / peer for own, peer in zip(least[way], least["tensorflow"])]
            line = f"{name:<6}{way:<11}{seconds:7.2f} s {kib / 1024:8.1f} MiB"
            if way != "tensorflow":
                line += f"   {shares[0]:5.2f} of the time, {shares[1]:5.2f} of the memory"
                over = max(shares) > 1 / 3
                missed += over
                line += ", more than a third" if over else ""
            error = runs[way][0][2]
            print(line + (f"   {error[:100]}" if error else ""), flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
