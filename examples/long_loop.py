"""The gradient of a long recurrent loop in a budget: as many carried states are kept as fit, the rest is run again.

``python examples/long_loop.py`` prints

       16 rounds: planned 292 KiB, used at most that: True
      256 rounds: planned 932 KiB, used at most that: True
     1024 rounds: planned 932 KiB, used at most that: True
    the same as op by op: True
"""

import numpy as np
import tonnage as tf

h = tf.constant(np.full(4096, 0.1, "float32"))


def gradient_of(rounds):
    @tf.function(budget="1MiB")
    def gradient(h):
        with tf.GradientTape() as tape:
            tape.watch(h)
            last = tf.while_loop(lambda i, h: i < rounds, lambda i, h: (i + 1, tf.tanh(h * 0.999)), [tf.constant(0), h])[1]
            loss = tf.reduce_sum(last)
        return tape.gradient(loss, h)

    return gradient


for rounds in 16, 256, 1024:
    gradient = gradient_of(rounds)
    planned = gradient.plan(h).peak
    gradient(h)
    print(f"{rounds:>5} rounds: planned {planned // 1024} KiB, used at most that: {gradient.last_run()['used'] <= planned}")

with tf.GradientTape() as tape:
    tape.watch(h)
    last = h
    for _ in range(64):
        last = tf.tanh(last * 0.999)
    loss = tf.reduce_sum(last)
print("the same as op by op:", bool(tf.reduce_all(tape.gradient(loss, h) == gradient_of(64)(h))))
