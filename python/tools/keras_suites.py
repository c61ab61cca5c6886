"""Runs Keras' own tests on Tonnage: ``python keras_suites.py [FOLDER ...]``, in an environment that has Keras and the package.

Each file of tests runs in a process of its own, under ``python -m tonnage``. ``keras_failures.txt`` has the tests that fail, by their reasons.
A test that fails and is not there ends the run with an error, and so does one that is there and passes: the list may only shrink. So does a
file whose process ends before its tests do, and a test of the list that is not there any more.
A test that needs another framework, or a package that is not installed, is left out. Where ``TENSORFLOW_PYTHON`` names an interpreter that
has TensorFlow and the same Keras, the tests run on it too, and the share of those that pass there and here is told.
"""

import collections
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIST = pathlib.Path(__file__).with_name("keras_failures.txt")

# What is run where no folder is named.
FOLDERS = ("activations constraints initializers losses metrics optimizers regularizers random layers ops models trainers callbacks saving "
           "utils dtype_policies").split()

# How long a file may take, in seconds.
LONGEST = 1800

ELSEWHERE = re.compile(r"No module named '(?!tensorflow)|requires the '?[\w-]+'? (package|module)|ImportError while importing test module")

# How Python is started: on Tonnage, or, with another interpreter, on what it has.
ON_TONNAGE = (sys.executable, "-m", "tonnage")


def keras_folder():
    """Where Keras' sources lie, found without importing it."""
    return pathlib.Path(importlib.util.find_spec("keras").submodule_search_locations[0], "src")


def listed():
    """The tests that are known to fail: ``{test: reason}``."""
    found, reason = {}, None
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            found[line] = reason
    return found


def name_of(file):
    """A file as tests call it."""
    return str(file).split("keras/src/")[-1]


def outcomes(files, python=ON_TONNAGE):
    """What became of each test of these files: ``{test: (outcome, why)}``."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "outcomes")
        variables = {**os.environ, "KERAS_BACKEND": "tensorflow", "TONNAGE_OUTCOMES": str(log), "PYTHONPATH": os.pathsep.join(
            [str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
        command = [*python, "-m", "pytest", "-q", "-p", "keras_outcomes", "-p", "no:cacheprovider", "--tb=short",
                   "--continue-on-collection-errors", *map(str, files)]
        try:
            code = subprocess.run(command, env=variables, cwd=folder, capture_output=True, timeout=LONGEST).returncode
        except subprocess.TimeoutExpired:
            code = f"nothing after {LONGEST} s"
        # All passed, some failed, one could not be imported, or there is none.
        found = {} if code in (0, 1, 2, 5) else {f"{name_of(files[0])}::": ("failed", f"the process ended with {code}")}
        for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
            name, outcome, why = json.loads(line)
            if outcome == "failed" and ELSEWHERE.search(why):
                outcome = "left out"
            # Set-up and clean-up count as well: a test that failed once failed.
            if found.get(name, ("", ""))[0] != "failed":
                found[name] = (outcome, why)
        return found


def both(file):
    """What became of the tests of a file on Tonnage, and on TensorFlow where there is one."""
    tensorflow = os.environ.get("TENSORFLOW_PYTHON")
    return outcomes([file]), outcomes([file], [tensorflow]) if tensorflow else {}


def main(folders):
    """Runs the suites; whether all is as the list says."""
    known, wrong, seen, base = listed(), [], set(), keras_folder()
    counts = {folder: collections.Counter() for folder in folders or FOLDERS}
    files = [(folder, file) for folder in counts for file in sorted((base / folder).rglob("*_test.py"))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (folder, file), (made, there) in zip(files, pool.map(both, (file for _, file in files))):
            seen.update(made)
            tally = collections.Counter(outcome for outcome, _ in made.values())
            for name, (outcome, why) in made.items():
                if outcome == "failed" and name not in known:
                    wrong.append(f"fails and is not listed: {name}: {why.splitlines()[0] if why else ''}")
                if outcome == "passed" and name in known:
                    wrong.append(f"is listed and passes; take it off the list: {name}")
            passes = [name for name, (outcome, _) in there.items() if outcome == "passed"]
            tally["passed there"] = len(passes)
            tally["passed in both"] = sum(made.get(name, ("",))[0] == "passed" for name in passes)
            counts[folder].update(tally)
            print(f"{file.relative_to(base)}: {', '.join(f'{n} {outcome}' for outcome, n in sorted(tally.items()) if n)}", flush=True)
    ran = {name_of(file) for _, file in files}
    wrong += [f"is listed and there is no such test: {name}" for name in known if name.split("::")[0] in ran and name not in seen]
    for folder, tally in [*counts.items(), ("all", sum(counts.values(), collections.Counter()))]:
        share = f"; of {tally['passed there']} that pass on TensorFlow {tally['passed in both']} pass" if tally["passed there"] else ""
        print(f"{folder:16}{tally['passed']:6} of {tally['passed'] + tally['failed']:6} pass{share}")
    print("\n".join(wrong))
    return not wrong


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
