"""Each op of a program beside TensorFlow's, on the same inputs: an error of one op is not carried into the next, so that
the tolerance is that of one op. Its scale is TensorFlow's own error, against the same op in float64.

A loop or a branch is compared twice: its ops one by one, as an unrolled run comes to them, as strictly as all others; and
as a whole, where errors grow from iteration to iteration and may decide a branch, as strictly as TensorFlow's own run in
float64, and runs of inputs that are one rounding away, allow.

What legitimately differs is in :data:`DIFFERENT`; an op, dtype or attribute that TensorFlow refuses is not compared. Where
TensorFlow itself is not exact (:mod:`fuzz.exact`), each element has to be its value or the exact one.
"""

import functools
import os
import re
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# TensorFlow 2.21's batched products write outside of their memory with it: tf.matmul of [3, 1, 33, 5] and [5, 5].
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np  # noqa: E402
import tensorflow  # noqa: E402
import tonnage as tf  # noqa: E402

from . import exact, values  # noqa: E402
from .check import Finding, guarded, is_panic  # noqa: E402
from .elementwise import ELEMENTWISE  # noqa: E402
from .program import Program  # noqa: E402
from .unrolled import Unrolled  # noqa: E402

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
# Ops that add up products.
PRODUCTS = {"matmul", "einsum", "tensordot", "convolution", "depthwise", "transposed", "attention", "dense", "solve", "factors"}
# Ops that multiply many numbers, in any order.
MULTIPLIED = {"reduce_prod", "cumulative"}
# Functions with roots and poles, near which digits are lost.
POLES = {"digamma", "lgamma"}
# Gradients at 0: that of selu is the slope on the other side, and TensorFlow's of running products is 0 behind a 0.
KINKS = {"selu", "cumulative"}
# Gradients at a tie, which goes to one element or to all; of equal eigenvalues any basis will do.
TIES = {"factors", "pool", "reduce_max", "reduce_min", "maximum", "minimum", "segment", "sort", "tensor_scatter"}
LARGEST = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.4e38, "float64": 1.7e308}
# A body's ops are compared in so many of its first runs.
MOST_RUNS = 3

_FLOAT = re.compile(r"\b(bfloat16|float16|float32|float64)\b")


class Reference:
    """A node's value, or its gradients, in one of TensorFlow's namespaces."""

    def __init__(self, namespace, node, scope, names=None, weights=None):
        self.namespace, self.node, self.names, self.weights = namespace, node, names, weights
        self.inputs = {name: _peer(scope[name]) for name in sorted(node.uses())}
        self.made = _refused(lambda: self.run(self.inputs))
        self.bodies = bool(node.bodies)

    def run(self, inputs, dtype=None):
        """A list of results; with a dtype, as if all floats were of it."""
        if dtype is not None:
            cast = lambda made: tensorflow.cast(made, dtype) if made.dtype.is_floating else made  # noqa: E731
            inputs = {name: cast(made) for name, made in inputs.items()}
        scope = {"tf": self.namespace, "np": np, **inputs}
        if self.names is None:
            return [_run(self.node, scope, dtype)]
        made = _gradients(tensorflow, self.node, scope, self.names, self.weights, dtype)
        return [tensorflow.convert_to_tensor(part) for part in made]

    def truth(self):
        """The same in float64: a list of arrays, or of ``None``. A cast has no other truth than itself."""
        made = None if self.node.op == "cast" else _refused(lambda: self.run(self.inputs, "float64"))
        return [None] * len(self.made) if made is None else [part.numpy() for part in made]

    def noise(self, dtypes):
        """What rounding does to results, more surely than by one run, which may be lucky, and in float64, which has no
        wider truth: runs in float32 and float64 at points nearby, scaled down for float64. In loops and branches errors
        grow; there, also what one rounding of the inputs makes of the results in float64."""
        found = [0.0] * len(self.made)
        factors = [min(1.0, values.EPSILON[dtype] / values.EPSILON["float32"]) for dtype in dtypes]
        for step in (-2, -1, 0, 1, 2):
            near = self.scaled(1 + step / 2048, "float32")
            self._add(found, near, near, "float32", factors)
            if self.bodies:
                for eps in {values.EPSILON[dtype] for dtype in dtypes}:
                    self._add(found, self.scaled(1 + step * eps), self.inputs, "float64", [1.0] * len(dtypes))
        return found

    def _add(self, found, inputs, true_inputs, dtype, factors):
        made = _refused(lambda: (self.run(inputs, dtype), self.run(true_inputs, "float64")))
        for i, (a, b) in enumerate(zip(*made) if made else ()):
            a, b = a.numpy().astype("float64"), b.numpy().astype("float64")
            if a.shape == b.shape:
                both = np.isfinite(a) & np.isfinite(b)
                found[i] = np.maximum(found[i], np.where(both, np.abs(a - b), 0.0) * factors[i])

    def scaled(self, factor, dtype=None):
        def scale(made):
            if not made.dtype.is_floating:
                return made
            made = tensorflow.cast(made, "float64") * factor
            return made if dtype is None else tensorflow.cast(made, dtype)

        return {name: scale(made) for name, made in self.inputs.items()}


def _peer(made):
    """One of our tensors as TensorFlow's."""
    return values.tensor(tensorflow, values.array(tf, made), made.dtype.name)


@functools.lru_cache(maxsize=4096)
def _code(lines):
    """Text as code, once: TensorFlow keeps all code that it was ever called from, with some 20 KB for each (the traces of
    its stack), and a shrinking program runs the same texts hundreds of times."""
    return compile(lines, "<string>", "exec")


def _run(node, scope, dtype=None):
    lines = "\n".join(node.lines())
    scope = dict(scope)
    exec(_code(_FLOAT.sub(dtype, lines) if dtype else lines), scope)
    return scope[node.name]


def _gradients(namespace, node, scope, names, weights, dtype=None):
    # Values of their own: two names may be of one tensor, whose gradient would be that of both.
    inputs = [namespace.identity(scope[name]) for name in names]
    scope = {**scope, **dict(zip(names, inputs))}
    with namespace.GradientTape() as tape:
        for made in inputs:
            tape.watch(made)
        out = _run(node, scope, dtype)
        loss = namespace.reduce_sum(out * namespace.cast(namespace.constant(weights), out.dtype))
    return tape.gradient(loss, inputs, unconnected_gradients="zero")


def _refused(call):
    """What a call gives, or ``None`` where it raises."""
    try:
        return call()
    except Exception:
        return None


def _range(array):
    """How far from 1, in powers of two, a product of some of these numbers may lie."""
    numbers = array[np.isfinite(array) & (array != 0)].astype("float64")
    return float(np.abs(np.log2(np.abs(numbers))).sum())


def _may_overflow(read, dtype, inner):
    """Whether a sum of such numbers, or of their products, may leave the range on its way: that depends on the order that
    they are added in, and on whether a product is rounded before it is added."""
    if inner & MULTIPLIED and max((_range(array) for array in read), default=0.0) > np.log2(LARGEST[dtype]):
        return True
    largest = max((float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) for array in read), default=0.0)
    return (largest * largest if inner & PRODUCTS else largest) > LARGEST[dtype] / 1e3


def _wrong(kind, node, inner, a, dtype, theirs, truth, noise, read):
    """Where an array is not TensorFlow's: a mask. ``noise`` may be ``None``: nothing but the last digits may differ."""
    b = values.array(tensorflow, theirs)
    known = truth is not None and truth.shape == b.shape
    if b.dtype.kind != "f":
        # Where the errors of a loop decide an integer, TensorFlow's own differ.
        return (a != b) & (b == truth) if node.bodies and known else a != b
    elementwise = node.op in ELEMENTWISE
    eps = values.EPSILON[dtype]
    a, b = a.astype("float64"), b.astype("float64")
    finite = np.isfinite(b)
    allowed = 48 * eps * np.abs(np.where(finite, b, 0.0)) + {"float16": 6e-8}.get(dtype, 1e-29)
    if not elementwise or node.op in POLES:
        allowed = allowed + 48 * eps * np.abs(b[finite]).max(initial=0.0)
    skipped = np.zeros(b.shape, bool)
    if known and noise is not None:
        truth = truth.astype("float64")
        # What is the true value is right, whatever TensorFlow's is.
        skipped |= ~values.apart(a, truth, 4 * eps * np.abs(np.where(np.isfinite(truth), truth, 0.0)))
        noise = np.maximum(noise, np.where(np.isfinite(truth) & finite, np.abs(b - truth), 0.0))
        allowed = allowed + 32 * (noise if elementwise else noise.max(initial=0.0))
        # Where the true value is near the end of the range, one may overflow and the other not; where TensorFlow's own
        # value is no value, the truth decides.
        edge = (np.abs(truth) > 0.9 * LARGEST[dtype]) | ~finite
        skipped |= edge & np.isfinite(truth)
        if node.bodies:
            # An op inside that loses NaN, or overflows, in one of TensorFlow's own runs and not in the other.
            skipped |= finite != np.isfinite(truth)
    if node.bodies and inner & POLES:
        # Whether an iteration comes to a pole, the last bit of the one before decides.
        skipped |= np.isinf(a) | np.isinf(b)
    if not elementwise and _may_overflow(read, dtype, inner):
        skipped |= ~np.isfinite(a) | ~finite
        if inner & MULTIPLIED:
            skipped |= (a == 0) != (b == 0)
    if node.bodies and inner & FINITE:
        skipped |= np.isnan(a) | np.isnan(b)
    if kind == "gradient":
        # At a kink TensorFlow says NaN where Tonnage says a slope.
        skipped |= np.isnan(b)
        allowed = allowed + 24 * eps
    return values.apart(a, b, allowed) & ~skipped


def _compare(kind, node, ours, references, read):
    """Each element has to be that of one of the references. The noise is that of the last one, which is the most exact;
    where that of one run is not enough, more are made."""
    inner = set(Program({}, [node], []).ops())
    arrays = [values.array(tf, tf.convert_to_tensor(part)) for part in ours]
    dtypes = [part.dtype.name for part in ours]
    for a, dtype, part in zip(arrays, dtypes, references[0].made):
        if dtype != part.dtype.name:
            raise Finding(f"dtype of {node.op}", f"{dtype}, TensorFlow's is {part.dtype.name}")
        if a.shape != tuple(part.shape):
            raise Finding(f"TensorFlow {kind} {node.op}", f"{node.text}: shapes {list(a.shape)} and {part.shape.as_list()}")
    truths = [reference.truth() for reference in references]

    def wrong(noise):
        found = []
        for i, a in enumerate(arrays):
            masks = [_wrong(kind, node, inner, a, dtypes[i], reference.made[i], truth[i],
                            noise[i] if reference is references[-1] else None, read)
                     for reference, truth in zip(references, truths)]
            found.append(np.logical_and.reduce(masks))
        return found

    found = wrong([0.0] * len(arrays))
    if any(mask.any() for mask in found) and all(dtype in values.EPSILON for dtype in dtypes):
        found = wrong(references[-1].noise(dtypes))
    return found


def _report(kind, node, ours, references, found):
    for mask, part, theirs in zip(found, ours, references[0].made):
        if mask.any():
            a, b = values.array(tf, part), values.array(tensorflow, theirs)
            raise Finding(f"TensorFlow {kind} {node.op}",
                          f"{node.text}: {values.difference(a, b, mask)}; inputs {sorted(node.uses())}")


def _references(node, inner, *given):
    """TensorFlow's results and, where there are others, the exact ones; none where TensorFlow refuses."""
    namespaces = [tensorflow, exact.NAMESPACE] if inner & exact.OPS else [tensorflow]
    made = [Reference(namespace, node, *given) for namespace in namespaces]
    return [] if made[0].made is None else [reference for reference in made if reference.made is not None]


def _has_ties(read):
    return any(np.unique(array).size < array.size for array in read) or len(read) > 1


def _has_subnormal(array):
    least = np.finfo("float64" if array.dtype == np.float64 else "float32").tiny
    return ((array != 0) & (np.abs(array) < least)).any()


def _check_node(node, ours):
    inner = set(Program({}, [node], []).ops())
    if inner & DIFFERENT.keys():
        return
    made = ours[node.name]
    names = sorted(name for name in node.uses() if ours[name].dtype.is_floating)
    read = [values.array(tf, ours[name]) for name in names]
    finite = all(np.isfinite(array).all() for array in read)
    if inner & FINITE and not finite:
        return
    # TensorFlow's ops read subnormal numbers as zeros, and a later one may tell those apart: the ops are compared one by one.
    if node.bodies and any(_has_subnormal(array) for array in read):
        return
    references = _references(node, inner, ours)
    if not references:
        return
    _report("value", node, [made], references, _compare("value", node, [made], references, read))
    if not names or not made.dtype.is_floating or 0 in made.shape:
        return
    if not finite or not np.isfinite(values.array(tf, made)).all() or inner & TIES and _has_ties(read):
        return
    if inner & KINKS and any((array == 0).any() for array in read):
        return
    # TensorFlow reads subnormal numbers as zeros, where the slope may be another one; it casts them to zeros, too.
    if any(_has_subnormal(array) for array in read):
        return
    weights = (np.arange(made.numpy().size).reshape(made.shape) % 3 + 1).astype("float32")
    references = _references(node, inner, ours, names, weights)
    if not references:
        return
    try:
        made = [tf.convert_to_tensor(part) for part in _gradients(tf, node, ours, names, weights)]
    except BaseException as error:
        if is_panic(error):
            raise Finding("panic", str(error)) from error
        raise Finding(f"TensorFlow gradient {node.op}", f"{node.text}: {type(error).__name__}: {error}") from error
    found = _compare("gradient", node, made, references, read)
    if node.bodies and any(mask.any() for mask in found):
        # Zeros that loops and branches pass back to what they do not use may become NaN; unrolled, nothing is passed back.
        unrolled = _gradients(tf, node, {**ours, "tf": Unrolled(tf)}, names, weights)
        nan = [np.isnan(values.array(tf, part)) for part in made]
        other = _compare("gradient", node, [tf.convert_to_tensor(part) for part in unrolled], references, read)
        found = [np.where(lost, mask, was) for lost, mask, was in zip(nan, other, found)]
    _report("gradient", node, made, references, found)


def _check_bodies(node, ours):
    """Runs a loop or a branch unrolled, and compares the ops of its bodies."""
    scope = {**ours, "tf": Unrolled(tf)}
    for body in node.bodies:
        scope[body.name] = _compared(body, scope)
    exec(_code(f"{node.name} = {node.text}"), scope)


def _compared(body, outer):
    """A body as a function that compares its ops as it runs."""
    runs = 0

    def call(*given):
        scope = {**outer, **dict(zip(body.parameters, given))}

        def step():
            nonlocal runs
            runs += 1
            for node in body.nodes:
                exec(_code("\n".join(node.lines())), scope)
                if runs <= MOST_RUNS:
                    _check(node, scope)
            return [scope[name] for name in body.results]

        if body.loop:
            scope["step"] = lambda: scope.update(zip(body.parameters, step()))
            exec(_code(f"{body.loop}\n    step()"), scope)
            made = [scope[name] for name in body.parameters]
        else:
            made = step()
        return made[0] if len(made) == 1 else tuple(made)

    return call


def _check(node, ours):
    _check_node(node, ours)
    if node.bodies:
        _check_bodies(node, ours)


def check(program):
    """Compares every op of a program; raises a :class:`Finding`."""
    ours = {"tf": tf, "np": np}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        ours.update(zip(program.arguments, program.tensors(tf)))
        for node in program.nodes:
            guarded("eager", lambda node=node: exec("\n".join(node.lines()), ours))
            _check(node, ours)
