"""Makes cases.txt: where PyTorch's optimizers get in five steps, in float64.

A line a case: its name, then the 6 elements of the matrix after each step. The matrix starts at START; its gradient at a step
is w * w / 2 - [[0.5, -1, 2], [1, 0, -3]] * step.
"""

import torch

START = [[1.0, -2.0, 0.5], [3.0, -0.25, 0.75]]
GOAL = torch.tensor([[0.5, -1.0, 2.0], [1.0, 0.0, -3.0]], dtype=torch.float64)


def case(name, make):
    w = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    optimizer = make([w])
    out = []
    for step in range(1, 6):
        w.grad = (w * w / 2 - GOAL * step).detach()
        optimizer.step()
        out += [repr(x) for x in w.detach().flatten().tolist()]
    print(name, *out)


o = torch.optim
case("sgd", lambda p: o.SGD(p, lr=0.1))
case("momentum", lambda p: o.SGD(p, lr=0.1, momentum=0.9))
case("nesterov_l2", lambda p: o.SGD(p, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.05))
case("adam", lambda p: o.Adam(p, lr=0.05))
case("adamw", lambda p: o.AdamW(p, lr=0.05, betas=(0.8, 0.99), weight_decay=0.1))
case("adagrad", lambda p: o.Adagrad(p, lr=0.3))
case("rmsprop", lambda p: o.RMSprop(p, lr=0.01, alpha=0.9, eps=1e-7))
case("rmsprop_centered", lambda p: o.RMSprop(p, lr=0.01, alpha=0.9, eps=1e-7, centered=True, momentum=0.5))
case("adafactor", lambda p: o.Adafactor(p, lr=0.3, d=1.0, weight_decay=0.0))
