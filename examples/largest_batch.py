"""Planning the largest batch: how many rows fit so many bytes? Asked of the planner, before anything runs.

``python examples/largest_batch.py`` prints

    256KiB: ... rows
    1MiB: ... rows
    4MiB: ... rows
    in use meanwhile: 0 bytes
"""

import tonnage as tf


def pairs(x):
    """Distances of all rows to all others, of which only the sum of the closest is wanted."""
    squares = tf.reduce_sum(tf.square(x), axis=1, keepdims=True)
    distances = squares + tf.transpose(squares) - 2.0 * (x @ tf.transpose(x))
    return tf.reduce_sum(tf.exp(-distances))


spec = tf.TensorSpec([None, 64], name="rows")
for budget in "256KiB", "1MiB", "4MiB":
    print(f"{budget}: {tf.memory.max_batch(pairs, budget, spec)} rows")
print("in use meanwhile:", tf.memory.info()["current"], "bytes")
