"""The losses of `tonnage train gpt`, as PyTorch has them: the same model, first parameters, order of rows and optimizer.

    python curve.py PATH_OF_TONNAGE    # PyTorch, NumPy; writes torch.csv beside this file

`tonnage train gpt --steps 0 --checkpoint` saves the first parameters; the order of rows is that of Philox, which is written out here. `../gpt.rs` compares.
The second column is by Adam as PyTorch users have it, which moves every row of the table of characters at every step; the third by `SparseAdam` for that table, which
moves those that the batch reads, as Tonnage does.
"""

import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, LAYERS, LENGTH, BATCH, EPOCHS, STEPS, RATE, SEED, HEAD = 32, 2, 32, 8, 1, 200, 0.003, 1, 16
ARGS = f"train gpt --width {WIDTH} --layers {LAYERS} --length {LENGTH} --batch {BATCH} --epochs {EPOCHS} --seed {SEED}"


def philox(key, counters):
    """Philox4x32-10 (Salmon et al. 2011) of counters [n, 4]."""
    c = [counters[:, i].astype(np.uint64) for i in range(4)]
    k0, k1, low = int(key[0]), int(key[1]), np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1)


def permutation(seed, n):
    counters = np.zeros(((n + 1) // 2, 4), np.uint64)
    counters[:, 0] = np.arange(len(counters))
    words = philox((seed & 0xFFFFFFFF, seed >> 32), counters)
    bits = np.stack([words[:, 0] | words[:, 1] << np.uint64(32), words[:, 2] | words[:, 3] << np.uint64(32)], 1)
    return np.argsort(bits.reshape(-1)[:n], kind="stable")


def parameters(path):
    data = open(path, "rb").read()
    start = 8 + int.from_bytes(data[:8], "little")
    for name, info in json.loads(data[8:start]).items():
        if name.startswith("model."):
            a, b = (start + offset for offset in info["data_offsets"])
            values = np.frombuffer(data[a:b], np.float32).reshape(info["shape"])
            yield name[6:], values


with tempfile.TemporaryDirectory() as folder:
    more = ["--steps", "0", "--checkpoint", folder, "--report", os.path.join(folder, "report")]
    subprocess.run([sys.argv[1], *ARGS.split(), *more], check=True)
    first = dict(parameters(os.path.join(folder, "step-000000000.safetensors")))

text = open(os.path.join(HERE, "../../data/coriolanus.txt")).read()
characters = sorted(set(text))
numbers = torch.tensor([characters.index(c) for c in text])
rows = (len(numbers) - 1) // LENGTH
learn = rows - rows // 10
x = numbers[: learn * LENGTH].reshape(learn, LENGTH)
y = numbers[1 : learn * LENGTH + 1].reshape(learn, LENGTH)
heads = WIDTH // HEAD
F = torch.nn.functional


def norm(x, w, name):
    return F.layer_norm(x, [WIDTH], w[f"{name}.scale"], w[f"{name}.bias"], 1e-5)


def dense(x, w, name):
    return x @ w[f"{name}.kernel"] + w.get(f"{name}.bias", 0)


def model(x, w, sparse):
    x = F.embedding(x, w["tokens.table"], sparse=sparse) + w["places"]
    for i in range(LAYERS):
        b = f"blocks.{i}"
        h = norm(x, w, f"{b}.before")
        q, k, v = (dense(h, w, f"{b}.attention.{n}").reshape(BATCH, LENGTH, heads, HEAD).transpose(1, 2) for n in ("query", "key", "value"))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + dense(seen.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH), w, f"{b}.attention.output")
        x = x + dense(F.gelu(dense(norm(x, w, f"{b}.between"), w, f"{b}.wide")), w, f"{b}.narrow")
    return dense(norm(x, w, "norm"), w, "head")


def losses(sparse):
    w = {name: torch.tensor(values, requires_grad=True) for name, values in first.items()}
    table = [w["tokens.table"]] if sparse else []
    rest = [p for name, p in w.items() if not (sparse and name == "tokens.table")]
    how = {"lr": RATE, "betas": (0.9, 0.999), "eps": 1e-8}
    optimizers = [torch.optim.Adam(rest, **how)] + ([torch.optim.SparseAdam(table, **how)] if sparse else [])
    per_epoch, order = learn // BATCH, permutation(SEED, learn)
    for step in range(STEPS):
        batch = order[step * BATCH : (step + 1) * BATCH]
        logits = model(x[batch], w, sparse)
        loss = F.cross_entropy(logits.reshape(-1, len(characters)), y[batch].reshape(-1))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = RATE * (1 + math.cos(math.pi * step / (EPOCHS * per_epoch))) / 2
            optimizer.step()
        yield loss.item()


with open(os.path.join(HERE, "torch.csv"), "w") as out:
    out.write("step,adam,sparse_adam\n")
    for step, (one, other) in enumerate(zip(losses(False), losses(True)), 1):
        out.write(f"{step},{one:.6f},{other:.6f}\n")
