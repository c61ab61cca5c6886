"""Moving a TensorFlow script over: one import changes, and then what was a guess about memory is a number.

``python examples/moving_over.py`` prints

    step 0: loss ...
    step 40: loss 4....
    a step takes ... KiB, known before the first one; used: the same
    under four fifths of that: ... KiB, and the same loss: True
"""

# import tensorflow as tf
import tonnage as tf

tf.random.set_seed(0)


class Model(tf.Module):
    """Eight layers with weights of their own."""

    def __init__(self):
        super().__init__()
        self.weights = [tf.Variable(tf.random.normal([32, 32], stddev=0.2), name=f"w{i}") for i in range(8)]
        self.last = tf.Variable(tf.zeros([32, 1]), name="last")

    def __call__(self, x):
        for w in self.weights:
            x = tf.nn.tanh(tf.matmul(x, w))
        return tf.matmul(x, self.last)


model = Model()
start = [tf.constant(v.numpy()) for v in model.variables]
x = tf.random.normal([256, 32])
y = tf.reduce_sum(x, axis=1, keepdims=True)


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
        variable.assign_sub(0.01 * gradient)
    return loss


# So far it is as it was for TensorFlow. What follows is new.
planned = tf.function(step)
peak = planned.plan(x, y).peak
for i in range(41):
    loss = planned(x, y)
    if i % 40 == 0:
        print(f"step {i}: loss {float(loss):.3f}")
same = planned.last_run()["used"] == peak
print(f"a step takes {peak // 1024} KiB, known before the first one; used: {'the same' if same else 'something else'}")

for variable, value in zip(model.variables, start):
    variable.assign(value)
tight = tf.function(step, budget=peak * 4 // 5, exact=True)
for i in range(41):
    again = tight(x, y)
equal = float(again) == float(loss)
print(f"under four fifths of that: {tight.last_run()['used'] // 1024} KiB, and the same loss: {equal}")
