"""``tf.onnx``: models of files, written here field by field."""

import struct

import numpy as np
import pytest

import tonnage as tf


def varint(n):
    out = b""
    while n >= 0x80:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def part(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def value(name, dims):
    shape = b"".join(part(1, number(1, dim) if isinstance(dim, int) else part(2, dim)) for dim in dims)
    return part(1, name) + part(2, part(1, number(1, 1) + part(2, shape)))


@pytest.fixture
def layer(tmp_path):
    """``relu(x + w)``."""
    weight = number(1, 3) + number(2, 1) + part(8, "w") + part(9, struct.pack("<3f", 1.0, -2.0, 3.0))
    nodes = part(1, part(1, "x") + part(1, "w") + part(2, "sum") + part(4, "Add"))
    nodes += part(1, part(1, "sum") + part(2, "y") + part(4, "Relu"))
    graph = nodes + part(5, weight) + part(11, value("x", ["batch", 3])) + part(12, value("y", ["batch", 3]))
    path = tmp_path / "layer.onnx"
    path.write_bytes(number(1, 8) + part(7, graph) + part(8, number(2, 17)))
    return path


def test_a_model_is_called_in_order_or_by_name(layer):
    model = tf.onnx.load(layer)
    assert model.inputs == {"x": "f32[batch, 3]"} and list(model.outputs) == ["y"]
    x = np.array([[1, 1, 1], [-5, 5, -5]], np.float32)
    expected = [[2, 0, 4], [0, 3, 0]]
    assert model(x)["y"].numpy().tolist() == expected
    assert model(x=tf.constant(x))["y"].numpy().tolist() == expected


def test_a_plan_is_for_lengths_and_a_budget_is_held(layer):
    model = tf.onnx.load(layer, budget="1MiB")
    assert model.plan(batch=8).peak < model.plan(batch=8192).peak <= 1 << 20
    most = model.max_batch("batch", "1MiB")
    assert most > 8192
    with pytest.raises(tf.errors.ResourceExhaustedError):
        model.plan(batch=most + 1000)


def test_what_is_wrong_is_said(layer):
    model = tf.onnx.load(layer)
    with pytest.raises(ValueError, match="inputs are missing: x"):
        model()
    with pytest.raises(ValueError, match="no input `z` is left"):
        model(z=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"layer.onnx.*f32\[batch, 3\]"):
        model(np.zeros([2, 4], np.float32))
    with pytest.raises(tf.errors.OpError, match="missing.onnx"):
        tf.onnx.load(layer.with_name("missing.onnx"))


def test_a_model_is_trained_as_the_same_lines_by_hand_are(layer):
    model = tf.onnx.load(layer, trainable=True)
    (weight,) = model.trainable_variables
    assert weight.name == "w:0" and weight is model.trainable_variables[0]
    own = tf.Variable([1.0, -2.0, 3.0])
    x = tf.constant(np.array([[1, 1, 1], [-5, 5, -5]], np.float32))

    def step(made, variable):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((made() - 1.0) ** 2)
        variable.assign_sub(0.1 * tape.gradient(loss, variable))
        return loss

    planned = tf.function(lambda x: step(lambda: model(x)["y"], weight))
    for _ in range(3):
        expected = step(lambda: tf.nn.relu(x + own), own).numpy()
        assert planned(x).numpy() == expected
        assert weight.numpy().tolist() == own.numpy().tolist()
    expected = step(lambda: tf.nn.relu(x + own), own).numpy()
    assert step(lambda: model(x)["y"], weight).numpy() == expected
    assert weight.numpy().tolist() == own.numpy().tolist()
    assert tf.onnx.load(layer).trainable_variables == []
