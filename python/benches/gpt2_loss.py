"""The loss of GPT-2 over steps of training, on Tonnage beside PyTorch: the same first weights, the same batches.

    python gpt2_loss.py tonnage|torch FILE [--device cuda:0] [--steps 200] [--batch 8] [--length 1024] [--width 768] [--layers 12] [--tokens 50304]
    python gpt2_loss.py compare FILE FILE

Each way writes its losses, a line a step, to its file. Weights are f32; products and attention are computed in bf16. Tokens follow each other
with some order, so there is something to learn: most are a fixed function of the one before, others are drawn.
"""

import argparse

import numpy as np

RATE, DECAY, BETAS, EPSILON = 6e-4, 0.01, (0.9, 0.999), 1e-8
HEAD = 64


def weights(given):
    """First values by name, in the order in which both ways walk them."""
    rng = np.random.default_rng(1)

    def normal(*shape):
        return rng.normal(0, 0.02, shape).astype("f4")

    width = given.width
    made = {"tokens": normal(given.tokens, width), "places": normal(given.length, width)}
    for i in range(given.layers):
        for name, rows, columns in [("query", 1, 1), ("key", 1, 1), ("value", 1, 1), ("out", 1, 1), ("wide", 1, 4), ("narrow", 4, 1)]:
            made[f"{i}.{name}"] = normal(rows * width, columns * width)
            made[f"{i}.{name}.bias"] = np.zeros(columns * width, "f4")
    for name in [f"{i}.{at}" for i in range(given.layers) for at in ("before", "between")] + ["norm"]:
        made[f"{name}.scale"], made[f"{name}.shift"] = np.ones(width, "f4"), np.zeros(width, "f4")
    return made


def batches(given):
    """What goes in and what is to come out, batch by batch."""
    rng = np.random.default_rng(2)
    follows = rng.integers(0, given.tokens, given.tokens)
    for _ in range(given.steps):
        tokens = rng.integers(0, given.tokens, (given.batch, given.length + 1))
        drawn = rng.random(tokens.shape) < 0.3
        for at in range(1, given.length + 1):
            tokens[:, at] = np.where(drawn[:, at], tokens[:, at] % 64, follows[tokens[:, at - 1]] % 4096)
        yield tokens[:, :-1].astype("i4"), tokens[:, 1:].astype("i4")


def on_tonnage(given):
    import tonnage as tf
    from tonnage import _tonnage as ops

    with tf.device(given.device):
        held = {name: tf.Variable(value, name=name) for name, value in weights(given).items()}
        optimizer = tf.keras.optimizers.AdamW(RATE, DECAY, *BETAS, EPSILON)

        def norm(x, name):
            return ops.layer_norm(x, tf.cast(held[f"{name}.scale"], x.dtype), tf.cast(held[f"{name}.shift"], x.dtype), 1e-5)

        def dense(x, name):
            return x @ tf.cast(held[name], x.dtype) + tf.cast(held[f"{name}.bias"], x.dtype)

        def heads(x):
            return tf.transpose(tf.reshape(x, [x.shape[0], x.shape[1], -1, min(HEAD, given.width)]), [0, 2, 1, 3])

        @tf.function
        def step(x, y):
            with tf.GradientTape() as tape:
                h = tf.cast(tf.gather(held["tokens"], x) + held["places"], tf.bfloat16)
                for i in range(given.layers):
                    inner = norm(h, f"{i}.before")
                    query, key, value = (heads(dense(inner, f"{i}.{name}")) for name in ("query", "key", "value"))
                    seen = tf.nn.scaled_dot_product_attention(query, key, value, causal=True)
                    h += dense(tf.reshape(tf.transpose(seen, [0, 2, 1, 3]), h.shape), f"{i}.out")
                    h += dense(tf.nn.gelu(dense(norm(h, f"{i}.between"), f"{i}.wide"), approximate=True), f"{i}.narrow")
                logits = tf.matmul(norm(h, "norm"), tf.cast(held["tokens"], tf.bfloat16), transpose_b=True)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, tf.cast(logits, tf.float32)))
            variables = list(held.values())
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        for x, y in batches(given):
            yield float(step(tf.constant(x), tf.constant(y)))


def on_torch(given):
    import torch
    from torch.nn import functional as F

    device = given.device.split(":")[0]
    held = {name: torch.nn.Parameter(torch.tensor(value, device=device)) for name, value in weights(given).items()}
    optimizer = torch.optim.AdamW(held.values(), RATE, BETAS, EPSILON, DECAY)

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], held[f"{name}.scale"], held[f"{name}.shift"], 1e-5)

    def dense(x, name):
        return x @ held[name] + held[f"{name}.bias"].to(x.dtype)

    def heads(x):
        return x.view(*x.shape[:2], -1, min(HEAD, given.width)).transpose(1, 2)

    def forward(x, y):
        h = held["tokens"][x] + held["places"]
        for i in range(given.layers):
            inner = norm(h, f"{i}.before")
            query, key, value = (heads(dense(inner, f"{i}.{name}")) for name in ("query", "key", "value"))
            seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
            h = h + dense(seen.transpose(1, 2).reshape(h.shape), f"{i}.out")
            h = h + dense(F.gelu(dense(norm(h, f"{i}.between"), f"{i}.wide"), approximate="tanh"), f"{i}.narrow")
        return F.cross_entropy((norm(h, "norm") @ held["tokens"].T).float().view(-1, given.tokens), y.reshape(-1))

    for x, y in batches(given):
        x, y = (torch.tensor(part, device=device).long() for part in (x, y))
        with torch.autocast(device, torch.bfloat16):
            loss = forward(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()


def compare(files):
    """How far the losses are apart, of ten steps at a time."""
    own, peer = (np.loadtxt(file) for file in files)
    for at in range(0, len(own), max(1, len(own) // 10)):
        part = slice(at, at + max(1, len(own) // 10))
        print(f"steps {at + 1:>4} on  {own[part].mean():8.4f}  {peer[part].mean():8.4f}  {own[part].mean() / peer[part].mean() - 1:+.4%}")
    print(f"the most that one step is apart: {np.abs(own / peer - 1).max():.4%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=["tonnage", "torch", "compare"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--device", default="cpu:0")
    for name, value in [("steps", 200), ("batch", 8), ("length", 1024), ("width", 768), ("layers", 12), ("tokens", 50304)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    if given.way == "compare":
        return compare(given.files)
    with open(given.files[0], "w") as file:
        for loss in on_tonnage(given) if given.way == "tonnage" else on_torch(given):
            file.write(f"{loss!r}\n")


if __name__ == "__main__":
    main()
