"""Figures of the boundary: import, a small op, a planned call; for Tonnage and whichever others are installed.

    python figures.py tonnage tensorflow torch jax
    python figures.py --large tonnage tensorflow

Each framework is measured in a process of its own. Times are the least of several rounds. ``--large`` are programs over tensors of
4 GB: how long each takes from the start of the interpreter to its end, and what it holds at most.
"""

import subprocess
import sys
import time

IMPORT = """
import resource, time
start = time.perf_counter()
import {name}
took = time.perf_counter() - start
print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def best(f, count=20_000, rounds=7):
    """Microseconds of one call."""
    least = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            f()
        least = min(least, (time.perf_counter() - start) / count)
    return least * 1e6


def tonnage():
    import tonnage as tf

    x, y = tf.constant([1.0, 2.0, 3.0]) * 2.0, tf.constant([4.0, 5.0, 6.0]) * 2.0
    f = tf.function(lambda a, b: a * b + a)
    f(x, y)
    return lambda: x + y, lambda: f(x, y)


def tensorflow():
    import tensorflow as tf

    x, y = tf.constant([1.0, 2.0, 3.0]), tf.constant([4.0, 5.0, 6.0])
    f = tf.function(lambda a, b: a * b + a)
    f(x, y)
    return lambda: x + y, lambda: f(x, y)


def torch():
    import torch

    x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])
    return lambda: x + y, None


def jax():
    import jax
    import jax.numpy as jnp

    x, y = jnp.array([1.0, 2.0, 3.0]), jnp.array([4.0, 5.0, 6.0])
    f = jax.jit(lambda a, b: a * b + a)
    f(x, y)
    return lambda: (x + y).block_until_ready(), lambda: f(x, y).block_until_ready()


LARGE = {
    "a constant, fetched": """
x = tf.constant(value=1.0, shape=[1000, 1000, 1000], dtype=tf.float32)
with tf.compat.v1.Session() as session:
    session.run(x) if "tonnage" in tf.__name__ else x.numpy()
""",
    "a variable of zeros, fetched": """
v = tf.Variable(tf.zeros([1000, 1000, 1000]))
v.numpy()
""",
    "random numbers of a function": """
f = tf.function(lambda: tf.random.normal([1000, 1000, 1000]))
f()
f()
""",
}

PEAK = """
status = open("/proc/self/status").read()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


def large(name):
    for title, program in LARGE.items():
        start = time.perf_counter()
        made = subprocess.run([sys.executable, "-c", f"import {name} as tf" + program + PEAK], capture_output=True, text=True)
        seconds = time.perf_counter() - start
        shown = f"{seconds:6.2f} s, {made.stdout.strip()} MiB at most" if made.returncode == 0 else made.stderr[-200:]
        print(f"{name:<12} {title:<32} {shown}", flush=True)


def measured(name):
    op, call = globals()[name]()
    print(f"{name:<12} small op {best(op):8.2f} us" + (f"   planned call {best(call):8.2f} us" if call else ""))


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        return measured(sys.argv[2])
    if sys.argv[1:2] == ["--large"]:
        for name in sys.argv[2:] or ["tonnage"]:
            large(name)
        return
    for name in sys.argv[1:] or ["tonnage"]:
        shown = [subprocess.run([sys.executable, "-c", IMPORT.format(name=name)], capture_output=True, text=True)
                 for _ in range(3)]
        if any(s.returncode for s in shown):
            print(f"{name:<12} is not installed")
            continue
        seconds, mib = min(tuple(float(w) for w in s.stdout.split()) for s in shown)
        print(f"{name:<12} import {seconds:.3f} s, {mib:.0f} MiB resident", flush=True)
        subprocess.run([sys.executable, __file__, "--one", name])


if __name__ == "__main__":
    main()
