"""Models in files and as data; names; helpers."""

import json

import numpy as np
import pytest

import tonnage as tf

K, L = tf.keras, tf.keras.layers
RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 8)).astype("f4")


@K.saving.register_keras_serializable(package="tests")
class Scale(L.Layer):
    def __init__(self, by=2.0, **kwargs):
        super().__init__(**kwargs)
        self.by = by

    def build(self, input_shape):
        self.shift = self.add_weight((input_shape[-1],), "zeros", name="shift")

    def call(self, inputs):
        return inputs * self.by + self.shift

    def get_config(self):
        return {**super().get_config(), "by": self.by}


@K.saving.register_keras_serializable(package="tests")
class Net(K.Model):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.first, self.rest = L.Dense(units, "relu"), [L.Dense(units), L.Dense(1)]

    def call(self, x):
        x = self.first(x)
        for layer in self.rest:
            x = layer(x)
        return x


def functional():
    x = K.Input((8,), name="x")
    shared = L.Dense(4, "tanh")
    both = L.Add()([shared(x), shared(x * 2.0)])
    cut = L.Concatenate()([both[:, :2], Scale(3.0)(both)])
    return K.Model(x, {"a": L.Dense(1)(cut), "b": L.BatchNormalization()(cut)})


def sequential():
    return K.Sequential([L.Input((8,)), L.Dense(4, "relu", kernel_regularizer="l2"), L.Dropout(0.1), Scale(1.5), L.Dense(1)])


def nested():
    inner = sequential()
    x = K.Input((8,))
    return K.Model(x, L.Dense(1)(inner(x)))


def recurrent():
    return K.Sequential([L.Input((4, 2)), L.Bidirectional(L.LSTM(3, return_sequences=True)), L.GRU(2), L.Dense(1)])


def subclassed():
    model = Net(4)
    model(X[:1])
    return model


def same(a, b):
    for one, other in zip(tf.nest.flatten(a), tf.nest.flatten(b)):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", [functional, sequential, nested, recurrent, subclassed])
def test_whole_models_come_back_from_a_file(make, tmp_path):
    model = make()
    x = X.reshape(64, 4, 2) if make is recurrent else X
    model.set_weights([RNG.normal(size=w.shape).astype("f4") ** 2 for w in model.get_weights()])
    model.save(tmp_path / "m.keras")
    again = K.models.load_model(tmp_path / "m.keras")
    assert type(again) is type(model) and len(again.weights) == len(model.weights)
    same(model.predict(x), again.predict(x))
    other = make()
    model.save_weights(tmp_path / "w.safetensors")
    other.load_weights(tmp_path / "w.safetensors")
    same(model.predict(x), other.predict(x))


def test_training_goes_on_from_a_file(tmp_path):
    model = sequential()
    model.layers[1].rate = 0.0
    model.compile(K.optimizers.Adam(K.optimizers.schedules.ExponentialDecay(0.01, 2, 0.9)), K.losses.Huber(0.5), metrics=["mae"])
    model.fit(X, X[:, :1], verbose=0)
    model.save(tmp_path / "m.keras")
    again = K.models.load_model(tmp_path / "m.keras")
    again.layers[1].rate = 0.0
    a, b = (m.fit(X, X[:, :1], verbose=0, shuffle=False, epochs=2).history for m in (model, again))
    assert a == b and int(again.optimizer.iterations) == 6
    bare = K.models.load_model(tmp_path / "m.keras", compile=False)
    assert not bare.compiled


def test_models_as_data():
    model = functional()
    again = K.Model.from_config(model.get_config())
    assert json.loads(json.dumps(again.get_config())) == json.loads(json.dumps(model.get_config()))
    again.set_weights(model.get_weights())
    same(model.predict(X), again.predict(X))
    copy = K.models.clone_model(sequential())
    assert [type(layer).__name__ for layer in copy.layers] == ["Dense", "Dropout", "Scale", "Dense"]
    assert K.models.model_from_json(model.to_json()).count_params() == model.count_params()


def test_parts_of_models_are_models():
    model = nested()
    features = K.Model(model.inputs, model.layers[-1].input)
    assert features.predict(X).shape == (64, 1)
    plain = K.Sequential([L.Input((8,)), L.Dense(5, name="mid"), L.Dense(1)])
    mid = K.Model(plain.inputs, plain.get_layer("mid").output)
    np.testing.assert_allclose(mid.predict(X), X @ plain.get_weights()[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="No such layer.*mid"):
        plain.get_layer("none")
    assert plain.input_shape == (None, 8) and plain.output_shape == (None, 1) and plain.layers[0].output_shape == (None, 5)


def test_files_that_do_not_match_say_how(tmp_path):
    sequential().save_weights(tmp_path / "w.safetensors")
    other = K.Sequential([L.Input((8,)), L.Dense(5), L.Dense(1)])
    with pytest.raises(ValueError, match=r"dense/kernel.*\(8, 4\).*\(8, 5\)"):
        other.load_weights(tmp_path / "w.safetensors")
    with pytest.warns(UserWarning, match="without what does not match"):
        other.load_weights(tmp_path / "w.safetensors", skip_mismatch=True)
    with pytest.raises(ValueError, match="weights, not a whole model"):
        K.models.load_model(tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match="File not found"):
        K.models.load_model(tmp_path / "none.keras")
    with pytest.raises(ValueError, match="not yet built"):
        K.Sequential([L.Dense(1)]).load_weights(tmp_path / "w.safetensors")
    with pytest.raises(FileExistsError):
        other.save_weights(tmp_path / "w.safetensors", overwrite=False)


def test_a_model_without_weights_is_saved_once_it_is_built(tmp_path):
    class Plain(K.Model):
        def __init__(self):
            super().__init__()
            self.flatten, self.unused = L.Flatten(), L.Dropout(0.1)

        def call(self, x):
            return self.flatten(x)

    class Late(Net):
        def build(self, input_shape):
            pass

    plain, late = Plain(), Late(4)
    for model in (plain, late):
        with pytest.raises(ValueError, match="not yet built"):
            model.save_weights(tmp_path / "w.safetensors")
        model.build((None, 8))
    with pytest.raises(ValueError, match="not yet built"):
        late.save_weights(tmp_path / "w.safetensors")
    for model in (plain, K.Sequential([L.Input((8,)), L.Flatten()])):
        model.save_weights(tmp_path / "w.safetensors")
        model.load_weights(tmp_path / "w.safetensors")


def test_unknown_classes_in_a_configuration_are_named(tmp_path):
    class Hidden(L.Layer):
        pass

    model = K.Sequential([L.Input((8,)), Hidden()])
    model.save(tmp_path / "m.keras")
    with pytest.raises(TypeError, match="'Hidden'.*register_keras_serializable"):
        K.models.load_model(tmp_path / "m.keras")
    assert K.models.load_model(tmp_path / "m.keras", custom_objects={"Hidden": Hidden}).predict(X).shape == (64, 8)
    with K.saving.custom_object_scope({"Hidden": Hidden}):
        K.models.load_model(tmp_path / "m.keras")
    with pytest.raises(ValueError, match="lambda"):
        K.Sequential([L.Input((8,)), L.Lambda(lambda x: x)]).save(tmp_path / "l.keras")


def test_weights_near_the_budget_are_built_trained_saved_and_loaded_within_it(tmp_path):
    width, count = 256, 24
    weights = count * width * width * 4
    x = np.ones((4, width), "f4")

    def made():
        model = K.Sequential([L.Input((width,)), *(L.Dense(width, use_bias=False) for _ in range(count))])
        model.compile(K.optimizers.SGD(0.01), "mse")
        return model

    with tf.memory.limit(tf.memory.info()["current"] + int(weights / 0.9)):
        model = made()
        model.train_on_batch(x, x)
        model.save(tmp_path / "m.keras")
        expected = model.predict(x)
        del model
        again = K.models.load_model(tmp_path / "m.keras")
        np.testing.assert_array_equal(again.predict(x), expected)


def test_names_are_given_anew_after_clear_session():
    K.backend.clear_session()
    assert [L.Dense(1).name for _ in range(3)] == ["dense", "dense_1", "dense_2"]
    K.backend.clear_session()
    assert L.Dense(1).name == "dense" and K.Sequential().name == "sequential"


def test_helpers():
    assert K.utils.to_categorical([0, 2], 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match="3 classes"):
        K.utils.to_categorical([0, 3], 3)
    np.testing.assert_allclose(np.linalg.norm(K.utils.normalize(X), axis=-1), 1.0, rtol=1e-5)
    left, right = K.utils.split_dataset(np.arange(10), left_size=0.8)
    assert len(left) == 8 and [int(v) for v in right] == [8, 9]
    series = K.utils.timeseries_dataset_from_array(np.arange(10), np.arange(10) * 10, sequence_length=3, batch_size=4)
    x, y = next(iter(series))
    assert x.numpy().tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]] and y.numpy().tolist() == [0, 10, 20, 30]
    K.utils.set_random_seed(3)
    a = L.Dense(4)
    a(X)
    K.utils.set_random_seed(3)
    b = L.Dense(4)
    b(X)
    assert (a.kernel.numpy() == b.kernel.numpy()).all()
