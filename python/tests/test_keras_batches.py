"""Sizes of batches: those that are asked for, those that come as they are, and the last one of an epoch."""

import numpy as np
import pytest

import tonnage as tf

L = tf.keras.layers
X = np.round(np.sin(np.arange(60) * 1.7), 3).reshape(10, 3, 2).astype("f4")
Y = np.round(np.cos(np.arange(10) * 0.9), 3).reshape(10, 1).astype("f4")


def model(*layers, batch=None):
    tf.random.set_seed(3)
    made = tf.keras.Sequential([L.Input(batch_shape=(batch, 3, 2)), *(make() for make in layers)])
    made.compile("sgd", "mse")
    return made


@pytest.mark.parametrize("size", [0, -1])
@pytest.mark.parametrize("call", [
    lambda m, n: m.fit(X, Y, batch_size=n, verbose=0), lambda m, n: m.evaluate(X, Y, batch_size=n, verbose=0),
    lambda m, n: m.predict(X, batch_size=n, verbose=0),
    lambda m, n: m.fit(X, Y, validation_data=(X, Y), validation_batch_size=n, verbose=0),
    lambda m, n: m.fit(X, Y, validation_split=0.5, validation_batch_size=n, verbose=0)])
def test_a_batch_of_nothing_is_refused(call, size):
    with pytest.raises(ValueError, match=f"batch_size must be positive.*{size}"):
        call(model(L.Flatten, lambda: L.Dense(1)), size)


class Indexed(tf.keras.utils.PyDataset):
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return X[4 * i:4 * i + 4], Y[4 * i:4 * i + 4]


SOURCES = {"dataset": lambda: tf.data.Dataset.from_tensor_slices((X, Y)).batch(4), "PyDataset": Indexed,
           "generator": lambda: (Indexed()[i] for i in range(3))}


@pytest.mark.parametrize("source", SOURCES)
def test_batches_that_come_as_they_are_have_no_other_size(source):
    results = []
    for size in (None, 2, 7):
        made = model(L.Flatten, lambda: L.Dense(1))
        history = made.fit(SOURCES[source](), batch_size=size, validation_data=SOURCES[source](), validation_batch_size=size, verbose=0,
                           shuffle=False).history
        figures = made.evaluate(SOURCES[source](), batch_size=size, verbose=0)
        results.append((history, figures, made.predict(SOURCES[source](), batch_size=size, verbose=0).tolist()))
    assert results[0] == results[1] == results[2]


STACKS = {
    "dense": (L.Flatten, lambda: L.Dense(1)), "normalized": (L.BatchNormalization, L.Flatten, lambda: L.Dense(1)),
    "recurrent": (lambda: L.LSTM(2), lambda: L.Dense(1)), "both ways": (lambda: L.Bidirectional(L.GRU(2)), lambda: L.Dense(1)),
    "convolved": (lambda: L.Conv1D(2, 2), L.GlobalMaxPooling1D, lambda: L.Dense(1)),
    "distributed": (lambda: L.TimeDistributed(L.Dense(2)), lambda: L.Reshape((6,)), lambda: L.Dense(1))}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("batch", [4, 7, 16])
def test_the_last_batch_may_be_shorter_than_the_batch_that_a_model_is_made_for(stack, batch):
    fixed, free = model(*STACKS[stack], batch=batch), model(*STACKS[stack])
    free.set_weights(fixed.get_weights())
    for call in (lambda m: m.fit(X, Y, batch_size=batch, epochs=2, shuffle=False, verbose=0).history["loss"],
                 lambda m: m.evaluate(X, Y, batch_size=batch, verbose=0), lambda m: m.predict(X, batch_size=batch, verbose=0)):
        np.testing.assert_allclose(call(fixed), call(free), rtol=1e-6)


def test_lengths_behind_the_batch_are_still_checked():
    with pytest.raises(ValueError, match=r"expects the shape \(4, 3, 2\), found shape=\(4, 3, 1\)"):
        model(L.Flatten, lambda: L.Dense(1), batch=4).predict(X[:4, :, :1], verbose=0)
