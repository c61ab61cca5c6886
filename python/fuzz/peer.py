"""Each op of a program beside TensorFlow's, on the same inputs: an error of one op is not carried into the next, so that
the tolerance is that of one op. Its scale is TensorFlow's own error, against the same op in float64.

What legitimately differs is in :data:`DIFFERENT`; an op, dtype or attribute that TensorFlow refuses is not compared.
"""

import os
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow  # noqa: E402
import tonnage as tf  # noqa: E402

from . import values  # noqa: E402
from .check import Finding, guarded, is_panic  # noqa: E402
from .elementwise import ELEMENTWISE  # noqa: E402
from .program import Program  # noqa: E402

# Ops whose results are Tonnage's own.
DIFFERENT = {
    "stateless": "another stream of random numbers",
    "stateless_of_a_seed": "another stream of random numbers",
    "nested_function": "the ops inside are compared on their own",
}
# Ops that are compared on finite inputs alone: TensorFlow's maxima drop NaN, it sorts NaN anywhere, and its convolutions
# may or may not multiply the padding with an infinite weight.
FINITE = {"softmax", "pool", "sort", "argsort", "top_k", "searchsorted", "arg_extreme", "convolution", "depthwise", "transposed",
          "attention", "cross_entropy", "segment", "norm", "unique",
          "cumulative_logsumexp"}
# Elementwise functions at poles and infinities, where TensorFlow says NaN and Tonnage the limit.
POLES = {"digamma", "lgamma", "silu", "softsign"}
# Functions that TensorFlow computes in float64 with constants of float32.
SINGLE = {"gelu"}
# Gradients at 0: that of selu is the slope on the other side, and TensorFlow's of running products is 0 behind a 0.
KINKS = {"selu", "cumulative"}
# Gradients at a tie, which goes to one element or to all; of equal eigenvalues any basis will do.
TIES = {"factors", "pool", "reduce_max", "reduce_min", "maximum", "minimum", "segment", "sort", "tensor_scatter"}
LARGEST = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.4e38, "float64": 1.7e308}


def _peer(made):
    """One of our tensors as TensorFlow's."""
    return values.tensor(tensorflow, values.array(tf, made), made.dtype.name)


def _wide(made):
    """The same in float64, where it is a float."""
    return tensorflow.cast(made, tensorflow.float64) if made.dtype.is_floating else made


def _run(node, scope):
    scope = dict(scope)
    exec("\n".join(node.lines()), scope)
    return scope[node.name]


def _gradients(namespace, node, scope, names, weights):
    # Values of their own: two names may be of one tensor, whose gradient would be that of both.
    inputs = [namespace.identity(scope[name]) for name in names]
    scope = {**scope, **dict(zip(names, inputs))}
    with namespace.GradientTape() as tape:
        for made in inputs:
            tape.watch(made)
        out = _run(node, scope)
        loss = namespace.reduce_sum(out * namespace.cast(namespace.constant(weights), out.dtype))
    return tape.gradient(loss, inputs, unconnected_gradients="zero")


def _refused(call):
    """What a call gives, or ``None`` where it raises."""
    try:
        return call()
    except Exception:
        return None


def _may_overflow(read, dtype):
    """Whether a sum of such numbers may leave the range on its way, which depends on the order that they are added in."""
    largest = max((np.abs(array[np.isfinite(array)]).max(initial=0.0) for array in read), default=0.0)
    return largest > LARGEST[dtype] / 1e3


def _compare(kind, node, ours, theirs, truth, elementwise, read):
    a, b = values.array(tf, tf.convert_to_tensor(ours)), values.array(tensorflow, tensorflow.convert_to_tensor(theirs))
    dtype = ours.dtype.name
    if dtype != theirs.dtype.name:
        raise Finding(f"dtype of {node.op}", f"{dtype}, TensorFlow's is {theirs.dtype.name}")
    allowed = 0.0
    if b.dtype.kind == "f" and a.shape == b.shape and b.size:
        eps = max(values.EPSILON[dtype], values.EPSILON["float32"] if node.op in SINGLE else 0.0)
        wide = b.astype("float64")
        finite = np.isfinite(wide)
        allowed = 48 * eps * np.abs(np.where(finite, wide, 0.0)) + {"float16": 6e-8}.get(dtype, 1e-29)
        if not elementwise or node.op in POLES:
            allowed = allowed + 48 * eps * np.abs(wide[finite]).max(initial=0.0)
        if truth is not None and truth.shape == b.shape:
            truth = truth.astype("float64")
            noise = np.where(np.isfinite(truth) & finite, np.abs(wide - truth), 0.0)
            allowed = allowed + 32 * (noise if elementwise else noise.max(initial=0.0))
            # Where the true value is near the end of the range, one may overflow and the other not; where TensorFlow's
            # own value is no value, the truth decides.
            edge = np.abs(truth) > 0.9 * LARGEST[dtype]
            lost = ~finite & np.isfinite(truth)
            allowed = np.where(edge | lost, np.inf, allowed)
            a = np.where(edge | lost, wide, a.astype("float64"))
        if not elementwise and _may_overflow(read, dtype):
            a = np.where(np.isfinite(a) == finite, a, wide)
    if kind == "gradient" or node.op in POLES:
        # At a kink or a pole TensorFlow says NaN where Tonnage says a slope or an infinity.
        b = np.where(np.isnan(b), a, b) if a.shape == b.shape else b
    if kind == "gradient" and b.dtype.kind == "f":
        allowed = allowed + 24 * values.EPSILON[dtype]
    wrong = values.far_apart(a, b, allowed)
    if wrong:
        raise Finding(f"TensorFlow {kind} {node.op}", f"{node.text}: {wrong}; inputs {sorted(node.uses())}")


def _has_ties(read):
    return any(np.unique(array).size < array.size for array in read) or len(read) > 1


def _check_node(node, ours, theirs, wide):
    inner = set(Program({}, [node], []).ops())
    if inner & DIFFERENT.keys():
        return
    expected = _refused(lambda: _run(node, theirs))
    if expected is None:
        return
    made = ours[node.name]
    read = [values.array(tf, ours[name]) for name in sorted(node.uses()) if ours[name].dtype.is_floating]
    finite = all(np.isfinite(array).all() for array in read)
    if inner & FINITE and not finite:
        return
    truth = _refused(lambda: _run(node, wide).numpy()) if made.dtype.is_floating else None
    elementwise = node.op in ELEMENTWISE
    _compare("value", node, made, expected, truth, elementwise, read)
    names = sorted(name for name in node.uses() if ours[name].dtype.is_floating)
    if not names or not made.dtype.is_floating or 0 in made.shape:
        return
    if not finite or not np.isfinite(values.array(tf, made)).all() or inner & TIES and _has_ties(read):
        return
    if inner & KINKS and any((array == 0).any() for array in read):
        return
    weights = (np.arange(made.numpy().size).reshape(made.shape) % 3 + 1).astype("float32")
    expected = _refused(lambda: _gradients(tensorflow, node, theirs, names, weights))
    if expected is None:
        return
    expected = [tensorflow.convert_to_tensor(part) for part in expected]
    try:
        made = _gradients(tf, node, ours, names, weights)
    except BaseException as error:
        if is_panic(error):
            raise Finding("panic", str(error)) from error
        raise Finding(f"TensorFlow gradient {node.op}", f"{node.text}: {type(error).__name__}: {error}") from error
    truth = _refused(lambda: _gradients(tensorflow, node, wide, names, weights)) or [None] * len(names)
    for ours_part, part, true in zip(made, expected, truth):
        true = None if true is None else tensorflow.convert_to_tensor(true).numpy()
        _compare("gradient", node, ours_part, part, true, elementwise, read)


def check(program):
    """Compares every op of a program; raises a :class:`Finding`."""
    ours, theirs, wide = ({"tf": module, "np": np} for module in (tf, tensorflow, tensorflow))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, made in zip(program.arguments, program.tensors(tf)):
            ours[name], theirs[name] = made, _peer(made)
            wide[name] = _wide(theirs[name])
        for node in program.nodes:
            guarded("eager", lambda node=node: exec("\n".join(node.lines()), ours))
            _check_node(node, ours, theirs, wide)
            theirs[node.name] = _peer(ours[node.name])
            wide[node.name] = _wide(theirs[node.name])
