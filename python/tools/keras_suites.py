"""Runs Keras' own tests on Tonnage: ``python keras_suites.py [--slice | FOLDER ...]``, in an environment that has Keras and the package.

Each file of tests runs in a process of its own, under ``python -m tonnage``. ``keras_failures.txt`` has the tests that fail, by their reasons.
A test that fails and is not there ends the run with an error, and so does one that is there and passes: the list may only shrink. So does a
file whose process ends before its tests do, and a test of the list that is not there any more. Where all suites run, at least
:data:`LEAST` of the tests that pass on TensorFlow have to pass.
A test that needs another framework, or a package that is not installed, is left out. Which tests pass on TensorFlow the list tells: all that are
not left out and not listed as failing there too. Where ``TENSORFLOW_PYTHON`` names an interpreter that has TensorFlow and the same Keras,
the tests run on it too, and what the list tells of it is checked.
``--slice`` runs one in :data:`EVERY` tests of all suites, in a process for each core.
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

# At least so much of what passes on TensorFlow has to pass.
LEAST = 0.96

# The reason, or its beginning, of tests that fail on TensorFlow as well.
THERE_TOO = "it fails on TensorFlow too"

# Of this many tests a slice has one.
EVERY = 20

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


def outcomes(files, python=ON_TONNAGE, every=1):
    """What became of each test of these files, or of one in so many: ``{test: (outcome, why)}``."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "outcomes")
        variables = {**os.environ, "KERAS_BACKEND": "tensorflow", "TONNAGE_OUTCOMES": str(log), "TONNAGE_EVERY": str(every),
                     "PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
        # Tests are named from the folder on that Keras lies in, whatever lies around it.
        root = str(files[0]).partition("/keras/src/")[0] if "/keras/src/" in str(files[0]) else pathlib.Path(files[0]).parent
        command = [*python, "-m", "pytest", "-q", "-p", "keras_outcomes", "-p", "no:cacheprovider", "--tb=short", f"--rootdir={root}",
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


def jobs():
    """How many processes at a time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def both(file):
    """What became of the tests of a file on Tonnage, and on TensorFlow where there is one."""
    tensorflow = os.environ.get("TENSORFLOW_PYTHON")
    return outcomes([file]), outcomes([file], [tensorflow]) if tensorflow else None


def told(made, known):
    """What passes on TensorFlow, as far as the list tells: what runs here, without what fails there too, and what is listed as left out."""
    runs = {name for name, (outcome, _) in made.items() if outcome in ("passed", "failed") or name in known}
    return {name for name in runs if not known.get(name, "").startswith(THERE_TOO)}


def judged(made, there, known):
    """The tests of a file that pass on TensorFlow, and what is wrong with the list."""
    wrong = []
    for name, (outcome, why) in made.items():
        if outcome == "failed" and name not in known:
            wrong.append(f"fails and is not listed: {name}: {why.splitlines()[0] if why else ''}")
        if outcome == "passed" and name in known:
            wrong.append(f"is listed and passes; take it off the list: {name}")
    if there is None:
        return told(made, known), wrong
    left_out = {name for name, (outcome, _) in made.items() if outcome == "left out"}
    passes = {name for name, (outcome, _) in there.items() if outcome == "passed" and not {name, name.split("::")[0]} & left_out}
    for name in sorted(passes):
        if made.get(name, ("skipped",))[0] not in ("passed", "failed") and name not in known:
            wrong.append(f"is left out here, passes on TensorFlow, and is not listed: {name}")
        if known.get(name, "").startswith(THERE_TOO):
            wrong.append(f"is listed as failing on TensorFlow, and passes there: {name}")
    for name, (outcome, _) in there.items():
        if outcome == "failed" and name in known and not known[name].startswith(THERE_TOO):
            wrong.append(f"fails on TensorFlow too, which its reason does not say: {name}")
    return passes, wrong


def short(passed, passes):
    """What is wrong with the number of tests that pass, of those that pass on TensorFlow."""
    return [f"{passed} of the {passes} tests that pass on TensorFlow pass: less than {LEAST:.0%}"] if passed < LEAST * passes else []


def whole(folders):
    """Runs the suites; what is wrong."""
    known, wrong, seen, base = listed(), [], set(), keras_folder()
    counts = {folder: collections.Counter() for folder in folders or FOLDERS}
    files = [(folder, file) for folder in counts for file in sorted((base / folder).rglob("*_test.py"))]
    with concurrent.futures.ThreadPoolExecutor(jobs()) as pool:
        for (folder, file), (made, there) in zip(files, pool.map(both, (file for _, file in files))):
            seen.update(made)
            passes, found = judged(made, there, known)
            wrong += found
            tally = collections.Counter(outcome for outcome, _ in made.values())
            print(f"{file.relative_to(base)}: {', '.join(f'{n} {outcome}' for outcome, n in sorted(tally.items()))}", flush=True)
            tally["there"], tally["in both"] = len(passes), sum(made.get(name, ("",))[0] == "passed" for name in passes)
            counts[folder].update(tally)
    ran = {name_of(file) for _, file in files}
    wrong += [f"is listed and there is no such test: {name}" for name in known if name.split("::")[0] in ran and name not in seen]
    total = sum(counts.values(), collections.Counter())
    for folder, tally in [*counts.items(), ("all", total)]:
        share = tally["in both"] / max(1, tally["there"])
        print(f"{folder:16}{tally['passed']:6} of {tally['passed'] + tally['failed']:6} pass; of {tally['there']:6} that pass on TensorFlow "
              f"{tally['in both']:6}, {share:.2%}")
    return wrong + ([] if folders else short(total["in both"], total["there"]))


def slice_of_all():
    """Runs one in :data:`EVERY` tests of all suites; what is wrong."""
    base, known, wrong = keras_folder(), listed(), []
    files = [file for folder in FOLDERS for file in sorted((base / folder).rglob("*_test.py"))]
    parts = [files[i::jobs()] for i in range(jobs())]
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
        for made in pool.map(lambda part: outcomes(part, every=EVERY), parts):
            wrong += judged(made, None, known)[1]
            counts.update(outcome for outcome, _ in made.values())
    print(f"one in {EVERY} tests: {', '.join(f'{n} {outcome}' for outcome, n in sorted(counts.items()))}")
    return wrong or ([] if counts["passed"] else ["no test passed"])


def main(words):
    """Whether all is as it should be."""
    wrong = slice_of_all() if words == ["--slice"] else whole(words)
    print("\n".join(wrong))
    return not wrong


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
