"""What runs Keras' own tests over Tonnage (``cargo xtask keras``): what it counts, and when it fails."""

import pathlib
import sys

import pytest

import tonnage

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Where the package under test lies: beside the sources there may be none that was built.
PACKAGE = str(pathlib.Path(tonnage.__file__).resolve().parents[1])
sys.path.append(str(ROOT / "python" / "tools"))

import keras_suites  # noqa: E402


def test_a_file_whose_process_ends_early_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PACKAGE)
    file = tmp_path / "early_test.py"
    file.write_text("import os\ndef test_first():\n    pass\ndef test_second():\n    os._exit(7)\n")
    made = keras_suites.outcomes([file])
    assert [why for outcome, why in made.values() if outcome == "failed"] == ["the process ended with 7"]
    assert [name.rpartition("::")[2] for name, (outcome, _) in made.items() if outcome == "passed"] == ["test_first"]


ELSEWHERE = keras_suites.THERE_TOO + ", from a package"

JUDGED = {
    "a failure that is listed": ({"a::t": ("failed", "")}, {"a::t": "why"}, {"a::t": ("passed", "")}, {"a::t"}, []),
    "one that is not": ({"a::t": ("failed", "no\nmore")}, {}, {"a::t": ("passed", "")}, {"a::t"}, ["fails and is not listed: a::t: no"]),
    "one that passes now": ({"a::t": ("passed", "")}, {"a::t": "why"}, {"a::t": ("passed", "")}, {"a::t"}, ["is listed and passes; take it off the list: a::t"]),
    "one that is left out": ({"a::t": ("skipped", "")}, {}, {"a::t": ("skipped", "")}, set(), []),
    "one that is left out here alone": ({"a::t": ("skipped", "")}, {"a::t": "why"}, {"a::t": ("passed", "")}, {"a::t"}, []),
    "one whose package is not there": ({"a::t": ("left out", "")}, {}, {"a::t": ("passed", "")}, set(), []),
    "a file whose package is not there": ({"a": ("left out", "")}, {}, {"a::t": ("passed", "")}, set(), []),
    "one that fails there too": ({"a::t": ("failed", "")}, {"a::t": ELSEWHERE}, {"a::t": ("failed", "")}, set(), []),
}


@pytest.mark.parametrize("case", JUDGED, ids=str)
def test_suites_judge(case):
    made, known, there, passes, wrong = JUDGED[case]
    assert keras_suites.judged(made, None, known) == (passes, wrong), "by the list"
    assert keras_suites.judged(made, there, known) == (passes, wrong), "beside TensorFlow"


ONLY_BESIDE = {
    "left out here, and not listed": ("skipped", None, "passed", "is left out here, passes on TensorFlow, and is not listed"),
    "not there at all": (None, None, "passed", "is left out here"),
    "listed as failing there, where it passes": ("failed", ELSEWHERE, "passed", "is listed as failing on TensorFlow, and passes there"),
    "failing there, which is not said": ("failed", "why", "failed", "fails on TensorFlow too, which its reason does not say"),
}


@pytest.mark.parametrize("case", ONLY_BESIDE, ids=str)
def test_suites_check_what_the_list_tells_of_tensorflow(case):
    here, reason, there, words = ONLY_BESIDE[case]
    made, known = {"a::t": (here, "")} if here else {}, {"a::t": reason} if reason else {}
    [wrong] = keras_suites.judged(made, {"a::t": (there, "")}, known)[1]
    assert wrong.startswith(words) and wrong.endswith("a::t")


def test_suites_hold_the_bound():
    assert keras_suites.short(96, 100) == [] and keras_suites.short(0, 0) == []
    assert keras_suites.short(959, 1000) == ["959 of the 1000 tests that pass on TensorFlow pass: less than 96%"]


def test_a_slice_is_the_same_however_the_files_are_shared_out(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PACKAGE)
    files = [tmp_path / f"{name}_test.py" for name in ("one", "two")]
    for file in files:
        file.write_text("import pytest\n@pytest.mark.parametrize('i', range(200))\ndef test(i):\n    pass\n")
    together = keras_suites.outcomes(files, every=10)
    assert together == {**keras_suites.outcomes(files[:1], every=10), **keras_suites.outcomes(files[1:], every=10)}
    assert 20 < len(together) < 60


def test_every_failure_has_a_reason():
    known = keras_suites.listed()
    assert known and all(reason and "::" in name for name, reason in known.items())
