"""``model.plan(rows)``: of every kind of model whose inputs are known, as the step that runs then."""

import numpy as np
import pytest

import tonnage as tf

K, L = tf.keras, tf.keras.layers


class Plain(K.Model):
    def __init__(self, last=1):
        super().__init__()
        self.first, self.last = L.Dense(8, activation="relu"), L.Dense(last)

    def call(self, x, training=False):
        return self.last(self.first(x))


class Tokens(K.Model):
    def __init__(self):
        super().__init__()
        self.embedding, self.last = L.Embedding(11, 4), L.Dense(3)

    def call(self, x):
        return self.last(tf.reduce_mean(self.embedding(x), axis=1))


class Pair(K.Model):
    def __init__(self):
        super().__init__()
        self.a, self.b = L.Dense(2), L.Dense(3)

    def call(self, inputs):
        return {"sum": self.a(inputs["x"]) + self.a(inputs["y"]), "other": self.b(inputs["x"])}


class Built(Plain):
    def build(self, input_shape):
        self.scale = self.add_weight(shape=(input_shape[-1],), initializer="ones")
        super().build(input_shape)

    def call(self, x, training=False):
        return super().call(x * self.scale)


def ones(*shape):
    return np.ones(shape, "float32")


def tokens(rows):
    return np.arange(rows * 5).reshape(rows, 5) % 11


# A model, how it is compiled, and a batch of so many rows.
CASES = {
    "plain": (Plain, dict(optimizer="adam", loss="mse"), lambda n: (ones(n, 5), ones(n, 1))),
    "of images": (lambda: K.Sequential([L.Flatten(), Plain(4)]), dict(optimizer="sgd", loss="mse"), lambda n: (ones(n, 3, 3, 2), ones(n, 4))),
    "of tokens": (Tokens, dict(optimizer="sgd", loss=K.losses.SparseCategoricalCrossentropy(from_logits=True)),
                  lambda n: (tokens(n), np.zeros([n], "int64"))),
    "of several": (Pair, dict(optimizer="sgd", loss={"sum": "mse", "other": "mae"}),
                   lambda n: ({"x": ones(n, 4), "y": ones(n, 4)}, {"sum": ones(n, 2), "other": ones(n, 3)})),
    "with a build of its own": (Built, dict(optimizer="sgd", loss="mse"), lambda n: (ones(n, 5), ones(n, 1))),
}


@pytest.mark.parametrize("case", CASES)
def test_a_model_that_was_called_is_planned_by_a_number_of_rows(case):
    make, options, batch = CASES[case]
    model = make()
    with pytest.raises(ValueError, match="built or called.*TensorSpec"):
        model.plan(16)
    model(tf.nest.map_structure(tf.constant, batch(3)[0]))
    assert model.plan(16).peak == model.plan((batch(16)[0],)).peak > 0
    model.compile(**options)
    planned = model.plan(16)
    assert planned.peak == model.plan(batch(16)).peak
    model.train_on_batch(*batch(16))
    ran = model.make_train_function().last_run()
    assert planned.peak == ran["predicted"] == ran["used"]
    assert model.plan(64).peak > planned.peak


def test_a_model_that_was_built_or_trained_is_planned_too():
    built, trained = Plain(), Plain()
    built.build((None, 5))
    trained.compile("sgd", "mse")
    trained.fit(ones(8, 5), ones(8, 1), batch_size=4, verbose=0)
    built.compile("sgd", "mse")
    assert built.plan(16).peak == trained.plan(16).peak > 0
