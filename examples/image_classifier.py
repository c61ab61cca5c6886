"""An image classifier: 1,797 handwritten digits of 8 x 8 pixels, two dense layers, trained under a budget that is given in bytes.

``python examples/image_classifier.py`` prints

    a step of 64 pictures will take ... KiB of a budget of 256 KiB
    epoch 1: loss 1....
    epoch 5: loss 0....
    accuracy 9...% on what was held out; predicted and measured are the same: True
"""

import pathlib

import numpy as np
import tonnage as tf

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "crates" / "cli" / "data"


def idx(name, header):
    """The bytes of an idx file behind its header."""
    return np.frombuffer((FOLDER / name).read_bytes(), "uint8")[header:]


pictures = idx("digits-images.idx", 16).reshape(-1, 64).astype("float32") / 16
labels = idx("digits-labels.idx", 8).astype("int64")
held = np.arange(len(labels)) % 10 == 9

tf.random.set_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.Adam(0.01)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function(budget="256KiB")
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


plan = step.plan(tf.TensorSpec([64, 64]), tf.TensorSpec([64], tf.int64))
print(f"a step of 64 pictures will take {plan.peak / 1024:.1f} KiB of a budget of 256 KiB")
rng = np.random.default_rng(0)
for epoch in range(1, 6):
    order = rng.permutation(np.flatnonzero(~held))
    batches = [order[i:i + 64] for i in range(0, len(order) - 63, 64)]
    losses = [float(step(tf.constant(pictures[b]), tf.constant(labels[b]))) for b in batches]
    if epoch in (1, 5):
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}")
guessed = tf.argmax(model(tf.constant(pictures[held])), axis=1).numpy()
same = step.last_run()["used"] == step.last_run()["predicted"]
print(f"accuracy {np.mean(guessed == labels[held]):.1%} on what was held out; predicted and measured are the same: {same}")
