"""PyTorch as a peer of the benchmarks: a workload a line in, seconds of one run a line out."""

import sys
import time

import torch

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(0)


def conv(which, batch, size, inputs, outputs, filter_size, stride, padding, groups):
    x = torch.randn(batch, inputs, size, size).to(memory_format=torch.channels_last)
    w = torch.randn(outputs, inputs // groups, filter_size, filter_size)
    w = w.to(memory_format=torch.channels_last)
    args = ([stride, stride], [padding, padding], [1, 1])
    y = torch.nn.functional.conv2d(x, w, None, *args, groups)
    g = torch.randn_like(y)
    if which == "forward":
        return lambda: torch.nn.functional.conv2d(x, w, None, *args, groups)
    mask = [which == "image", which == "filter", False]
    back = torch.ops.aten.convolution_backward
    return lambda: back(g, x, w, None, *args, False, [0, 0], groups, mask)


def workload(words):
    kind, which, *numbers = words
    return {"conv": conv}[kind](which, *map(int, numbers))


def main():
    known = {}
    with torch.no_grad():
        for line in sys.stdin:
            words = tuple(line.split())
            if words == ("end",):
                return
            if words not in known:
                known.clear()
                known[words] = workload(words)
                known[words]()
            start = time.perf_counter()
            known[words]()
            print(time.perf_counter() - start, flush=True)


main()
