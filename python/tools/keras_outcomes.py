"""A plugin of pytest: writes the outcome of each test to the file that ``TONNAGE_OUTCOMES`` names, a line each, as it is known."""

import json
import os


def _write(name, outcome, why):
    with open(os.environ["TONNAGE_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps([name.split("keras/src/")[-1], outcome, why]) + "\n")


def pytest_runtest_logreport(report):
    """A test, or its set-up or clean-up where that failed or was skipped."""
    if report.when == "call" or report.outcome != "passed":
        crash = getattr(report.longrepr, "reprcrash", None)
        _write(report.nodeid, report.outcome, "" if report.outcome != "failed" else crash.message if crash else str(report.longrepr))


def pytest_collectreport(report):
    """A file that could not be imported."""
    if report.outcome == "failed":
        _write(report.nodeid, "failed", str(report.longrepr))
