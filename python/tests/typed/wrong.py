"""Mistakes that type checkers find: each line that says it is wrong is refused, and no other."""

import numpy as np
import tonnage as tf
from tonnage import keras

x = tf.ones([2, 2])
v = tf.Variable([1.0])

tf.constant()  # wrong: arguments
tf.constant({"text": 1})  # wrong: type of an argument
tf.matmul(x)  # wrong: arguments
tf.reduce_sum(x, axes=1)  # wrong: arguments
tf.reduce_sum(x, axis="rows")  # wrong: type of an argument
tf.reshape(x, "4")  # wrong: type of an argument
tf.zeros(["a"])  # wrong: type of an element
tf.cast(x, 3)  # wrong: type of an argument
tf.nn.no_such_op(x)  # wrong: no such name
tf.no_such_name  # wrong: no such name
tf.keras.layers.Dens(3)  # wrong: no such name
tf.add(x, object())  # wrong: type of an argument
tf.abs(x, x)  # wrong: type of an argument
x + "text"  # wrong: operand
v * None  # wrong: operand
x.numpi()  # wrong: no such name
x.shape.as_lists()  # wrong: no such name
x.dtype = tf.int32  # wrong: it cannot be set
v.assign()  # wrong: arguments
v.assign("text")  # wrong: type of an argument
tf.random.normal()  # wrong: arguments
tf.random.normal([2], std=1.0)  # wrong: arguments
tf.linalg.qr(x)[2]  # wrong: there are two
tf.split(x, 2).numpy()  # wrong: no such name

with tf.GradientTape(persist=True) as tape:  # wrong: arguments
    y = x * x
tape.gradients(y, x)  # wrong: no such name
tape.gradient(y)  # wrong: arguments
with tf.GradientTape as never:  # wrong: no such name
    pass


@tf.function
def double(x: tf.Tensor, times: int = 2) -> tf.Tensor:
    return x * float(times)


@tf.function(budgets="1MiB")  # wrong: arguments
def planned(x: tf.Tensor) -> tf.Tensor:
    return x


class Scale:
    @tf.function
    def by(self, x: tf.Tensor) -> tf.Tensor:
        return x


double("text")  # wrong: type of an argument
double(x, time=3)  # wrong: arguments
double()  # wrong: arguments
double.plam(x)  # wrong: no such name
double(x).numpi()  # wrong: no such name
tf.function(double, budget=[1])  # wrong: arguments
Scale().by(3)  # wrong: type of an argument
Scale().by(x, x)  # wrong: arguments
tf.memory.plan(3)  # wrong: type of an argument
tf.memory.plan(double, x).peek  # wrong: no such name
tf.map_fn(3, x)  # wrong: type of an argument
tf.while_loop(lambda i: i < 3, lambda i: i + 1)  # wrong: arguments

data = tf.data.Dataset.from_tensor_slices(np.ones(3))
data.batches(2)  # wrong: no such name
data.batch()  # wrong: arguments
data.batch("2")  # wrong: type of an argument
data.map(3)  # wrong: type of an argument

model = keras.Sequential([keras.layers.Dense(3)])
keras.layers.Dense()  # wrong: arguments
keras.layers.Dense("3")  # wrong: type of an argument
keras.layers.Conv2D(3)  # wrong: arguments
keras.layers.Dropout("half")  # wrong: type of an argument
keras.optimizers.Adam("fast")  # wrong: type of an argument
keras.losses.MeanSquaredError(from_logits=True)  # wrong: arguments
model.fit(x, x, epoch=3)  # wrong: arguments
model.fit(x, x, epochs="3")  # wrong: type of an argument
model.fit(x, x, callbacks=[print])  # wrong: type of an element
model.compile(optimiser="sgd")  # wrong: arguments
model.summery()  # wrong: no such name
model.plan(16).peek  # wrong: no such name
keras.Sequential(3)  # wrong: type of an argument
tf.errors.NoSuchError  # wrong: no such name
tf.train.Checkpoint(v=v).sav("folder")  # wrong: no such name
