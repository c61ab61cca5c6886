"""The workloads in PyTorch, as its users would write them: eager, and with torch.compile."""

import os
import tempfile

from common import THREADS, main, sine

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

torch.set_num_threads(THREADS)
torch.manual_seed(0)


def compiled(f, mode):
    return torch.compile(f) if mode == "compile" else f


def splat(mode):
    def make(s):
        n = s["n"]
        f = compiled(lambda: (torch.full((n, n, n), 1.0) * 2 + 1).sum(), mode)
        return lambda: f().item()

    return make


def random(s):
    n = s["n"]
    return lambda: torch.randn(n, n, n).mean().item()


def chain(f, mode):
    def make(s):
        x = torch.randn(s["rows"], s["columns"])
        g = compiled(f, mode)
        return lambda: g(x)

    return make


def poly(x):
    return x * x * 2 + 1


def act(x):
    return F.gelu(x) * torch.sigmoid(x) + x


def loop_fwd(s):
    h0, w = torch.randn(s["n"], s["n"]), torch.from_numpy(sine(s["n"]))

    def step():
        with torch.no_grad():
            h = h0
            for _ in range(s["iterations"]):
                h = torch.tanh(h @ w)
            return h

    return step


def loop_grad(mode):
    def make(s):
        h0, w = torch.randn(s["n"], s["n"]), torch.from_numpy(sine(s["n"])).requires_grad_()
        iterations = s["iterations"]
        stride = max(int(iterations**0.5), 1) if mode == "checkpoint" else iterations

        def some(h, count):
            for _ in range(count):
                h = torch.tanh(h @ w)
            return h

        def step():
            w.grad = None
            h = h0
            for at in range(0, iterations, stride):
                count = min(stride, iterations - at)
                h = checkpoint(some, h, count, use_reentrant=False) if mode == "checkpoint" else some(h, count)
            h.sum().backward()
            return w.grad

        return step

    return make


def trained(build, mode):
    """`build(sizes)`: a model, its optimizer, a batch and the loss."""

    def make(s):
        model, optimizer, (x, y), loss = build(s)

        def step():
            optimizer.zero_grad(set_to_none=True)
            value = loss(model(x), y)
            value.backward()
            optimizer.step()
            return value

        if mode == "compile":
            # The optimizer is compiled on its own, as its documentation says.
            forward = torch.compile(lambda x, y: loss(model(x), y))
            update = torch.compile(optimizer.step)

            def step():
                optimizer.zero_grad(set_to_none=True)
                value = forward(x, y)
                value.backward()
                update()
                return value

        return step

    return make


def mlp(s):
    width = s["width"]
    model = nn.Sequential(
        nn.Linear(s["inputs"], width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, s["classes"])
    )
    data = torch.randn(s["batch"], s["inputs"]), torch.randint(s["classes"], (s["batch"],))
    return model, torch.optim.Adam(model.parameters(), 1e-3, fused=True), data, F.cross_entropy


class Residual(nn.Module):
    def __init__(self, start, to, stride):
        super().__init__()
        self.first = nn.Conv2d(start, to, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(to, to, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(to), nn.BatchNorm2d(to)])
        self.skip = nn.Conv2d(start, to, 1, stride, bias=False) if stride == 2 else nn.Identity()

    def forward(self, x):
        inner = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(inner)) + self.skip(x))


def cnn(s):
    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    start = 16
    for stage, to in enumerate((16, 32, 64)):
        for block in range(3):
            layers.append(Residual(start, to, 2 if stage > 0 and block == 0 else 1))
            start = to
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    model = nn.Sequential(*layers).to(memory_format=torch.channels_last)
    x = torch.randn(s["batch"], 3, s["side"], s["side"]).to(memory_format=torch.channels_last)
    data = x, torch.randint(10, (s["batch"],))
    return model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, fused=True), data, F.cross_entropy


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = max(width // 64, 1)
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.wide(self.between(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.tokens = nn.Embedding(s["tokens"], s["width"])
        self.places = nn.Parameter(torch.randn(s["length"], s["width"]) * 0.02)
        self.blocks = nn.ModuleList([Block(s["width"]) for _ in range(s["layers"])])
        self.norm = nn.LayerNorm(s["width"])
        self.head = nn.Linear(s["width"], s["tokens"], bias=False)

    def forward(self, x):
        x = self.tokens(x) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt(s):
    model = Gpt(s)
    shape = (s["batch"], s["length"])
    data = torch.randint(s["tokens"], shape), torch.randint(s["tokens"], shape)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0.01, fused=True)
    return model, optimizer, data, lambda y, wanted: F.cross_entropy(y.flatten(0, 1), wanted.flatten())


class Pooled(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.table = nn.EmbeddingBag(s["rows"], s["width"], mode="mean", sparse=True)
        self.head = nn.Linear(s["width"], 1)

    def forward(self, x):
        return self.head(self.table(x))


def embed(optimizer):
    def build(s):
        model = Pooled(s)
        data = torch.randint(s["rows"], (s["batch"], s["ids"])), torch.randn(s["batch"], 1)
        return model, optimizer(model.parameters(), 0.1), data, F.mse_loss

    return build


class Gru(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.layer = nn.GRU(s["inputs"], s["hidden"], batch_first=True)
        self.head = nn.Linear(s["hidden"], 10)

    def forward(self, x):
        return self.head(self.layer(x)[1][0])


def gru(s):
    model = Gru(s)
    data = torch.randn(s["batch"], s["steps"], s["inputs"]), torch.randint(10, (s["batch"],))
    return model, torch.optim.SGD(model.parameters(), 0.01), data, F.cross_entropy


def stream(mode):
    """Layers whose weights lie in files that the system's cache holds: all of them mapped, or a layer at a time mapped or loaded."""

    def make(s):
        width = s["width"]
        folder = tempfile.TemporaryDirectory()
        paths = [os.path.join(folder.name, f"w{i}.npy") for i in range(s["layers"])]
        for path in paths:
            np.save(path, (torch.randn(width, width) * (1.4 / width**0.5)).numpy())
        x = torch.randn(s["batch"], width)

        def layer(path):
            # Pages of its own where it is written, which it is not: PyTorch warns of what cannot be.
            return torch.from_numpy(np.load(path, mmap_mode=None if mode == "loaded" else "c"))

        weights = [layer(path) for path in paths] if mode == "mapped" else None

        def step():
            with torch.no_grad():
                y = x
                for i, path in enumerate(paths):
                    y = torch.relu(y @ (weights[i] if weights else layer(path)))
                return y

        step.files = folder
        return step

    return make


def small(mode):
    def make(s):
        a, b = torch.randn(s["n"]), torch.randn(s["n"])
        f = compiled(lambda a, b: a + b, mode)
        return lambda: f(a, b)

    return make


WORKLOADS = {
    ("splat", "eager"): splat("eager"),
    ("splat", "compile"): splat("compile"),
    ("random", "eager"): random,
    ("loop_fwd", "eager"): loop_fwd,
    ("embed_sgd", "eager"): trained(embed(torch.optim.SGD), "eager"),
    ("embed_adagrad", "eager"): trained(embed(torch.optim.Adagrad), "eager"),
    ("small_add", "eager"): small("eager"),
    ("small_call", "compile"): small("compile"),
}
for mode in ("eager", "compile"):
    WORKLOADS["chain_poly", mode] = chain(poly, mode)
    WORKLOADS["chain_act", mode] = chain(act, mode)
    for name, build in (("mlp", mlp), ("cnn", cnn), ("gpt", gpt), ("gru", gru)):
        WORKLOADS[name, mode] = trained(build, mode)
for mode in ("mapped", "layer-mapped", "loaded"):
    WORKLOADS["stream", mode] = stream(mode)
for mode in ("mapped", "layer-mapped"):
    WORKLOADS["stream_mapped", mode] = stream(mode)
for mode in ("eager", "checkpoint"):
    for iterations in (250, 1000, 4000):
        WORKLOADS[f"loop_grad_{iterations}", mode] = loop_grad(mode)

main(WORKLOADS)
