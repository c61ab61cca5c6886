"""A matrix that does not fit: rows are read from a file as they are needed, under a limit that holds for the whole program.

``python examples/matrix_larger_than_memory.py`` prints

    the file has 4.0 MiB, the limit is 1.0 MiB
    the largest norm of a row is ..., within the limit: True
    all at once: ResourceExhaustedError
"""

import os
import tempfile

import numpy as np
import tonnage as tf

path = os.path.join(tempfile.mkdtemp(), "matrix.npy")
np.save(path, np.random.default_rng(0).normal(size=(16_384, 64)).astype("float32"))
matrix = np.load(path, mmap_mode="r")


@tf.function
def largest_norm(rows):
    return tf.reduce_max(tf.sqrt(tf.reduce_sum(tf.square(rows), axis=1)))


with tf.memory.limit("1MiB"):
    print(f"the file has {matrix.nbytes / 2**20:.1f} MiB, the limit is 1.0 MiB")
    tf.config.experimental.reset_memory_stats()
    largest = max(float(largest_norm(tf.constant(matrix[i:i + 1024]))) for i in range(0, len(matrix), 1024))
    within = tf.memory.info()["peak"] <= 1 << 20
    print(f"the largest norm of a row is {largest:.2f}, within the limit: {within}")
    try:
        tf.constant(np.asarray(matrix))
    except tf.errors.ResourceExhaustedError as error:
        print("all at once:", type(error).__name__)
