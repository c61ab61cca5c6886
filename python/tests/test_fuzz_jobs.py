"""Random programs in processes: every seed is told of once, whatever becomes of the process that runs it."""

import argparse
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from fuzz import jobs  # noqa: E402
from fuzz.__main__ import main  # noqa: E402


def dies_of_three(seeds, chosen, pipe):
    for seed in seeds:
        if seed % 10 == 3:
            os._exit(7)
        pipe.send((seed, [], None, None))


def _told(monkeypatch, most=1000):
    monkeypatch.setattr(jobs, "_work", dies_of_three)
    monkeypatch.setattr(jobs, "SHARE", 6)
    told = []
    jobs.run(argparse.Namespace(seed=0, graphs=20, jobs=2), lambda *given: told.append(given) or len(told) < most)
    return told


def test_a_process_that_dies_is_a_finding_and_takes_no_other_seed_with_it(monkeypatch):
    told = _told(monkeypatch)
    assert sorted(seed for seed, *_ in told) == list(range(20))
    assert sorted(seed for seed, _, kind, _ in told if kind == "crash") == [3, 13]
    assert all("ended with 7" in text for _, _, kind, text in told if kind)


def test_it_stops_when_told_to(monkeypatch):
    assert len(_told(monkeypatch, most=4)) == 4


def test_seeds_in_processes_are_all_run(capsys):
    assert main(["--graphs", "6", "--jobs", "2"]) == 0
    assert capsys.readouterr().out.startswith("6 programs in ")
