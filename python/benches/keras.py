"""Training a model beside Keras on TensorFlow: time of a step, and memory on top of the weights.

    python keras.py [--tensorflow /path/to/a/python/that/has/it] [--rounds 3]
    python keras.py --steady

Both run the same program (an MLP and a CNN, ``model.fit``), in processes of their own that take turns; ratios are within one round. Memory
is what the process holds at its most while it trains, beyond what it held with the model built, data included, less the weights' optimizer
state; ``--steady`` predicts 100,000 times, then builds and drops 1,000 models, and prints what is resident on the way.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time

# This file has the name of what TensorFlow imports.
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402


def framework(name):
    """The module that has ``keras``."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if name == "tensorflow":
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(2)
        tf.config.threading.set_inter_op_parallelism_threads(2)
    else:
        import tonnage as tf
    return tf


def mlp(keras):
    """784-1024-1024-10, batches of 512."""
    layers = keras.layers
    model = keras.Sequential([layers.Input((784,)), layers.Dense(1024, activation="relu"), layers.Dense(1024, activation="relu"),
                              layers.Dense(10)])
    return model, (784,), 512


def cnn(keras):
    """Three convolutions over 32 by 32 images, batches of 128."""
    layers = keras.layers
    model = keras.Sequential([
        layers.Input((32, 32, 3)), layers.Conv2D(32, 3, padding="same", activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"), layers.Flatten(), layers.Dense(64, activation="relu"),
        layers.Dense(10)])
    return model, (32, 32, 3), 128


def resident():
    """Bytes that this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """The most that is resident inside of ``with``."""

    def __enter__(self):
        self.most, self._stop = resident(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def _run(self):
        while not self._stop.wait(0.002):
            self.most = max(self.most, resident())

    def __exit__(self, *exception):
        self._stop.set()
        self._thread.join()


def measured(name, which, steps):
    """Seconds of a step and bytes, as JSON."""
    tf = framework(name)
    model, shape, batch = {"mlp": mlp, "cnn": cnn}[which](tf.keras)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(batch * steps, *shape)).astype("f4"), rng.integers(0, 10, batch * steps)
    model.compile(tf.keras.optimizers.Adam(), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    weights = sum(int(np.prod(v.shape)) * 4 for v in model.weights)
    before = resident()
    with Watch() as watch:
        model.fit(x, y, batch_size=batch, verbose=0, shuffle=False)
        times = []
        for _ in range(3):
            start = time.perf_counter()
            model.fit(x, y, batch_size=batch, verbose=0, shuffle=False)
            times.append((time.perf_counter() - start) / steps)
    # What stays of a step is the weights, which become resident as they are written, and two of Adam's for each.
    print(json.dumps({"seconds": min(times), "bytes": watch.most - before - 3 * weights}))


def asked(python, name, which, steps):
    """The figures of one framework, from a process of its own."""
    ran = subprocess.run([python, __file__, "--one", name, which, str(steps)], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{name} failed:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout.strip().splitlines()[-1])


def steady():
    """What is resident after so many predictions, and so many models."""
    tf = framework("tonnage")
    model = tf.keras.Sequential([tf.keras.layers.Input((16,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.ones((8, 16), "f4")
    start = time.perf_counter()
    for i in range(100_001):
        model.predict(x, verbose=0)
        if i % 25_000 == 0:
            print(f"{i:>7} predictions  {resident() >> 10:>8} KiB resident  {tf.memory.info()['current']:>8} bytes held", flush=True)
    print(f"        {(time.perf_counter() - start) * 10:.1f} us each")
    for i in range(1001):
        inner = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(256, "relu"), tf.keras.layers.Dense(1)])
        inner.compile("adam", "mse")
        inner.train_on_batch(np.ones((4, 64), "f4"), np.ones((4, 1), "f4"))
        if i % 250 == 0:
            print(f"{i:>7} models       {resident() >> 10:>8} KiB resident  {tf.memory.info()['current']:>8} bytes held", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensorflow", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--steady", action="store_true")
    parser.add_argument("--one", nargs=3)
    given = parser.parse_args()
    if given.one:
        return measured(given.one[0], given.one[1], int(given.one[2]))
    if given.steady:
        return steady()
    for which in ("mlp", "cnn"):
        for number in range(given.rounds):
            own = asked(sys.executable, "tonnage", which, given.steps)
            other = asked(given.tensorflow, "tensorflow", which, given.steps)
            ratio, share = own["seconds"] / other["seconds"], own["bytes"] / max(1, other["bytes"])
            print(f"{which} round {number + 1}: {own['seconds'] * 1e3:7.2f} ms a step beside {other['seconds'] * 1e3:7.2f} ({ratio:.2f} of it); "
                  f"{own['bytes'] / 2**20:6.1f} MiB beside {other['bytes'] / 2**20:6.1f} ({share:.2f} of it)", flush=True)


if __name__ == "__main__":
    main()
