"""How a peer's workload is measured: as `crates/bench/src/measure.rs` measures ours.

A peer's script calls `main` with its workloads: a name, a mode, the dimensions, and a function of those that returns a step. It is run as

    python peers/pytorch.py list
    python peers/pytorch.py run mlp compile [batch=2048 ...] [seconds=2]

and prints lines of a name and a number.
"""

import math
import os
import statistics
import sys
import time

THREADS = 2
# Before the frameworks are loaded, which read it then.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
    os.environ.setdefault(name, str(THREADS))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("XLA_FLAGS", f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={THREADS}")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# The dimensions, as in crates/bench/src/workloads.
SIZES = {
    "splat": {"n": 1000},
    "random": {"n": 1000},
    "chain_poly": {"rows": 4096, "columns": 4096},
    "chain_act": {"rows": 4096, "columns": 4096},
    "loop_fwd": {"iterations": 200, "n": 512},
    "loop_grad_250": {"iterations": 250, "n": 256},
    "loop_grad_1000": {"iterations": 1000, "n": 256},
    "loop_grad_4000": {"iterations": 4000, "n": 256},
    "mlp": {"batch": 1024, "inputs": 784, "width": 1024, "classes": 10},
    "cnn": {"batch": 64, "side": 32},
    "gpt": {"batch": 8, "length": 256, "width": 384, "layers": 6, "tokens": 8192},
    "embed_sgd": {"rows": 2_000_000, "width": 64, "batch": 4096, "ids": 16},
    "embed_adagrad": {"rows": 2_000_000, "width": 64, "batch": 4096, "ids": 16},
    "gru": {"steps": 512, "batch": 32, "inputs": 64, "hidden": 256},
    "stream": {"layers": 16, "width": 4096, "batch": 64},
    "stream_mapped": {"layers": 16, "width": 4096, "batch": 64},
    "small_add": {"n": 16},
    "small_call": {"n": 16},
}
# Calls between two looks at the clock, where one is not enough.
CALLS = {"small_add": 1000, "small_call": 1000}
# Steps after the first, where they are not long; the most, for their times take memory as well; and after how many times the
# seconds they end, however few there were.
LEAST = 5
MOST = 20_000
LONG = 4


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def restart_peak():
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass
    return resident()


def highest():
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resident()


def sine(n):
    """The sine transform, which turns and does not stretch, as rows of numbers."""
    import numpy as np

    i = np.arange(1, n + 1)
    return (math.sqrt(2 / (n + 1)) * np.sin(np.outer(i, i) * math.pi / (n + 1))).astype("float32")


def measure(make, workload, sizes, seconds):
    calls = CALLS.get(workload, 1)
    make({name: min(length, 8) for name, length in sizes.items()})()
    before = restart_peak()
    once = make(sizes)

    def step():
        start = time.perf_counter()
        for _ in range(calls):
            once()
        return (time.perf_counter() - start) / calls

    first = step()
    times, ran, start = [], time.process_time(), time.perf_counter()
    while True:
        times.append(step())
        enough = LONG * seconds if len(times) < LEAST else seconds
        if time.perf_counter() - start >= enough or len(times) == MOST:
            break
    ran = time.process_time() - ran
    print(f"first {first:e}")
    print(f"step {statistics.median(times):e}")
    print(f"cpu {ran / len(times) / calls:e}")
    print(f"peak {max(highest() - before, 0)}")


def main(workloads):
    """`workloads`: by (workload, mode), a function of its sizes that returns a step."""
    words = sys.argv[1:]
    if words == ["list"]:
        for workload, mode in workloads:
            print(workload, mode)
        return
    if len(words) < 3 or words[0] != "run" or (words[1], words[2]) not in workloads:
        sys.exit("say `list`, or `run` with a workload and a mode of that list")
    sizes, seconds = dict(SIZES[words[1]]), 2.0
    for word in words[3:]:
        name, _, value = word.partition("=")
        if name == "seconds":
            seconds = float(value)
        elif name in sizes:
            sizes[name] = int(value)
        else:
            sys.exit(f"`{word}` is no dimension of {words[1]}")
    measure(workloads[words[1], words[2]], words[1], sizes, seconds)
