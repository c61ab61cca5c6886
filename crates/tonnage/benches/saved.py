"""The peer of benches/saved.rs: bytes that PyTorch saves for the same models' backward passes.

Counted by its own saved-tensor hooks: every storage once, without parameters and inputs.
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)


class Params:
    def __init__(self):
        self.all = []

    def get(self, *shape):
        made = (torch.randn(*shape) * 0.05).requires_grad_()
        self.all.append(made)
        return made

    def dense(self, x, n, m):
        return F.linear(x, self.get(m, n), self.get(m))

    def norm(self, x, n):
        return F.layer_norm(x, (n,), self.get(n), self.get(n))

    def conv_norm(self, x, n, m, stride):
        y = F.conv2d(x, self.get(m, n, 3, 3), stride=stride, padding=1)
        return F.batch_norm(y, None, None, self.get(m), self.get(m), training=True)


def loss(logits, n):
    return F.cross_entropy(logits, torch.arange(n) % 10)


def mlp(p, x):
    h = F.relu(p.dense(x, 784, 512))
    h = F.relu(p.dense(h, 512, 512))
    return loss(p.dense(h, 512, 10), 128)


def resnet20(p, x):
    h = F.relu(p.conv_norm(x, 3, 16, 1))
    channels = 16
    for stage, width in enumerate([16, 32, 64]):
        for block in range(3):
            stride = 2 if stage > 0 and block == 0 else 1
            inner = F.relu(p.conv_norm(h, channels, width, stride))
            inner = p.conv_norm(inner, width, width, 1)
            skip = h if channels == width else F.conv2d(h, p.get(width, channels, 1, 1), stride=stride)
            h = F.relu(inner + skip)
            channels = width
    return loss(p.dense(h.mean((2, 3)), 64, 10), 32)


def block(p, x):
    def heads(t):
        return t.reshape(8, 128, 8, 32).transpose(1, 2)

    n = p.norm(x, 256)
    q, k = heads(p.dense(n, 256, 256)), heads(p.dense(n, 256, 256))
    v = heads(p.dense(n, 256, 256))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    mixed = mixed.transpose(1, 2).reshape(8, 128, 256)
    x = x + p.dense(mixed, 256, 256)
    n = p.norm(x, 256)
    inner = F.gelu(p.dense(n, 256, 1024), approximate="tanh")
    return (x + p.dense(inner, 1024, 256)).square().mean()


def gru(p, xs):
    wx, wh = p.get(64, 384), p.get(128, 384)
    h = torch.zeros(32, 128)
    for x in xs.unbind(0):
        of_x, of_h = (x @ wx).chunk(3, -1), (h @ wh).chunk(3, -1)
        reset = torch.sigmoid(of_x[0] + of_h[0])
        update = torch.sigmoid(of_x[1] + of_h[1])
        new = torch.tanh(of_x[2] + reset * of_h[2])
        h = new + update * (h - new)
    return loss(p.dense(h, 128, 10), 32)


def embedding(p, ids):
    rows = F.embedding(ids, p.get(10_000, 64)).reshape(128, 512)
    h = F.relu(p.dense(rows, 512, 256))
    return loss(p.dense(h, 256, 10), 128)


def figures(name, net, x):
    saved = {}

    def pack(t):
        storage = t.untyped_storage()
        saved[storage.data_ptr()] = (storage.nbytes(), t)
        return t

    p = Params()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        net(p, x)
    ours = {t.untyped_storage().data_ptr() for t in [x, *p.all]}
    total = sum(n for at, (n, _) in saved.items() if at not in ours)
    print(f"{name:<10} {total / 1024:10.1f} KiB")


figures("mlp", mlp, torch.randn(128, 784))
figures("resnet20", resnet20, torch.randn(32, 3, 32, 32))
figures("block", block, torch.randn(8, 128, 256))
figures("gru", gru, torch.randn(16, 32, 64))
figures("embedding", embedding, torch.arange(128 * 8).mul(7919).remainder(10_000).reshape(128, 8))
