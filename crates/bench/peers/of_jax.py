"""The workloads in JAX, as its users would write them: jit, with what is updated donated."""

from common import main, sine

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

KEY = jax.random.key(0)


def normal(*shape, scale=1.0):
    return scale * jax.random.normal(KEY, shape)


def below(bound, *shape):
    return jax.random.randint(KEY, shape, 0, bound)


def waited(f):
    return lambda: jax.block_until_ready(f())


def splat(s):
    n = s["n"]
    f = jax.jit(lambda: (jnp.full((n, n, n), 1.0) * 2 + 1).sum())
    return waited(f)


def random(s):
    n = s["n"]
    f = jax.jit(lambda key: jax.random.normal(key, (n, n, n)).mean())
    return waited(lambda: f(KEY))


def chain(f):
    def make(s):
        x, g = normal(s["rows"], s["columns"]), jax.jit(f)
        return waited(lambda: g(x))

    return make


def loop(s, h, w, body):
    return lax.scan(lambda h, _: (body(h, w), None), h, None, length=s["iterations"])[0]


def tanh(h, w):
    return jnp.tanh(h @ w)


def loop_fwd(s):
    h, w = normal(s["n"], s["n"]), jnp.asarray(sine(s["n"]))
    f = jax.jit(lambda h, w: loop(s, h, w, tanh))
    return waited(lambda: f(h, w))


def loop_grad(mode):
    def make(s):
        h, w = normal(s["n"], s["n"]), jnp.asarray(sine(s["n"]))
        iterations = s["iterations"]
        inner = max(int(iterations**0.5), 1)

        def last(w):
            if mode == "scan":
                return loop(s, h, w, tanh).sum()
            # Some iterations at a time, with a checkpoint before each; then the rest.
            some = jax.checkpoint(lambda h, w: lax.scan(lambda h, _: (tanh(h, w), None), h, None, length=inner)[0])
            out = lax.scan(lambda h, _: (some(h, w), None), h, None, length=iterations // inner)[0]
            return lax.scan(lambda h, _: (tanh(h, w), None), out, None, length=iterations % inner)[0].sum()

        f = jax.jit(jax.grad(last))
        return waited(lambda: f(w))

    return make


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()


def sgd(rate):
    return lambda p: (), lambda p, g, state: (jax.tree.map(lambda p, g: p - rate * g, p, g), state)


def momentum(rate, keep):
    def update(p, g, m):
        m = jax.tree.map(lambda m, g: keep * m + g, m, g)
        return jax.tree.map(lambda p, m: p - rate * m, p, m), m

    return lambda p: jax.tree.map(jnp.zeros_like, p), update


def adam(rate, decay=0.0):
    def start(p):
        return jnp.zeros(()), jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p)

    def update(p, g, state):
        t, m, v = state
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        a, b = 1 - 0.9**t, 1 - 0.999**t

        def new(p, m, v):
            return p - rate * (m / a / (jnp.sqrt(v / b) + 1e-8) + decay * p)

        return jax.tree.map(new, p, m, v), (t, m, v)

    return start, update


def trained(build):
    """`build(sizes)`: parameters, the loss of them and a batch, the batch, an optimizer."""

    def make(s):
        params, loss, data, (start, update) = build(s)
        held = [params, start(params)]

        def step(params, state, data):
            value, grads = jax.value_and_grad(loss)(params, *data)
            return *update(params, grads, state), value

        step = jax.jit(step, donate_argnums=(0, 1))

        def once():
            held[0], held[1], value = step(held[0], held[1], data)
            return value

        return waited(once)

    return make


def dense(start, to):
    return {"w": normal(start, to, scale=start**-0.5), "b": jnp.zeros(to)}


def apply(p, x):
    return x @ p["w"] + p["b"]


def mlp(s):
    width = s["width"]
    params = [dense(s["inputs"], width), dense(width, width), dense(width, s["classes"])]

    def loss(p, x, y):
        x = jax.nn.relu(apply(p[0], x))
        x = jax.nn.relu(apply(p[1], x))
        return cross_entropy(apply(p[2], x), y)

    return params, loss, (normal(s["batch"], s["inputs"]), below(s["classes"], s["batch"])), adam(1e-3)


def conv(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def normed(p, x, stride=1):
    x = conv(x, p["w"], stride)
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["bias"]


def kernel(start, to):
    return {"w": normal(3, 3, start, to, scale=0.1), "scale": jnp.ones(to), "bias": jnp.zeros(to)}


def cnn(s):
    params, start = {"first": kernel(3, 16), "blocks": [], "head": dense(64, 10)}, 16
    for stage, to in enumerate((16, 32, 64)):
        for block in range(3):
            made = {"first": kernel(start, to), "second": kernel(to, to)}
            if stage > 0 and block == 0:
                made["skip"] = normal(1, 1, start, to, scale=0.1)
            params["blocks"].append(made)
            start = to

    def loss(p, x, y):
        x = jax.nn.relu(normed(p["first"], x))
        for block in p["blocks"]:
            stride = 2 if "skip" in block else 1
            inner = normed(block["second"], jax.nn.relu(normed(block["first"], x, stride)))
            x = jax.nn.relu(inner + (conv(x, block["skip"], 2) if "skip" in block else x))
        return cross_entropy(apply(p["head"], x.mean((1, 2))), y)

    data = normal(s["batch"], s["side"], s["side"], 3), below(10, s["batch"])
    return params, loss, data, momentum(0.1, 0.9)


def layer_norm(p, x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["bias"]


def gpt(s):
    width, heads = s["width"], max(s["width"] // 64, 1)

    def norm():
        return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}

    def block():
        return {
            "before": norm(),
            "qkv": dense(width, 3 * width),
            "out": dense(width, width),
            "between": norm(),
            "wide": dense(width, 4 * width),
            "narrow": dense(4 * width, width),
        }

    params = {
        "tokens": normal(s["tokens"], width, scale=0.02),
        "places": normal(s["length"], width, scale=0.02),
        "blocks": [block() for _ in range(s["layers"])],
        "norm": norm(),
        "head": normal(width, s["tokens"], scale=0.02),
    }

    def loss(p, x, y):
        x = p["tokens"][x] + p["places"]
        for block in p["blocks"]:
            parts = apply(block["qkv"], layer_norm(block["before"], x))
            q, k, v = (a.reshape(*x.shape[:2], heads, -1) for a in jnp.split(parts, 3, -1))
            mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
            x = x + apply(block["out"], mixed.reshape(x.shape))
            x = x + apply(block["narrow"], jax.nn.gelu(apply(block["wide"], layer_norm(block["between"], x))))
        return cross_entropy(layer_norm(p["norm"], x) @ p["head"], y)

    shape = s["batch"], s["length"]
    return params, loss, (below(s["tokens"], *shape), below(s["tokens"], *shape)), adam(3e-4, 0.01)


def embed(adagrad):
    """Gradients by the rows that were taken, scattered into the table: what `grad` by the table would make dense."""

    def make(s):
        head = dense(s["width"], 1)
        table = normal(s["rows"], s["width"], scale=0.02)
        seen = jnp.zeros_like(table) if adagrad else jnp.zeros(())
        ids, wanted = below(s["rows"], s["batch"], s["ids"]), normal(s["batch"], 1)

        def loss(rows, head, wanted):
            return jnp.square(apply(head, rows.mean(1)) - wanted).mean()

        def step(table, seen, head, ids, wanted):
            rows, of_head = jax.grad(loss, (0, 1))(table[ids], head, wanted)
            if adagrad:
                seen = seen.at[ids].add(rows * rows)
                rows = rows * lax.rsqrt(seen[ids] + 1e-10)
            head = jax.tree.map(lambda p, g: p - 0.1 * g, head, of_head)
            return table.at[ids].add(-0.1 * rows), seen, head

        step = jax.jit(step, donate_argnums=(0, 1, 2))
        held = [table, seen, head]

        def once():
            held[:] = step(*held, ids, wanted)
            return held

        return waited(once)

    return make


def gru(mode):
    def build(s):
        inputs, hidden = s["inputs"], s["hidden"]
        params = {"x": dense(inputs, 3 * hidden), "h": dense(hidden, 3 * hidden), "head": dense(hidden, 10)}

        def loss(p, x, y):
            def step(h, x):
                of_x, of_h = jnp.split(apply(p["x"], x), 3, -1), jnp.split(apply(p["h"], h), 3, -1)
                reset, update = jax.nn.sigmoid(of_x[0] + of_h[0]), jax.nn.sigmoid(of_x[1] + of_h[1])
                new = jnp.tanh(of_x[2] + reset * of_h[2])
                return new + update * (h - new), None

            body = jax.checkpoint(step) if mode == "checkpoint" else step
            h, _ = lax.scan(body, jnp.zeros((x.shape[0], hidden)), x.swapaxes(0, 1))
            return cross_entropy(apply(p["head"], h), y)

        data = normal(s["batch"], s["steps"], inputs), below(10, s["batch"])
        return params, loss, data, sgd(0.01)

    return trained(build)


def small(f):
    def make(s):
        a, b = jnp.asarray(np.ones(s["n"], "float32")), jnp.asarray(np.ones(s["n"], "float32"))
        return waited(lambda: f(a, b))

    return make


WORKLOADS = {
    ("splat", "jit"): splat,
    ("random", "jit"): random,
    ("chain_poly", "jit"): chain(lambda x: x * x * 2 + 1),
    ("chain_act", "jit"): chain(lambda x: jax.nn.gelu(x, approximate=False) * jax.nn.sigmoid(x) + x),
    ("loop_fwd", "jit"): loop_fwd,
    ("mlp", "jit"): trained(mlp),
    ("cnn", "jit"): trained(cnn),
    ("gpt", "jit"): trained(gpt),
    ("embed_sgd", "jit"): embed(False),
    ("embed_adagrad", "jit"): embed(True),
    ("gru", "jit"): gru("jit"),
    ("gru", "checkpoint"): gru("checkpoint"),
    ("small_add", "eager"): small(lambda a, b: a + b),
    ("small_call", "jit"): small(jax.jit(lambda a, b: a + b)),
}
for iterations in (250, 1000, 4000):
    for mode in ("scan", "checkpoint"):
        WORKLOADS[f"loop_grad_{iterations}", mode] = loop_grad(mode)

main(WORKLOADS)
