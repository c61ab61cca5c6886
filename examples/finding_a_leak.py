"""Finding a leak: a step that keeps something is named with its line.

``python examples/finding_a_leak.py`` prints

    memory grew from ... to ... bytes in 5 iterations; ...finding_a_leak.py:...: ... bytes
    steady when it keeps numbers: True
"""

import numpy as np
import tonnage as tf

x = tf.constant(np.ones((1024, 64), "float32"))
history = []


def wrong():
    history.append(tf.reduce_mean(tf.square(tf.tanh(x)), axis=1))      # a tensor of 4 KiB in every step


def right():
    history.append(float(tf.reduce_mean(tf.square(tf.tanh(x)))))       # a number


try:
    tf.memory.steady(wrong)
except tf.memory.NotSteady as error:
    print(error)
tf.memory.steady(right)
print("steady when it keeps numbers:", True)
