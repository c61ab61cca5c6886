"""A quantized ONNX model in float64, and how far Tonnage and onnxruntime are from that.

    python onnx_float64.py model_quantized.onnx [--length 128] [--inputs 5]

Every float of the graph is widened, and nodes are run by the reference evaluator of the ``onnx`` package; products of bytes are exact. Where activations are quantized by
their own range, a last digit decides which of 256 steps a number falls on, so what 32 bits give is some way from that, whoever computes it. Needs ``onnx``
and ``onnxruntime``; it is for models that take ``input_ids`` and ``attention_mask``.
"""

import argparse
import os
import sys

# A file beside this one has the name of what is imported.
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import AttributeProto, TensorProto, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx.reference.op_run import OpRun  # noqa: E402

import tonnage as tf  # noqa: E402

LEVELS = {"optimized": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, "as it is": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL}


class DynamicQuantizeLinear(OpRun):
    """In the dtype of its input."""

    op_domain = ""

    def _run(self, x):
        kind = x.dtype.type
        low, high = min(x.min(), kind(0)), max(x.max(), kind(0))
        scale = kind((high - low) / 255) or kind(1)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), np.asarray(scale), np.asarray(zero).astype(np.uint8)


class MatMulInteger(OpRun):
    """By products of float64, in which such sums are exact."""

    op_domain = ""

    def _run(self, a, b, a_zero_point=0, b_zero_point=0):
        zeros = [np.float64(0) if zero is None else np.asarray(zero, np.float64) for zero in (a_zero_point, b_zero_point)]
        return (np.matmul(a.astype(np.float64) - zeros[0], b.astype(np.float64) - zeros[1]).astype(np.int32),)


class DequantizeLinear(OpRun):
    """In the dtype of its scale."""

    op_domain = ""

    def _run(self, x, scale, zero=None, axis=1, **_):
        def laid(by):
            by = np.asarray(by)
            return by.reshape([-1 if at == axis % x.ndim else 1 for at in range(x.ndim)]) if by.size > 1 else by

        scale = np.asarray(scale)
        whole = x.astype(np.int64) - (0 if zero is None else laid(zero).astype(np.int64))
        return (whole.astype(scale.dtype) * laid(scale),)


class GatherElements(OpRun):
    """Of indices that are shorter than the data along other axes, too."""

    op_domain = ""

    def _run(self, x, indices, axis=0):
        axis %= x.ndim
        x = x[tuple(slice(None) if at == axis else slice(indices.shape[at]) for at in range(x.ndim))]
        return (np.take_along_axis(x, np.where(indices < 0, indices + x.shape[axis], indices), axis),)


def reads(node):
    """Names that a node reads, those of its graphs too."""
    names = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names |= reads(inner)
        names |= {output.name for output in attribute.g.output}
    return names


def in_order(graph):
    """Puts nodes behind those that they need."""
    made = {name for node in graph.node for name in node.output}
    left, order, there = list(graph.node), [], set()
    while left:
        ready = [node for node in left if reads(node) & made <= there]
        there |= {name for node in ready for name in node.output}
        order += ready
        left = [node for node in left if not any(node is one for one in ready)]
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in order]
    del graph.node[:]
    graph.node.extend(nodes)


def widen(graph):
    """Makes every float of a graph one of 64 bits."""

    def wide(tensor):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))

    for tensor in graph.initializer:
        wide(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                wide(attribute.t)
            if attribute.type == AttributeProto.GRAPH:
                widen(attribute.g)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--inputs", type=int, default=5)
    arguments = parser.parse_args()
    wide = onnx.load(arguments.model)
    in_order(wide.graph)
    widen(wide.graph)
    exact = ReferenceEvaluator(wide, new_ops=[DynamicQuantizeLinear, MatMulInteger, DequantizeLinear, GatherElements])
    ways = {"Tonnage": lambda feeds, model=tf.onnx.load(arguments.model): next(iter(model(**feeds).values())).numpy()}
    for name, level in LEVELS.items():
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(arguments.model, options, providers=["CPUExecutionProvider"])
        ways[f"onnxruntime, {name}"] = lambda feeds, session=session: session.run(None, feeds)[0]
    apart = {name: [] for name in ways}
    for seed in range(arguments.inputs):
        ids = np.random.default_rng(seed).integers(1, 2000, size=(1, arguments.length)).astype(np.int64)
        feeds = {"input_ids": ids, "attention_mask": np.ones((1, arguments.length), np.int64)}
        right = exact.run(None, feeds)[0]
        for name, way in ways.items():
            apart[name].append(float(np.max(np.abs(way(feeds) - right)) / np.max(np.abs(right))))
    for name, all_of in apart.items():
        print(f"{name:24} {min(all_of):.1e} to {max(all_of):.1e}, median {np.median(all_of):.1e} of the largest output")


if __name__ == "__main__":
    main()
