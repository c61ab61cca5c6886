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


def attention(which, batch, heads, of_keys, length, width, causal):
    q = torch.randn(batch, heads, length, width)
    k, v = (torch.randn(batch, of_keys, length, width) for _ in range(2))
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    if of_keys < heads:
        k, v = (x.repeat_interleave(heads // of_keys, 1) for x in (k, v))
    if which == "forward":
        return lambda: flash(q, k, v, 0.0, bool(causal))
    out, lse = flash(q, k, v, 0.0, bool(causal))
    g = torch.randn_like(out)
    back = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    return lambda: back(g, q, k, v, out, lse, 0.0, bool(causal))


def matmul(dtype, rows, depth, cols):
    dtype = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}[dtype]
    a, b = torch.randn(rows, depth).to(dtype), torch.randn(depth, cols).to(dtype)
    out = torch.empty(rows, cols, dtype=dtype)
    return lambda: torch.mm(a, b, out=out)


def workload(words):
    kind, which, *numbers = words
    kinds = {"conv": conv, "attention": attention, "matmul": matmul}
    return kinds[kind](which, *map(int, numbers))


def seconds(run, about):
    """Seconds of one run, by runs of about that many in all; of one thread, the time that it ran.

    The first is not counted: cores that have slept take a while.
    """
    run()
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    start, runs = clock(), 0
    while True:
        run()
        runs += 1
        if clock() - start >= about:
            return (clock() - start) / runs


def main():
    known = {}
    with torch.no_grad():
        for line in sys.stdin:
            words = tuple(line.split())
            if words == ("end",):
                return
            about, words = float(words[0]), words[1:]
            if words not in known:
                known.clear()
                known[words] = workload(words)
                known[words]()
            print(seconds(known[words], about), flush=True)


main()
