"""Keras from the registry on Tonnage: programs that a user writes.

Each program runs in a process of its own, as ``python -m tonnage`` runs it.
"""

import os
import pathlib
import subprocess
import sys

import pytest

import tonnage

# Where the package under test lies: beside the sources there may be none that was built.
PACKAGE = str(pathlib.Path(tonnage.__file__).resolve().parents[1])

START = """
import warnings
import numpy as np, keras, tensorflow as tf
from tonnage import _function
rng = np.random.default_rng(7)
keras.utils.set_random_seed(7)
def data(rows, columns, outputs):
    return rng.normal(size=(rows, columns)).astype("float32"), rng.normal(size=(rows, outputs)).astype("float32")
def functions(f, depth=0):
    '''The planned functions that a function of Keras holds.'''
    found = [f] if isinstance(f, _function.Function) else []
    for cell in getattr(f, "__closure__", None) or ():
        found += functions(cell.cell_contents, depth + 1) if depth < 4 and callable(cell.cell_contents) else []
    return found
def step_of(model):
    model.make_train_function()
    return next(f for f in functions(model.train_function) if f.__name__ == "one_step_on_data")
"""

PROGRAMS = {
    "a step of fit is that of the books": """
x, y = data(8, 3, 2)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
model.compile(keras.optimizers.SGD(0.1), "mse")
kernel, bias = (w.numpy().copy() for w in model.weights)
model.fit(x, y, batch_size=8, verbose=0)
away = 2 * (x @ kernel + bias - y) / y.size
np.testing.assert_allclose(model.weights[0], kernel - 0.1 * x.T @ away, rtol=1e-4, atol=1e-6)
np.testing.assert_allclose(model.weights[1], bias - 0.1 * away.sum(0), rtol=1e-4, atol=1e-6)
np.testing.assert_allclose(model.predict(x, verbose=0), x @ model.weights[0].numpy() + model.weights[1].numpy(), rtol=1e-4, atol=1e-5)
""",
    "the step is one plan, and takes what was predicted": """
x, y = data(4, 64, 4)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(512, "relu"), keras.layers.Dropout(0.3), keras.layers.Dense(512), keras.layers.Dense(4)])
model.compile("adam", "mse", metrics=["mae"])
step, batch = step_of(model), (tf.constant(x), tf.constant(y))
step(batch)
step(batch)
ran = step.last_run()
assert step.traces == 1 and ran["predicted"] == ran["used"] == step.plan(batch).peak, ran
state = sum(4 * int(np.prod(v.shape)) for v in [*model.variables, *model.optimizer.variables])
assert ran["obtained"] < state / 2, "updates are in place: the state is not there twice"
""",
    "recurrent layers with dropout are planned": """
model = keras.Sequential([keras.Input((5, 3)), keras.layers.LSTM(4, dropout=0.5, return_sequences=True), keras.layers.GRU(3, dropout=0.3)])
model.compile("sgd", "mse")
step, batch = step_of(model), (tf.ones([4, 5, 3]), tf.ones([4, 3]))
with warnings.catch_warnings():
    warnings.filterwarnings("error", message=".*op by op.*")
    step(batch)
ran = step.last_run()
assert ran["predicted"] == ran["used"] > 0 and ran["spilled"] == 0
""",
    "files hold what was saved": """
import tempfile, pathlib
folder = pathlib.Path(tempfile.mkdtemp())
x, y = data(10, 4, 1)
inputs = keras.Input((4,))
model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.LayerNormalization()(inputs)))
model.compile("adam", "mse")
model.fit(x, y, verbose=0)
model.save(folder / "model.keras")
loaded = keras.models.load_model(folder / "model.keras")
np.testing.assert_array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))
model.save_weights(folder / "model.weights.h5")
other = keras.models.clone_model(model)
other.load_weights(folder / "model.weights.h5")
np.testing.assert_array_equal(other.predict(x, verbose=0), model.predict(x, verbose=0))
first, second = (m.fit(x, y, verbose=0, shuffle=False).history["loss"] for m in (model, loaded))
assert first == second, "the optimizer's state was saved too"
""",
    "files have the places that Keras gives them, of subclasses too": """
import h5py, tempfile, pathlib
class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.several = [keras.layers.Dense(2), keras.layers.Dense(3)]
        self.last = keras.layers.Dense(1)
    def call(self, x):
        for layer in [*self.several, self.last]:
            x = layer(x)
        return x
model = Own()
model.compile("sgd", "mse")
model.fit(*data(8, 4, 1), verbose=0)
path = pathlib.Path(tempfile.mkdtemp(), "own.weights.h5")
model.save_weights(path)
names = []
h5py.File(path).visititems(lambda name, found: names.append(name) if isinstance(found, h5py.Dataset) else None)
layers = [f"{layer}/vars/{i}" for layer in ("last", "layers/dense", "layers/dense_1") for i in (0, 1)]  # as on TensorFlow
assert sorted(name for name in names if not name.startswith("optimizer")) == layers, names
""",
    "a train_step of one's own, in a subclass that is built as it is called": """
class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
    def call(self, x):
        return self.dense(x)
    def train_step(self, batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = keras.ops.mean(keras.ops.square(self(x, training=True) - y))
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply(gradients, self.trainable_weights)
        return {"own": loss}
x, y = data(16, 3, 1)
model = Own()
model.compile(keras.optimizers.SGD(0.1))
history = model.fit(x, y, batch_size=16, epochs=20, verbose=0).history["own"]
assert history[-1] < 0.9 * history[0]
""",
    "rows of embeddings stay rows": """
layer = keras.layers.Embedding(1000, 4)
layer.build()
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(layer(tf.constant([3, 5])))
gradient = tape.gradient(loss, layer.embeddings)
assert isinstance(gradient, tf.IndexedSlices) and sorted(gradient.indices.numpy().tolist()) == [3, 5]
assert isinstance(tf.cast(gradient, "float64"), tf.IndexedSlices)
""",
    "partial batches, several steps at a time, and data of a dataset": """
x, y = data(50, 3, 1)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", steps_per_execution=3)
model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(16), verbose=0)
assert int(model.optimizer.iterations) == 4
""",
    "fit is planned as a whole, with a last batch of fewer rows": """
from tonnage._as_tensorflow.models import _planned
x, y = data(50, 3, 2)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dropout(0.2), keras.layers.Dense(2)])
model.compile("adam", "mse")
rows = []
class Look(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        [ran] = [f.last_run() for f in _planned(self.model.train_function) if f.last_run()]
        rows.append(ran["predicted"])
        assert ran["predicted"] == ran["used"] > 0
with warnings.catch_warnings():
    warnings.filterwarnings("error", message=".*op by op.*")
    model.fit(x, y, batch_size=16, epochs=2, verbose=0, callbacks=[Look()])
    model.evaluate(x, y, batch_size=16, verbose=0)
    assert model.predict(x, batch_size=16, verbose=0).shape == (50, 2)
assert len(rows) == 8 and rows[3] < rows[2], "each batch by its own plan"
""",
    "several steps at a time, where the last batch of a call has fewer rows": """
x, y = data(40, 3, 1)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", steps_per_execution=3)
model.fit(x, y, batch_size=16, verbose=0)
assert int(model.optimizer.iterations) == 3
""",
    "a model is planned before it runs": """
import tonnage
def check(model, batch, rows):
    planned = tonnage.memory.plan(model, batch)
    assert planned.peak == tonnage.memory.plan(model, rows).peak > 0
    assert tonnage.memory.plan(model, 2 * rows).peak > planned.peak
    assert "matmul" in tonnage.memory.explain(model, batch)
x, y = data(8, 3, 2)
inputs = keras.Input((3,))
hidden = keras.layers.Dense(16, "relu")(inputs)
check(keras.Model(inputs, hidden), (x,), 8)
for losses, outputs, batch in [
    ("mse", keras.layers.Dense(2)(hidden), (x, y)),
    (keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.layers.Dense(5)(hidden), (x, np.zeros(8, "int32"))),
    ({"a": "mse", "b": "sparse_categorical_crossentropy"},
     {"a": keras.layers.Dense(2, name="a")(hidden), "b": keras.layers.Dense(3, "softmax", name="b")(hidden)}, (x, {"a": y, "b": np.zeros(8, "int32")})),
]:
    model = keras.Model(inputs, outputs)
    model.compile("adam", losses)
    before = [v.numpy().copy() for v in model.variables]
    check(model, batch, 8)
    assert all(np.array_equal(v, b) for v, b in zip(model.variables, before)), "nothing ran"
    model.fit(*batch, verbose=0)
most = tonnage.memory.max_batch(model, "256KiB")
assert most > 1
with tonnage.memory.budgeted("256KiB"):
    assert tonnage.memory.plan(model, most).peak <= 256 * 1024
    try:
        tonnage.memory.plan(model, most + 1)
    except tf.errors.ResourceExhaustedError:
        pass
    else:
        raise AssertionError("one more fits")
class Own(keras.Model):
    def call(self, x):
        return x
try:
    tonnage.memory.plan(Own(), 8)
except ValueError as error:
    assert "give (x, y) of arrays" in str(error)
else:
    raise AssertionError("its inputs are not known")
""",
    "fit within a budget, or not at all": """
import tonnage
from tonnage._as_tensorflow.models import _planned
x, y = data(1200, 64, 4)
def made():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((64,)), *[keras.layers.Dense(64, "relu") for _ in range(6)], keras.layers.Dense(4)])
    model.compile("sgd", "mse")
    return model
free, tight = made(), made()
wanted = tonnage.memory.plan(free, 512).peak
logs = free.fit(x, y, batch_size=512, verbose=0, shuffle=False, callbacks=[tonnage.memory.progress()]).history
assert logs["bytes_peak"][0] >= logs["bytes_now"][0] > 0 and logs["bytes_predicted"][0] > 0
budget = int(wanted * 0.8)
with tonnage.memory.budgeted(budget):
    history = tight.fit(x, y, batch_size=512, verbose=0, shuffle=False).history
np.testing.assert_allclose(history["loss"], logs["loss"], rtol=1e-4)
assert all(f.last_run()["predicted"] <= budget for f in _planned(tight.train_function) if f.last_run())
before = [v.numpy().copy() for v in [*tight.variables, *tight.optimizer.variables]]
try:
    with tonnage.memory.budgeted("32KiB"):
        tight.fit(x, y, batch_size=512, verbose=0)
except tf.errors.ResourceExhaustedError as error:
    assert "the least that would do" in str(error)
else:
    raise AssertionError("it cannot fit")
assert all(np.array_equal(v, b) for v, b in zip([*tight.variables, *tight.optimizer.variables], before))
tight.fit(x, y, batch_size=512, verbose=0)
""",
    "a batch in the middle of fit that is too large leaves the step before": """
import tonnage
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(2)])
model.compile("adam", "mse")
state, kept = lambda: [v.numpy().copy() for v in [*model.variables, *model.optimizer.variables]], []
def batches():
    for rows in (8, 8, 4096):
        yield np.ones((rows, 16), "float32"), np.ones((rows, 2), "float32")
class Keep(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        kept.append(state())
try:
    with tonnage.memory.budgeted("48KiB"):
        model.fit(batches(), verbose=0, callbacks=[Keep()])
except tf.errors.ResourceExhaustedError as error:
    assert "the least that would do" in str(error)
else:
    raise AssertionError("it cannot fit")
assert len(kept) == 2 and all(np.array_equal(a, b) for a, b in zip(state(), kept[-1]))
assert not all(np.array_equal(a, b) for a, b in zip(*kept))
""",
    "a subclass that fit builds knows its shapes afterwards": """
import pathlib, tempfile, tonnage
class Inner(keras.layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.one, self.two = keras.layers.Dense(4, "relu"), keras.layers.Dense(4)
    def call(self, x):
        return self.two(self.one(x))
@keras.saving.register_keras_serializable()
class Own(keras.Model):
    def __init__(self, **options):
        super().__init__(**options)
        self.inner, self.last = Inner(), keras.layers.Dense(2)
    def call(self, x):
        return self.last(self.inner(x["a"]) + x["b"]) if isinstance(x, dict) else self.last(self.inner(x))
x, y = data(8, 3, 2)
for given in (x, {"a": x, "b": x[:, :1]}):
    model = Own()
    model.compile("adam", "mse")
    model.fit(given, y, batch_size=8, verbose=0)
    assert model._build_shapes_dict and model.inner._build_shapes_dict, "as on TensorFlow"
    assert tonnage.memory.plan(model, 8).peak == tonnage.memory.plan(model, (given, y)).peak > 0
    assert tonnage.memory.plan(model, 16).peak > tonnage.memory.plan(model, 8).peak
    path = pathlib.Path(tempfile.mkdtemp(), "own.keras")
    model.save(path)
    loaded = keras.models.load_model(path)
    assert loaded.built
    np.testing.assert_array_equal(loaded.predict(given, verbose=0), model.predict(given, verbose=0))
""",
    "several steps at a time are one plan with a loop": """
from tonnage._as_tensorflow.models import _planned
x, y = data(96, 3, 1)
def fitted(steps):
    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(256, "relu"), keras.layers.Dropout(0.2), keras.layers.Dense(256), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"], steps_per_execution=steps)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*op by op.*")
        history = model.fit(x, y, batch_size=16, epochs=2, verbose=0, shuffle=False).history
    assert int(model.optimizer.iterations) == 12
    [ran] = [f.last_run() for f in _planned(model.train_function) if f.last_run()]
    assert ran["predicted"] == ran["used"], ran
    state = sum(4 * int(np.prod(v.shape)) for v in [*model.variables, *model.optimizer.variables])
    # A call that ends with an error leaves the state as it was: a loop, in which batches are asked for, works on a copy, and on one alone.
    assert ran["obtained"] < (0.7 if steps == 1 else 1.7) * state, (steps, state, ran)
    return history
once = fitted(1)
for steps in (2, 4):  # of 6, which 4 does not divide
    assert fitted(steps) == once
""",
    "what max_batch says is what fit takes": """
import tonnage
from tonnage._as_tensorflow.models import _planned
layers = keras.layers
for inner in ([layers.Flatten(), layers.Dense(32, "relu")], [layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten()],
              [layers.Conv2D(4, 3), layers.Flatten(), layers.Dropout(0.5)]):
    model = keras.Sequential([keras.Input((12, 12, 1)), *inner, layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    def fit(rows):
        model.fit(rng.normal(size=(rows, 12, 12, 1)).astype("float32"), rng.integers(0, 10, rows).astype("int32"), batch_size=rows, verbose=0)
        return [f.last_run() for f in _planned(model.train_function) if f.last_run()]
    for rows in (24, 40):
        free = tonnage.memory.plan(model, rows).peak
        assert {(ran["predicted"], ran["used"]) for ran in fit(rows)} == {(free, free)}
    for budget in (free * 3 // 4, 4 * free):
        most = tonnage.memory.max_batch(model, budget)
        assert most >= 1
        with tonnage.memory.budgeted(budget):
            assert all(ran["predicted"] <= budget for ran in fit(most))
            try:
                fit(most + 1)
            except tf.errors.ResourceExhaustedError:
                pass
            else:
                raise AssertionError("one more fits")
""",
    "metrics, and layers that change images, are planned with the step": """
import tonnage
layers, metrics = keras.layers, keras.metrics
x, y = rng.uniform(0, 255, (24, 8, 8, 3)).astype("float32"), rng.integers(0, 2, (24, 1)).astype("float32")
images = [layers.RandomFlip(), layers.RandomRotation(0.1), layers.RandomZoom(0.1), layers.RandomTranslation(0.1, 0.1), layers.RandomShear(0.1, 0.1),
          layers.RandomContrast(0.1), layers.RandomBrightness(0.1), layers.RandomPerspective(), layers.RandomGaussianBlur(), layers.RandomErasing(),
          layers.RandomHue(0.1, (0, 255)), layers.RandomSharpness(0.1, (0, 255)), layers.Rescaling(1 / 255), layers.Resizing(6, 6), layers.CenterCrop(4, 4)]
measures = [metrics.AUC(), metrics.AUC(curve="PR", name="pr"), metrics.Precision(), metrics.Recall(thresholds=[0.3, 0.6]), metrics.F1Score(),
            metrics.SensitivityAtSpecificity(0.5), metrics.PrecisionAtRecall(0.5), metrics.BinaryIoU(), metrics.MeanSquaredError()]
model = keras.Sequential([keras.Input((8, 8, 3)), *images, layers.Flatten(), layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=measures)
with warnings.catch_warnings(), tonnage.memory.budgeted("4MiB"):
    warnings.filterwarnings("error", message=".*op by op.*")
    history = model.fit(x, y, batch_size=16, verbose=0).history
    model.evaluate(x, y, batch_size=16, verbose=0)
assert 0 <= history["auc"][0] <= 1
changed = keras.Sequential(images[:-3])
rows = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (changed(a, training=True), b), num_parallel_calls=4).batch(6)
with warnings.catch_warnings():
    warnings.filterwarnings("error", message=".*op by op.*")
    assert [a.shape.as_list() for a, b in rows] == [[6, 8, 8, 3]] * 4
""",
    "sparse rows": """
import tonnage
dense = np.zeros((6, 5), "float32")
dense[[0, 2, 2, 5], [1, 0, 4, 3]] = [1, 2, 3, 4]
x, y = tf.sparse.from_dense(dense), np.ones((6, 2), "float32")
def made():
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((5,), sparse=True), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    return model
model, other = made(), made()
np.testing.assert_allclose(model.predict_on_batch(x), other.predict_on_batch(dense), rtol=1e-6)
for _ in range(2):
    np.testing.assert_allclose(model.train_on_batch(x, y), other.train_on_batch(dense, y), rtol=1e-5)
np.testing.assert_allclose(model.weights[0], other.weights[0], rtol=1e-5)
# Rows are not taken out of them.
for refused, words in [(lambda: model.fit(x, y, verbose=0), "train_on_batch"), (lambda: model.predict(x, verbose=0), "predict_on_batch"),
                       (lambda: model.fit(tf.data.Dataset.from_tensors((x, y)), verbose=0), "make it dense"),
                       (lambda: model.fit(((x, y) for _ in range(2)), verbose=0), "SparseTensor")]:
    try:
        refused()
    except (NotImplementedError, TypeError, ValueError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
""",
    "training with rows of embeddings is planned": """
from tonnage._as_tensorflow.models import _planned
tokens = rng.integers(0, 50, (32, 6)).astype("int32")
targets = rng.normal(size=(32, 1)).astype("float32")
for optimizer in ("sgd", "adam", "adamw", "nadam", "adamax", "ftrl", "lion"):
    model = keras.Sequential([keras.Input((6,), dtype="int32"), keras.layers.Embedding(50, 8), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*op by op.*")
        model.fit(tokens, targets, batch_size=16, verbose=0)
    assert all(f.last_run()["predicted"] == f.last_run()["used"] for f in _planned(model.train_function) if f.last_run()), optimizer
""",
    "plans and reports say layers, and lines of the program": """
import pathlib, tempfile, tonnage
class Own(keras.Model):
    def __init__(self):
        super().__init__(name="own")
        self.first, self.last = keras.layers.Dense(64, name="first"), keras.layers.Dense(2, name="last")
    def call(self, x):
        y = self.first(x)
        return self.last(y)
x, y = data(32, 16, 2)
inputs = keras.Input((16,))
functional = keras.Model(inputs, keras.layers.Dense(2, name="last")(keras.layers.Dense(64, "relu", name="first")(inputs)), name="functional")
for model in (Own(), functional):
    model.compile("adam", "mse")
    plan = tonnage.memory.plan(model, (x, y))
    layers = {step["layer"] for step in plan.steps()}
    assert {model.name + "/first", model.name + "/last", model.optimizer.name} <= layers, layers
    assert sum(size for layer, size in plan.by_layer() if "first" in layer.split("/")) > 64 * 16 * 4
    lines = [step["source"] for step in plan.steps() if step["source"]]
    assert lines and not [line for line in lines if "site-packages" in line], "of the program, not of Keras"
    page = pathlib.Path(tempfile.mkdtemp(), "step.html")
    tonnage.memory.report(page, model, (x, y))
    assert model.name + "/first" in page.read_text() and "program.py" in page.read_text()
model = Own()
model.compile("adam", "mse")
[line] = {step["source"] for step in tonnage.memory.plan(model, (x, y)).steps() if step["layer"] == "own/first" and step["op"] == "matmul"}
assert pathlib.Path(__file__).read_text().splitlines()[int(line.rpartition(":")[2]) - 1].strip() == "y = self.first(x)"
""",
    "a summary has bytes": """
import re, tonnage
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(64, "relu", name="first"), keras.layers.Dense(2, name="last")])
model.compile("adam", "mse")
plain = tonnage.memory.summary(model)
assert "first (Dense)" in plain and "4,352" in plain and "at the peak, " not in plain and "1,218, 4,872 bytes" in plain
planned = tonnage.memory.summary(model, 32)
assert f"{tonnage.memory.plan(model, 32).peak:,} bytes at the peak" in planned
held = {line.split()[0]: int(line.split()[-1].replace(",", "")) for line in planned.splitlines() if "(Dense)" in line}
assert held["first"] > 4352 and sum(held.values()) < tonnage.memory.plan(model, 32).peak
state = sum(int(np.prod(v.shape)) * tf.as_dtype(v.dtype).size for v in model.optimizer.variables)
assert f"state of the optimizer: {state:,} bytes" in planned
try:
    tonnage.memory.summary(keras.Sequential([keras.layers.Dense(2)]))
except ValueError as error:
    assert "is not built" in str(error)
else:
    raise AssertionError("nothing is known of it")
""",
    "tf.keras is Keras": """
from tensorflow.keras import layers
import tensorflow.keras.optimizers as optimizers
assert layers.Dense is keras.layers.Dense and optimizers.Adam is keras.optimizers.Adam and tf.keras.Model is keras.Model
""",
}


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_program(case, tmp_path):
    (tmp_path / "program.py").write_text(START + PROGRAMS[case])
    variables = {**os.environ, "PYTHONPATH": PACKAGE}
    variables.pop("KERAS_BACKEND", None)
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "tonnage", str(tmp_path / "program.py")], capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr
