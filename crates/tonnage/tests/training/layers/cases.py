"""Makes cases.txt: what PyTorch's layers give and how their gradients are, in float64.

Every number comes from a small formula (`fill`), which main.rs has too. A case is a line: its name, then the elements of the output, then
those of the gradient of sum(output * fill(output, 99)) with respect to the input.
"""

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def fill(shape, seed):
    n = 1
    for d in shape:
        n *= d
    i = torch.arange(n)
    return (((i * 37 + seed * 101 + 11) % 97).double() / 97 - 0.5).reshape(shape)


def case(name, x, f):
    x = x.clone().requires_grad_()
    y = f(x)
    (y * fill(y.shape, 99)).sum().backward()
    print(name, *[f"{v:.10g}" for v in y.flatten().tolist() + x.grad.flatten().tolist()])


x3 = fill((2, 5, 3), 1)
image = fill((2, 6, 5, 4), 2)
nchw = lambda t: t.permute(0, 3, 1, 2)
nhwc = lambda t: t.permute(0, 2, 3, 1)

case("dense", x3, lambda x: x @ fill((3, 4), 3) + fill((4,), 4))
case("conv", image, lambda x: nhwc(F.conv2d(nchw(x), fill((3, 2, 4, 6), 3).permute(3, 2, 0, 1), fill((6,), 4), stride=2)))
case("groups", image, lambda x: nhwc(F.conv2d(nchw(x), fill((3, 2, 2, 6), 3).permute(3, 2, 0, 1), fill((6,), 4), groups=2)))
case("transposed", image, lambda x: nhwc(F.conv_transpose2d(nchw(x), fill((2, 2, 3, 4), 3).permute(3, 2, 0, 1), fill((3,), 4), stride=2)))
case("batch_norm", image, lambda x: nhwc(F.batch_norm(nchw(x), None, None, fill((4,), 3), fill((4,), 4), training=True, eps=1e-3)))
case("layer_norm", x3, lambda x: F.layer_norm(x, (3,), fill((3,), 3), fill((3,), 4)))
case("group_norm", image, lambda x: nhwc(F.group_norm(nchw(x), 2, fill((4,), 3), fill((4,), 4))))


def recurrent(kind, gates, units=4, both=False):
    def f(x):
        layer = kind(3, units, batch_first=True, bidirectional=both)
        with torch.no_grad():
            for i, end in enumerate(["", "_reverse"][: 1 + both]):
                getattr(layer, "weight_ih_l0" + end).copy_(fill((3, gates * units), 3 + 10 * i).T)
                getattr(layer, "weight_hh_l0" + end).copy_(fill((units, gates * units), 4 + 10 * i).T)
                getattr(layer, "bias_ih_l0" + end).copy_(fill((gates * units,), 5 + 10 * i))
                hh = fill((gates * units,), 6 + 10 * i) if kind is torch.nn.GRU else torch.zeros(gates * units)
                getattr(layer, "bias_hh_l0" + end).copy_(hh)
        return layer(x)[0]

    return f


case("simple", x3, recurrent(torch.nn.RNN, 1))
case("gru", x3, recurrent(torch.nn.GRU, 3))
case("lstm", x3, recurrent(torch.nn.LSTM, 4))
case("both", x3, recurrent(torch.nn.GRU, 3, both=True))


def attention(x):
    layer = torch.nn.MultiheadAttention(6, 2, batch_first=True)
    with torch.no_grad():
        for i in range(3):
            layer.in_proj_weight[6 * i : 6 * i + 6].copy_(fill((6, 6), 3 + 2 * i).T)
            layer.in_proj_bias[6 * i : 6 * i + 6].copy_(fill((6,), 4 + 2 * i))
        layer.out_proj.weight.copy_(fill((6, 6), 9).T)
        layer.out_proj.bias.copy_(fill((6,), 10))
    mask = torch.triu(torch.full((5, 5), float("-inf")), 1)
    return layer(x, x, x, attn_mask=mask, need_weights=False)[0]


case("attention", fill((2, 5, 6), 1), attention)
