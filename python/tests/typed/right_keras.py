"""Programs as people write them, with Keras and training. See ``right.py``."""

import pathlib
from typing import Any, assert_type

import numpy as np
import tonnage as tf
from tonnage import keras
from tonnage.keras import layers


def models_are_built_trained_and_saved(folder: pathlib.Path) -> None:
    x, y = np.random.rand(16, 4).astype("float32"), np.random.randint(0, 3, 16)
    model = tf.keras.Sequential([
        tf.keras.Input(shape=(4,)),
        tf.keras.layers.Dense(8, activation="relu", kernel_initializer="he_normal", kernel_regularizer=keras.regularizers.L2(0.01)),
        layers.Dropout(0.1),
        layers.BatchNormalization(),
        layers.Dense(3, activation=tf.nn.softmax),
    ])
    model.compile(optimizer=tf.keras.optimizers.Adam(learning_rate=1e-2), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=10, decay_rate=0.9)
    model.compile(keras.optimizers.SGD(schedule, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=False),
                  metrics=[keras.metrics.SparseCategoricalAccuracy(name="acc")])
    stopping = keras.callbacks.EarlyStopping(monitor="loss", patience=2, restore_best_weights=True)
    history = model.fit(x, y, batch_size=8, epochs=2, validation_split=0.25, verbose=0, callbacks=[stopping], shuffle=True)
    assert len(history.history["loss"]) == 2
    model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8), epochs=1, verbose=0, budget="16MiB")
    loss, accuracy = model.evaluate(x, y, verbose=0)
    assert model.predict(x, verbose=0).shape == (16, 3) and accuracy <= 1.0
    assert_type(model.plan(8).peak, int)
    assert_type(model.count_params(), int)
    model.summary(print_fn=lambda line: None)
    weights = model.get_weights()
    model.set_weights([w * 0.5 for w in weights])
    model.save_weights(folder / "w.weights.h5")
    model.load_weights(str(folder / "w.weights.h5"))
    model.layers[0].trainable = False
    assert [v.name for v in model.trainable_variables] and model.optimizer.learning_rate is not None
    model(x, training=False)
    for layer in model.layers:
        assert layer.name


def functional_models_are_graphs_of_calls() -> None:
    inputs = keras.Input((8,), name="features")
    hidden = layers.Dense(4, activation=keras.activations.relu)(inputs)
    joined = layers.Concatenate()([hidden, inputs])
    outputs = layers.Dense(1)(layers.add([hidden, layers.Dense(4)(joined)]) * 2.0)
    model = keras.Model(inputs=inputs, outputs=outputs, name="functional")
    model.compile("adam", "mse")
    model.fit({"features": np.ones((4, 8), "float32")}, np.ones((4, 1), "float32"), verbose=0)
    sequence = keras.Sequential([layers.Embedding(10, 4), layers.Bidirectional(layers.LSTM(3, return_sequences=True)), layers.GRU(2)])
    assert sequence(np.array([[1, 2, 3]])).shape == (1, 2)
    parts = [keras.Input((4,)), layers.Dense(2), lambda x: x * 2.0]
    assert keras.Sequential(parts)(tf.ones([1, 4])).shape == (1, 2)
    image = keras.Sequential([layers.Conv2D(4, (3, 3), strides=2, padding="same"), layers.MaxPooling2D(), layers.Flatten()])
    assert image(tf.ones([1, 8, 8, 3])).shape[0] == 1


class Affine(keras.layers.Layer):
    """A layer of one's own."""

    def __init__(self, units: int = 4, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        self.w = self.add_weight(shape=(input_shape[-1], self.units), initializer="random_normal", trainable=True, name="w")
        self.b = self.add_weight(shape=[self.units], initializer=keras.initializers.Zeros())

    def call(self, x, training=False):
        assert_type(self.w, tf.Variable)
        return tf.matmul(x, self.w) + self.b

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class Net(keras.Model):
    """A model of one's own, with a step of its own."""

    def __init__(self) -> None:
        super().__init__(name="net")
        self.hidden = [Affine(4), Affine(3)]
        self.drop = layers.Dropout(0.2)
        self.tracker = keras.metrics.Mean(name="loss")

    def call(self, inputs, training=None):
        for layer in self.hidden:
            inputs = tf.nn.relu(layer(inputs))
        return self.drop(inputs, training=training)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}

    @property
    def metrics(self):
        return [self.tracker]


class Quantile(keras.losses.Loss):
    """A loss of one's own."""

    def call(self, y_true, y_pred):
        return tf.reduce_mean(tf.abs(y_true - y_pred), axis=-1)


class Largest(keras.metrics.Metric):
    """A metric of one's own."""

    def __init__(self, name: str = "largest", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.largest = self.add_weight(name="largest", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.largest.assign(tf.maximum(self.largest, tf.reduce_max(y_pred)))

    def result(self):
        return self.largest.read_value()


class Count(keras.callbacks.Callback):
    """A callback of one's own."""

    seen = 0

    def on_epoch_end(self, epoch, logs=None):
        self.seen += 1
        assert logs["loss"] >= 0.0 and self.model.name == "net"


def classes_of_ones_own_extend_keras() -> None:
    net, count = Net(), Count()
    net.compile(optimizer=keras.optimizers.AdamW(1e-3, weight_decay=0.01, clipnorm=1.0), loss=Quantile(), metrics=[Largest()])
    net.fit(np.ones((8, 2), "float32"), np.ones((8, 3), "float32"), epochs=2, verbose=0, callbacks=[count])
    assert count.seen == 2 and Affine.from_config(Affine(7).get_config()).units == 7
    assert_type(Quantile()(tf.ones([2, 1]), tf.zeros([2, 1])), tf.Tensor)

    @keras.saving.register_keras_serializable(package="mine")
    class Registered(Affine):
        pass

    assert Registered(3).units == 3


class Counter(tf.Module):
    """A module of one's own."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__(name="counter")
        self.value = tf.Variable(start)

    @tf.function
    def __call__(self, by: tf.Tensor) -> tf.Tensor:
        return self.value.assign_add(by).read_value() if tf.executing_eagerly() else self.value.assign_add(by)


def training_loops_are_written_by_hand() -> None:
    w, b = tf.Variable(tf.random.normal([3, 1])), tf.Variable([0.0])
    optimizer, loss_of = tf.keras.optimizers.Adam(0.05), tf.keras.losses.MeanSquaredError()
    mean = tf.keras.metrics.Mean()

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(y, x @ w + b)
        gradients = tape.gradient(loss, [w, b])
        optimizer.apply_gradients(zip(gradients, [w, b]))
        return loss

    losses: list[float] = []
    for _ in range(3):
        loss = step(tf.ones([4, 3]), tf.zeros([4, 1]))
        mean.update_state(loss)
        losses.append(float(loss))
    assert float(mean.result()) > 0.0
    optimizer.learning_rate = 0.01
    optimizer.minimize(lambda: tf.reduce_sum(tf.square(w)), [w])
    assert_type(optimizer.iterations, tf.Variable)
    counter = Counter()
    counter(tf.constant(2.0))
    assert [v.name for v in counter.trainable_variables] and len(counter.variables) == 1


def state_is_kept_in_checkpoints(folder: pathlib.Path) -> None:
    v = tf.Variable([1.0])
    checkpoint = tf.train.Checkpoint(v=v, optimizer=keras.optimizers.SGD())
    manager = tf.train.CheckpointManager(checkpoint, folder / "saved", max_to_keep=2)
    assert manager.save() is not None
    v.assign([2.0])
    checkpoint.restore(manager.latest_checkpoint).expect_partial()
    assert v.numpy()[0] == 1.0 and tf.train.latest_checkpoint(str(folder / "saved")) is not None
