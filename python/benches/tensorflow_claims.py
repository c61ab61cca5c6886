"""What is often said about memory in TensorFlow, held against TensorFlow: needs it installed, on Linux. `docs/from-tensorflow.md` quotes it."""

import gc
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # noqa: E402


def resident():
    """What the process holds, in MB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def told(claim, f):
    """Prints what becomes of a claim."""
    try:
        found = f()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = lines[-1] if lines[0].startswith("in user code") else lines[0]
        found = f"{type(error).__name__}: {said[:110]}"
    print(f"{claim}\n    {found}")


def grown(f):
    """What a program holds more at its end."""
    before = resident()
    f()
    return f"{resident() - before:,.0f} MB more are resident"


def loop(tape):
    a = tf.random.normal((1000, 1000))
    result = a
    if tape:
        tape.watch(a)
    for _ in range(100):
        result = tf.matmul(result, a) / 30.0
    return result


def taped():
    with tf.GradientTape() as tape:
        loop(tape)
    del tape
    gc.collect()


@tf.function
def either(x, condition):
    if condition:
        return tf.square(x)
    return tf.zeros_like(x)


def branches():
    x = tf.ones([2])
    either(x, True), either(x, False)
    ops = [op.type for op in either.get_concrete_function(x, True).graph.get_operations()]
    return f"{either.experimental_get_tracing_count()} traces, of {ops}"


@tf.function
def step_by_step(x):
    y = tf.square(x)
    z = tf.multiply(y, 2.0)
    return tf.add(z, 1.0)


@tf.function
def at_once(x):
    return tf.add(tf.multiply(tf.square(x), 2.0), 1.0)


def ops_of(f):
    return [op.type for op in f.get_concrete_function(tf.ones([2])).graph.get_operations()]


@tf.function
def layers(batch):
    return tf.keras.layers.Dense(64)(batch)


@tf.custom_gradient
def layer(x):
    y = tf.keras.layers.Dense(64)(x)
    return y, lambda dy: tf.gradients(y, x, grad_ys=dy)[0]


def main():
    print(f"TensorFlow {tf.__version__}")
    told("a session runs an eager constant", lambda: tf.compat.v1.Session().run(tf.constant(1.0)))
    told("get_memory_info() takes no argument", lambda: tf.config.experimental.get_memory_info())
    told("get_memory_info counts the CPU's memory", lambda: tf.config.experimental.get_memory_info("CPU:0"))
    told("eager execution has to be switched on", lambda: f"executing_eagerly() is {tf.executing_eagerly()} from the start")
    told("a Python bool makes a graph with both branches, which the second call uses again", branches)
    told("names for values in between take memory", lambda: f"the same ops: {ops_of(step_by_step) == ops_of(at_once)}")
    told("layers may be made inside of a tf.function", lambda: layers(tf.ones([2, 8])).shape)
    told("tf.gradients of a layer serves a custom gradient in eager mode", lambda: layer(tf.ones([2, 8])).shape)
    told("a plain function is a layer of Sequential", lambda: tf.keras.Sequential([layer]))
    told("a Python loop of 100 products of 4 MB holds them all", lambda: grown(lambda: loop(None)))
    told("what a tape held goes back to the system with the tape", lambda: grown(taped))
    trace = tf.function(lambda: tf.random.normal((1000, 1000, 1000)))
    told("tracing takes the memory of the tensors", lambda: grown(trace.get_concrete_function))
    kept = []
    told("a constant of 1000 x 1000 x 1000 takes 1 GB", lambda: grown(lambda: kept.append(tf.constant(1.0, shape=[1000] * 3))))
    told("a variable of 2,000 MB takes less than that", lambda: grown(lambda: kept.append(tf.Variable(tf.zeros([500, 1000, 1000])))))


if __name__ == "__main__":
    main()
