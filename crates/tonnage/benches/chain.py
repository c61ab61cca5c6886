"""The peers of `chain planned` in benches/figures.rs: x*x*2+1 at 4096 x 4096, compiled, on two threads.

Each peer that is installed is run: PyTorch (torch.compile), JAX (jit), TensorFlow (XLA).
"""

import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

SIZE = 4096


def best(f, runs=30):
    for _ in range(3):
        f()
    least = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        f()
        least = min(least, time.perf_counter() - start)
    return least * 1e3


def of_torch():
    import torch

    torch.set_num_threads(2)
    x = torch.ones(SIZE, SIZE)
    f = torch.compile(lambda x: x * x * 2 + 1)
    return lambda: f(x)


def of_jax():
    import jax
    import jax.numpy as jnp

    x = jnp.ones((SIZE, SIZE), jnp.float32)
    f = jax.jit(lambda x: x * x * 2 + 1)
    return lambda: f(x).block_until_ready()


def of_tensorflow():
    import tensorflow as tf

    x = tf.ones((SIZE, SIZE))
    f = tf.function(lambda x: x * x * 2 + 1, jit_compile=True)
    return lambda: f(x)


for name, make in [("torch", of_torch), ("jax", of_jax), ("tensorflow", of_tensorflow)]:
    try:
        run = make()
    except ImportError:
        continue
    print(f"{name:<10} {best(run):8.2f} ms")
