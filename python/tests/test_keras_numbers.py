"""Numbers of losses, metrics, optimizers, activations and layers beside those of Keras: every case of ``keras_cases`` and
``keras_layer_cases`` has its answers in ``keras_expected.json``."""

import json
import pathlib

import keras_cases
import keras_layer_cases  # noqa: F401, as it registers its cases
import numpy as np
import pytest

import tonnage as tf

EXPECTED = json.loads((pathlib.Path(__file__).parent / "keras_expected.json").read_text())


def test_every_case_has_answers():
    assert set(EXPECTED) == set(keras_cases.CASES)


@pytest.mark.parametrize("name", keras_cases.CASES)
def test_numbers_are_those_of_keras(name):
    made = [(label, keras_cases.plain(value)) for label, value in keras_cases.CASES[name](tf.keras, tf)]
    assert [label for label, _ in made] == [label for label, *_ in EXPECTED[name]]
    for (label, value), (_, dtype, shape, flat) in zip(made, EXPECTED[name]):
        assert (value.dtype.name, list(value.shape)) == (dtype, shape), label
        tolerance = 2e-3 if dtype == "float16" else 2e-5
        np.testing.assert_allclose(value.astype("f8").ravel(), np.array(flat, "f8"), rtol=tolerance, atol=tolerance, err_msg=label)
