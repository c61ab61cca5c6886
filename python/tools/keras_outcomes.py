"""A plugin of pytest: writes the outcome of each test to the file that ``TONNAGE_OUTCOMES`` names, a line each, as it is known. Of
all tests one in ``TONNAGE_EVERY`` runs.

It is also the ``conftest`` that some of Keras' tests import, which its packages do not have.
"""

import json
import os
import sys
import zlib

import pytest

sys.modules.setdefault("conftest", sys.modules[__name__])


def skip_if_backend(given_backend, reason):
    """A mark for tests that a backend is not meant for."""
    return pytest.mark.skipif(os.environ["KERAS_BACKEND"] == given_backend, reason=reason)


def _short(name):
    """A test without the folder that Keras lies in."""
    return name.split("keras/src/")[-1]


def _write(name, outcome, why):
    with open(os.environ["TONNAGE_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps([_short(name), outcome, why]) + "\n")


def pytest_collection_modifyitems(items):
    """Of the tests one in so many: always the same ones, however many files a process is given."""
    every = int(os.environ["TONNAGE_EVERY"])
    items[:] = [item for item in items if zlib.crc32(_short(item.nodeid).encode()) % every == 0]


def pytest_runtest_logreport(report):
    """A test, or its set-up or clean-up where that failed or was skipped."""
    if report.when == "call" or report.outcome != "passed":
        crash = getattr(report.longrepr, "reprcrash", None)
        _write(report.nodeid, report.outcome, "" if report.outcome != "failed" else crash.message if crash else str(report.longrepr))


def pytest_collectreport(report):
    """A file that could not be imported."""
    if report.outcome == "failed":
        _write(report.nodeid, "failed", str(report.longrepr))
