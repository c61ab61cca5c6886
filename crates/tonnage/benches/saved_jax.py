"""The peer of benches/saved.rs in JAX: bytes of the residuals that it saves for the same models' backward passes.

Counted as JAX lists them itself, every one that is not an argument of the function (parameters and inputs are).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.ad_checkpoint import saved_residuals


class Params:
    """Collects the shapes at first, and then hands out the arrays in the same order."""

    def __init__(self, arrays=None):
        self.shapes, self.arrays = [], arrays

    def get(self, *shape):
        self.shapes.append(shape)
        if self.arrays is None:
            return jnp.zeros(shape)
        return self.arrays[len(self.shapes) - 1]

    def dense(self, x, n, m):
        return x @ self.get(n, m) + self.get(m)

    def norm(self, x, n):
        scale, bias = self.get(n), self.get(n)
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(var + 1e-5) * scale + bias

    def conv_norm(self, x, n, m, stride):
        w = self.get(3, 3, n, m)
        y = conv(x, w, stride)
        scale, bias = self.get(m), self.get(m)
        axes = (0, 1, 2)
        mean, var = y.mean(axes, keepdims=True), y.var(axes, keepdims=True)
        return (y - mean) * jax.lax.rsqrt(var + 1e-5) * scale + bias


def conv(x, w, stride):
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=numbers)


def loss(logits, n):
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), (jnp.arange(n) % 10)[:, None], 1)
    return -picked.mean()


def mlp(p, x):
    h = jax.nn.relu(p.dense(x, 784, 512))
    h = jax.nn.relu(p.dense(h, 512, 512))
    return loss(p.dense(h, 512, 10), 128)


def resnet20(p, x):
    h = jax.nn.relu(p.conv_norm(x, 3, 16, 1))
    channels = 16
    for stage, width in enumerate([16, 32, 64]):
        for block in range(3):
            stride = 2 if stage > 0 and block == 0 else 1
            inner = jax.nn.relu(p.conv_norm(h, channels, width, stride))
            inner = p.conv_norm(inner, width, width, 1)
            skip = h if channels == width else conv(h, p.get(1, 1, channels, width), stride)
            h = jax.nn.relu(inner + skip)
            channels = width
    return loss(p.dense(h.mean((1, 2)), 64, 10), 32)


def block(p, x):
    def heads(t):
        return t.reshape(8, 128, 8, 32)

    n = p.norm(x, 256)
    q, k = heads(p.dense(n, 256, 256)), heads(p.dense(n, 256, 256))
    v = heads(p.dense(n, 256, 256))
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(8, 128, 256)
    x = x + p.dense(mixed, 256, 256)
    n = p.norm(x, 256)
    inner = jax.nn.gelu(p.dense(n, 256, 1024), approximate=True)
    return jnp.square(x + p.dense(inner, 1024, 256)).mean()


def gru(p, xs):
    wx, wh = p.get(64, 384), p.get(128, 384)
    h = jnp.zeros((32, 128))
    for x in xs:
        of_x, of_h = jnp.split(x @ wx, 3, -1), jnp.split(h @ wh, 3, -1)
        reset = jax.nn.sigmoid(of_x[0] + of_h[0])
        update = jax.nn.sigmoid(of_x[1] + of_h[1])
        new = jnp.tanh(of_x[2] + reset * of_h[2])
        h = new + update * (h - new)
    return loss(p.dense(h, 128, 10), 32)


def embedding(p, ids):
    rows = p.get(10_000, 64)[ids].reshape(128, 512)
    h = jax.nn.relu(p.dense(rows, 512, 256))
    return loss(p.dense(h, 256, 10), 128)


def figures(name, net, x):
    shapes = Params()
    jax.eval_shape(lambda: net(shapes, x))
    arrays = [jnp.zeros(shape) for shape in shapes.shapes]
    total = 0
    for aval, source in saved_residuals(lambda arrays, x: net(Params(arrays), x), arrays, x):
        if "argument" not in source:
            total += int(np.prod(aval.shape)) * aval.dtype.itemsize
    print(f"{name:<10} {total / 1024:10.1f} KiB")


figures("mlp", mlp, jnp.zeros((128, 784)))
figures("resnet20", resnet20, jnp.zeros((32, 32, 32, 3)))
figures("block", block, jnp.zeros((8, 128, 256)))
figures("gru", gru, jnp.zeros((16, 32, 64)))
figures("embedding", embedding, jnp.zeros((128, 8), jnp.int32))
