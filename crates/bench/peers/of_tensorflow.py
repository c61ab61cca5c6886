"""The workloads in TensorFlow, as its users would write them: tf.function, and the same with XLA."""

from common import THREADS, main, sine

import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(THREADS)
tf.random.set_seed(0)
DRAWN = np.random.default_rng(0)


def normal(*shape):
    """Random numbers in memory, whoever reads them: Tonnage's own would be a recipe, computed as it is read."""
    return tf.constant(DRAWN.standard_normal(shape, dtype="float32"))


def below(bound, *shape):
    """Random whole numbers below a bound, in memory too."""
    return tf.constant(DRAWN.integers(bound, size=shape, dtype="int32"))


def compiled(f, mode):
    return f if mode == "eager" else tf.function(f, jit_compile=mode == "xla")


def splat(mode):
    def make(s):
        n = s["n"]
        return compiled(lambda: tf.reduce_sum(tf.fill((n, n, n), 1.0) * 2 + 1), mode)

    return make


def random(s):
    n = s["n"]
    return compiled(lambda: tf.reduce_mean(tf.random.normal((n, n, n))), "function")


def chain(f, mode):
    def make(s):
        x, g = normal(s["rows"], s["columns"]), compiled(f, mode)
        return lambda: g(x)

    return make


def loop(s, h, w):
    return tf.while_loop(
        lambda i, h: i < s["iterations"], lambda i, h: (i + 1, tf.tanh(h @ w)), (0, h), maximum_iterations=s["iterations"]
    )[1]


def loop_fwd(s):
    h, w = normal(s["n"], s["n"]), tf.constant(sine(s["n"]))
    f = tf.function(lambda h, w: loop(s, h, w))
    return lambda: f(h, w)


def loop_grad(s):
    h, w = normal(s["n"], s["n"]), tf.constant(sine(s["n"]))

    @tf.function
    def f(h, w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            last = tf.reduce_sum(loop(s, h, w))
        return tape.gradient(last, w)

    return lambda: f(h, w)


def cross_entropy(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def trained(build, mode):
    """`build(sizes)`: a model, its optimizer, a batch and the loss."""

    def make(s):
        model, optimizer, (x, y), loss = build(s)
        model(x)
        optimizer.build(model.trainable_variables)

        def step(x, y):
            with tf.GradientTape() as tape:
                value = loss(model(x, training=True), y)
            grads = tape.gradient(value, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            return value

        step = compiled(step, mode)
        return lambda: step(x, y)

    return make


def mlp(s):
    width, layers = s["width"], tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(width, "relu"), layers.Dense(width, "relu"), layers.Dense(s["classes"])])
    data = normal(s["batch"], s["inputs"]), below(s["classes"], s["batch"])
    return model, tf.keras.optimizers.Adam(1e-3), data, cross_entropy


def cnn(s):
    layers = tf.keras.layers

    def normed(x, to, stride):
        x = layers.Conv2D(to, 3, stride, "same", use_bias=False)(x)
        return layers.BatchNormalization()(x)

    inputs = tf.keras.Input((s["side"], s["side"], 3))
    x = layers.ReLU()(normed(inputs, 16, 1))
    for stage, to in enumerate((16, 32, 64)):
        for block in range(3):
            stride = 2 if stage > 0 and block == 0 else 1
            inner = normed(layers.ReLU()(normed(x, to, stride)), to, 1)
            skip = layers.Conv2D(to, 1, 2, "same", use_bias=False)(x) if stride == 2 else x
            x = layers.ReLU()(layers.Add()([inner, skip]))
    outputs = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    data = normal(s["batch"], s["side"], s["side"], 3), below(10, s["batch"])
    return tf.keras.Model(inputs, outputs), tf.keras.optimizers.SGD(0.1, 0.9), data, cross_entropy


class Gpt(tf.keras.Model):
    def __init__(self, s):
        super().__init__()
        layers, width = tf.keras.layers, s["width"]
        self.heads = max(width // 64, 1)
        self.tokens = layers.Embedding(s["tokens"], width)
        self.places = self.add_weight(shape=(s["length"], width), initializer="random_normal")
        self.parts = [
            [
                layers.LayerNormalization(epsilon=1e-5),
                layers.Dense(3 * width),
                layers.Dense(width),
                layers.LayerNormalization(epsilon=1e-5),
                layers.Dense(4 * width),
                layers.Dense(width),
            ]
            for _ in range(s["layers"])
        ]
        self.norm = layers.LayerNormalization(epsilon=1e-5)
        self.head = layers.Dense(s["tokens"], use_bias=False)
        self.mask = tf.linalg.band_part(tf.ones((s["length"], s["length"])), -1, 0) - 1

    def call(self, x, training=False):
        x = self.tokens(x) + self.places
        batch, length, width = x.shape
        for before, qkv, out, between, wide, narrow in self.parts:
            parts = tf.reshape(qkv(before(x)), (batch, length, 3, self.heads, width // self.heads))
            q, k, v = tf.unstack(tf.transpose(parts, (2, 0, 3, 1, 4)))
            scores = tf.matmul(q, k, transpose_b=True) * (width // self.heads) ** -0.5 + 1e9 * self.mask
            mixed = tf.transpose(tf.nn.softmax(scores) @ v, (0, 2, 1, 3))
            x = x + out(tf.reshape(mixed, (batch, length, width)))
            x = x + narrow(tf.nn.gelu(wide(between(x)), approximate=True))
        return self.head(self.norm(x))


def gpt(s):
    def ids():
        return below(s["tokens"], s["batch"], s["length"])

    return Gpt(s), tf.keras.optimizers.AdamW(3e-4, 0.01), (ids(), ids()), cross_entropy


def embed(optimizer):
    def build(s):
        layers = tf.keras.layers
        model = tf.keras.Sequential(
            [layers.Embedding(s["rows"], s["width"]), layers.GlobalAveragePooling1D(), layers.Dense(1)]
        )
        ids = below(s["rows"], s["batch"], s["ids"])
        loss = lambda y, wanted: tf.reduce_mean(tf.square(y - wanted))
        return model, optimizer(0.1), (ids, normal(s["batch"], 1)), loss

    return build


def gru(s):
    model = tf.keras.Sequential([tf.keras.layers.GRU(s["hidden"]), tf.keras.layers.Dense(10)])
    data = normal(s["batch"], s["steps"], s["inputs"]), below(10, s["batch"])
    return model, tf.keras.optimizers.SGD(0.01), data, cross_entropy


def small(mode):
    def make(s):
        a, b = tf.constant([1.0] * s["n"]), tf.constant([2.0] * s["n"])
        f = compiled(lambda a, b: a + b, mode)
        return lambda: f(a, b)

    return make


WORKLOADS = {
    ("random", "function"): random,
    ("loop_fwd", "function"): loop_fwd,
    ("embed_sgd", "function"): trained(embed(tf.keras.optimizers.SGD), "function"),
    ("embed_sgd", "xla"): trained(embed(tf.keras.optimizers.SGD), "xla"),
    ("embed_adagrad", "function"): trained(embed(tf.keras.optimizers.Adagrad), "function"),
    ("gru", "function"): trained(gru, "function"),
    ("small_add", "eager"): small("eager"),
    ("small_call", "function"): small("function"),
}
for mode in ("function", "xla"):
    WORKLOADS["splat", mode] = splat(mode)
    WORKLOADS["chain_poly", mode] = chain(lambda x: x * x * 2 + 1, mode)
    WORKLOADS["chain_act", mode] = chain(lambda x: tf.nn.gelu(x) * tf.sigmoid(x) + x, mode)
    for name, build in (("mlp", mlp), ("cnn", cnn), ("gpt", gpt)):
        WORKLOADS[name, mode] = trained(build, mode)
for iterations in (250, 1000, 4000):
    WORKLOADS[f"loop_grad_{iterations}", "function"] = loop_grad

main(WORKLOADS)
