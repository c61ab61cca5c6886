"""Training with Keras, on Tonnage beside TensorFlow: time of a step, memory on top of the state, predicted and measured; and what an import costs.

    python keras.py [--tensorflow /path/to/a/python/that/has/it] [--rounds 3] [--steps 20] [--divide 1] [WORKLOAD ...]
    python keras.py --import
    python keras.py --steady

Three ways run the same programs with ``model.fit``, in processes of their own that take turns: ``keras`` (Keras from the registry, on Tonnage),
``own`` (``tonnage.keras``) and ``tensorflow`` (the same Keras on TensorFlow; left out where no interpreter is named that has it). Ratios are
within one round. Memory is what the process holds at its most from the import on, less what it held then, the arrays that are
trained on, and the state: variables of the model and of the optimizer. ``--divide`` makes widths and batches smaller, to try the program out.
``--import`` measures imports alone. ``--steady`` predicts 100,000 times, then builds and drops 1,000 models, and prints what is resident on the way.

Decision: ``docs/decisions/own-keras-stays.md``.
"""

import argparse
import json
import os
import subprocess
import sys
import time

# This file has the name of what it imports.
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402


def keras_of(way):
    """Keras, imported so."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if way == "own":
        import tonnage

        return tonnage.keras
    if way == "keras":
        import tonnage

        tonnage.install()
    else:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(os.cpu_count())
        tf.config.threading.set_inter_op_parallelism_threads(os.cpu_count())
    import keras

    return keras


# Workloads: a model, the shape and the number of classes of its inputs (none: floats), and rows of a batch. Targets are numbers of ten classes.


def mlp(keras, divide):
    """784-1024-1024-10, batches of 512."""
    layers, width = keras.layers, 1024 // divide
    model = keras.Sequential([layers.Input((784,)), layers.Dense(width, activation="relu"), layers.Dense(width, activation="relu"),
                              layers.Dense(10)])
    return model, (784,), None, 512 // divide


def cnn(keras, divide):
    """ResNet-20 over 32 by 32 images, batches of 128."""
    layers = keras.layers

    def block(x, width, stride):
        y = layers.Conv2D(width, 3, strides=stride, padding="same", use_bias=False)(x)
        y = layers.Activation("relu")(layers.BatchNormalization()(y))
        y = layers.BatchNormalization()(layers.Conv2D(width, 3, padding="same", use_bias=False)(y))
        if stride != 1:
            x = layers.Conv2D(width, 1, strides=stride, use_bias=False)(x)
        return layers.Activation("relu")(layers.Add()([x, y]))

    x = inputs = layers.Input((32, 32, 3))
    x = layers.Activation("relu")(layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same", use_bias=False)(x)))
    for width, stride in [(16, 1)] * 3 + [(32, 2)] + [(32, 1)] * 2 + [(64, 2)] + [(64, 1)] * 2:
        x = block(x, width, stride)
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x))), (32, 32, 3), None, 128 // divide


def lstm(keras, divide):
    """64 steps of 64 numbers, 256 units, batches of 64."""
    layers = keras.layers
    model = keras.Sequential([layers.Input((64, 64)), layers.LSTM(256 // divide), layers.Dense(10)])
    return model, (64, 64), None, 64 // divide


def transformer(keras, divide):
    """Two blocks of attention over 128 tokens, 128 wide, batches of 32."""
    layers, width = keras.layers, 128 // divide
    inputs = layers.Input((128,), dtype="int32")
    x = layers.Embedding(2000, width)(inputs)
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, width // 4)(y, y)])
        y = layers.Dense(4 * width, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(width)(y)])
    return keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x))), (128,), 2000, 32 // divide


WORKLOADS = {f.__name__: f for f in (mlp, cnn, lstm, transformer)}


def resident():
    """Bytes that this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def most_resident():
    """The most that it held since :func:`forget_most`."""
    with open("/proc/self/status") as file:
        return int(file.read().partition("VmHWM:")[2].split()[0]) * 1024


def forget_most():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def bytes_of(variables):
    return sum(int(np.prod(v.shape)) * 4 for v in variables)


def ran(model):
    """What the step of ``fit`` was predicted to take, and took; none on TensorFlow."""
    if "tonnage" not in sys.modules:
        return None
    import gc

    from tonnage._function import Function

    runs = [f.last_run() for f in gc.get_objects() if isinstance(f, Function)]
    most = max((run for run in runs if run), key=lambda run: run["used"], default=None)
    return most and (most["predicted"], most["used"])


def measured(way, workload, steps, divide):
    """Seconds of a step and bytes, as JSON."""
    keras = keras_of(way)
    imported = resident()
    model, shape, classes, batch = WORKLOADS[workload](keras, divide)
    rng, rows = np.random.default_rng(0), batch * steps
    x = rng.normal(size=(rows, *shape)).astype("f4") if classes is None else rng.integers(0, classes, (rows, *shape)).astype("i4")
    y = rng.integers(0, 10, rows).astype("i4")
    model.compile(keras.optimizers.Adam(), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    forget_most()
    times = []
    for _ in range(4):
        start = time.perf_counter()
        model.fit(x, y, batch_size=batch, verbose=0, shuffle=False)
        times.append((time.perf_counter() - start) / steps)
    state = bytes_of(model.variables) + bytes_of(model.optimizer.variables)
    print(json.dumps({"seconds": min(times[1:]), "first": times[0] * steps, "bytes": most_resident() - imported - x.nbytes - y.nbytes - state,
                      "state": state, "ran": ran(model)}))


def imported(way):
    """Seconds and bytes of an import, as JSON."""
    before, start = resident(), time.perf_counter()
    keras_of(way)
    print(json.dumps({"seconds": time.perf_counter() - start, "bytes": resident() - before}))


def asked(python, *words):
    """The figures of one way, from a process of its own."""
    done = subprocess.run([python, __file__, "--one", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{words} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def shown(name, figures):
    """A line for each way, with its share of TensorFlow's."""
    peer = figures.get("tensorflow")
    for way, own in figures.items():
        line = f"{name:<22}{way:<11}{own['seconds'] * 1e3:9.2f} ms {own['bytes'] / 2**20:8.1f} MiB"
        if peer is not None and own is not peer:
            line += f"   {own['seconds'] / peer['seconds']:5.2f} of the time, {own['bytes'] / max(1, peer['bytes']):5.2f} of the memory"
        if own.get("ran"):
            line += f"   predicted {own['ran'][0]:,} took {own['ran'][1]:,}"
        print(line, flush=True)


def steady():
    """What is resident after so many predictions, and so many models."""
    keras = keras_of("keras")
    from tonnage import memory

    def tell(count, what):
        print(f"{count:>7} {what:<12} {resident() >> 10:>8} KiB resident  {memory.info()['current']:>8} bytes held", flush=True)

    model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.ones((8, 16), "f4")
    start = time.perf_counter()
    for i in range(100_001):
        model.predict_on_batch(x)
        if i % 25_000 == 0:
            tell(i, "predictions")
    print(f"        {(time.perf_counter() - start) * 10:.1f} us each")
    for i in range(1001):
        inner = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(256, "relu"), keras.layers.Dense(1)])
        inner.compile("adam", "mse")
        inner.train_on_batch(np.ones((4, 64), "f4"), np.ones((4, 1), "f4"))
        if i % 250 == 0:
            tell(i, "models")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", choices=[[], *WORKLOADS], default=[])
    parser.add_argument("--tensorflow", help="an interpreter that has TensorFlow and Keras")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--divide", type=int, default=1)
    parser.add_argument("--import", action="store_true", dest="imports")
    parser.add_argument("--steady", action="store_true")
    parser.add_argument("--one", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return imported(given.one[0]) if len(given.one) == 1 else measured(*given.one[:2], *map(int, given.one[2:]))
    if given.steady:
        return steady()
    pythons = {"keras": sys.executable, "own": sys.executable} | ({"tensorflow": given.tensorflow} if given.tensorflow else {})
    for number in range(1, given.rounds + 1):
        shown(f"import, round {number}", {way: asked(python, way) for way, python in pythons.items()})
    for workload in [] if given.imports else given.workloads or WORKLOADS:
        for number in range(1, given.rounds + 1):
            shown(f"{workload}, round {number}",
                  {way: asked(python, way, workload, given.steps, given.divide) for way, python in pythons.items()})


if __name__ == "__main__":
    main()
