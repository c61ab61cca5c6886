"""Runs Keras' own tests on Tonnage: ``python keras_suites.py [FOLDER ...]``, in an environment that has Keras and the package.

Each file of tests runs in a process of its own, under ``python -m tonnage``. ``keras_failures.txt`` has the tests that fail, by their reasons.
A test that fails and is not there ends the run with an error, and so does one that is there and passes: the list may only shrink.
A test that needs another framework, or a package that is not installed, is left out.
"""

import collections
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

ELSEWHERE = re.compile(r"No module named '|requires the '?[\w-]+'? package|ImportError while importing test module")


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


def outcomes(files):
    """What became of each test of these files: ``{test: (outcome, why)}``."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "outcomes")
        variables = {**os.environ, "TONNAGE_OUTCOMES": str(log), "PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get(
            "PYTHONPATH", "")])}
        command = [sys.executable, "-m", "tonnage", "-m", "pytest", "-q", "-p", "keras_outcomes", "-p", "no:cacheprovider", "--tb=short",
                   "--continue-on-collection-errors", *map(str, files)]
        try:
            subprocess.run(command, env=variables, cwd=folder, capture_output=True, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            print(f"  ran longer than {LONGEST} s: {files}")
        found = {}
        for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
            name, outcome, why = json.loads(line)
            # Set-up and clean-up count as well: a test that failed once failed.
            if found.get(name, ("", ""))[0] != "failed":
                found[name] = (outcome, why)
        return found


def main(folders):
    """Runs the suites; whether all is as the list says."""
    known, counts, wrong = listed(), collections.Counter(), []
    base = keras_folder()
    for folder in folders or FOLDERS:
        for file in sorted((base / folder).rglob("*_test.py")):
            made = outcomes([file])
            tally = collections.Counter()
            for name, (outcome, why) in made.items():
                if outcome == "failed" and ELSEWHERE.search(why):
                    outcome = "left out"
                tally[outcome] += 1
                if outcome == "failed" and name not in known:
                    wrong.append(f"fails and is not listed: {name}: {why.splitlines()[0] if why else ''}")
                if outcome == "passed" and name in known:
                    wrong.append(f"is listed and passes; take it off the list: {name}")
            counts.update({(folder, outcome): number for outcome, number in tally.items()})
            print(f"{file.relative_to(base)}: {', '.join(f'{n} {outcome}' for outcome, n in sorted(tally.items()))}", flush=True)
    for folder in folders or FOLDERS:
        passed, failed = counts[folder, "passed"], counts[folder, "failed"]
        print(f"{folder:16}{passed:6} of {passed + failed:6} pass")
    print("\n".join(wrong))
    return not wrong


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
