"""The peer of benches/loops.rs: the same loops in PyTorch's eager mode, on two threads."""

import sys
import time

import torch

torch.set_num_threads(2)


def turn(n):
    """The sine transform, as in loops.rs."""
    i = torch.arange(1, n + 1, dtype=torch.float64)
    return ((2 / (n + 1)) ** 0.5 * torch.sin(torch.outer(i, i) * (torch.pi / (n + 1)))).float()


def best(runs, f):
    least = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        f()
        least = min(least, time.perf_counter() - start)
    return least * 1e3


def forward(rounds):
    h0, w = torch.randn(512, 512), turn(512)

    def run():
        with torch.no_grad():
            h = h0
            for _ in range(rounds):
                h = torch.tanh(h @ w)
        return h

    run()
    print(f"forward {rounds:>5}: {best(20, run):9.1f} ms")


def gradient(rounds):
    h0, w = torch.randn(256, 256), turn(256).requires_grad_()

    def run():
        h = h0
        for _ in range(rounds):
            h = torch.tanh(h @ w)
        return torch.autograd.grad(h.sum(), w)

    run()
    print(f"gradient {rounds:>4}: {best(3, run):9.1f} ms")


only = sys.argv[1:]
if not only or "forward" in only:
    forward(200)
    forward(400)
for rounds in [250, 1000, 4000]:
    if not only or str(rounds) in only:
        gradient(rounds)
