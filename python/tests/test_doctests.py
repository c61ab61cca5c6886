"""The examples of the docstrings do what they show."""

import doctest
import importlib
import sys

import pytest

import tonnage as tf

MODULES = ["tonnage", "tonnage._array", "tonnage._control", "tonnage._function", "tonnage._gradient", "tonnage._index",
           "tonnage._print", "tonnage._tensor_array", "tonnage._variable", "tonnage.autograph",
           "tonnage.compat._graph", "tonnage.debugging", "tonnage.experimental", "tonnage.linalg", "tonnage.math",
           "tonnage.memory", "tonnage.module", "tonnage.nn", "tonnage.profiler", "tonnage.random", "tonnage.signal", "tonnage.strings", "tonnage._ragged", "tonnage.io"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testmod(module, extraglobs={"tf": tf, "sys": sys}, optionflags=flags)
    assert failed == 0
