"""Runs a program in every way that must agree: eagerly, unrolled, as a function, with open lengths, with gradients, and
under budgets from the peak of the plain plan down to the least that a refusal names.

What may differ, and how (all else is the same bits):

* Loops against their unrolled form, and gradients: sums may be added up in another order, so a few last digits.
* ``vectorized_map`` runs its body on all rows at once, and a budget may cut the batch into pieces: the same few digits.
* Open lengths, given or decided by the data, may be refused where an op needs to know one or two must be equal: one that
  the data decide to be 1 is not broadcast in a function.
* Loops and branches pass zeros back to what they captured and do not use, and zero times infinity is NaN; without them
  nothing is passed back. TensorFlow's do the same.
* Where the plan is a bound (``plan.is_bound``), a call may use less than predicted.
"""

import math
import re
import warnings

import numpy as np
import tonnage as tf

from . import values
from .unrolled import Unrolled

_LEAST = re.compile(r"the least that would do is [^(]*\((\d+) bytes\)")
_OPEN_SIZE = re.compile(r"\[.*(unique|mask|true|segment)_count.*(do not fit|is open|are not square)|the data decided these sizes")
MOST_BUDGETS = 5


class Finding(Exception):
    """Something is wrong; ``kind`` names the promise that is broken."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def is_panic(error):
    return type(error).__name__ == "PanicException"


def guarded(kind, call):
    """The result of a call; a panic, and an error that is no user's, is a finding."""
    try:
        return call()
    except Finding:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise Finding("panic" if is_panic(error) else f"error {kind}", f"{type(error).__name__}: {error}") from error


def arrays(made):
    return [None if part is None else values.array(tf, tf.convert_to_tensor(part)) for part in made]


def tolerance(array, dtype, scale):
    """What sums in another order may differ by: relative to the largest number that went in or came out."""
    finite = np.abs(array[np.isfinite(array)].astype("float64")) if array.dtype.kind == "f" else np.zeros(0)
    return 256 * values.EPSILON.get(dtype, 0) * max(scale, float(finite.max()) if finite.size else 0.0, 1.0)


class Checked:
    """A function of tensors that returns a tuple, with what it gives eagerly."""

    def __init__(self, function, given, bodies=False):
        self.function, self.given, self.bodies = function, given, bodies
        made = guarded("eager", lambda: self.function(*self.given))
        self.dtypes = [part.dtype.name for part in made]
        self.expected = arrays(made)
        self.scale = _largest([*arrays(self.given), *self.expected])

    def same(self, kind, made, expected=None, dtypes=None, close=False, lost=False):
        """Raises where results differ; ``lost`` lets one of them be NaN where the other is a number."""
        dtypes = dtypes or self.dtypes
        for i, (a, b) in enumerate(zip(arrays(made), self.expected if expected is None else expected)):
            if lost and a is not None and b is not None and a.shape == b.shape and a.dtype.kind == "f":
                a, b = np.where(np.isnan(b), b, a), np.where(np.isnan(a), a, b)
            if (a is None) != (b is None):
                raise Finding(f"numbers {kind}", f"result {i}: one is None")
            if a is None:
                continue
            loose = close and b.dtype.kind == "f"
            # A gradient of float64 may have gone through results of less precision.
            coarsest = max([dtypes[i], *self.dtypes], key=lambda dtype: values.EPSILON.get(dtype, 0))
            wrong = values.far_apart(a, b, tolerance(b, coarsest, self.scale)) if loose else values.bits_differ(a, b)
            if wrong:
                raise Finding(f"numbers {kind}", f"result {i}: {wrong}")

    def may_overflow(self, dtypes):
        """Whether a product of two of its numbers may be infinite."""
        limits = [float(values.MOST[dtype]) for dtype in [*dtypes, *self.dtypes] if dtype in values.MOST]
        return bool(limits) and self.scale > math.sqrt(min(limits))

    # -- ways to run ------------------------------------------------------------------------------------------------

    def unrolled(self, function):
        """Against a function whose loops and branches are Python's."""
        self.same("unrolled", guarded("unrolled", lambda: function(*self.given)), close=True)

    def planned(self):
        """As a function, twice; whether it can be planned."""
        return self.run("function", self.function, self.given, self.expected, self.dtypes)

    def open_lengths(self, rng):
        specs = [tf.TensorSpec([None if rng.random() < 0.5 else n for n in t.shape], t.dtype) for t in self.given]
        if all(None not in list(spec.shape) for spec in specs):
            return
        f = tf.function(self.function, input_signature=specs)
        try:
            made = f(*self.given)
        except BaseException as error:
            if is_panic(error):
                raise Finding("panic", str(error)) from error
            if isinstance(error, Exception):
                return
            raise
        self.same("with open lengths", made)

    def run(self, kind, function, given, expected, dtypes, close=False, lost=False):
        """As a function, under budgets too; ``False`` where it is refused since a size is open."""
        f = tf.function(function)
        try:
            made = f(*given)
        except tf.errors.InvalidArgumentError as error:
            if _OPEN_SIZE.search(str(error)):
                return False
            guarded(kind, lambda: (_ for _ in ()).throw(error))
        except BaseException as error:
            guarded(kind, lambda: (_ for _ in ()).throw(error))
        self.same(f"as {kind}", made, expected, dtypes, close, lost)
        ran = f.last_run()
        if ran is None:
            return True
        plan = guarded(kind, lambda: f.plan(*given))
        self.used(kind, plan, ran)
        self.budgets(kind, function, given, arrays(made), dtypes, plan)
        return True

    def used(self, kind, plan, ran):
        if ran["used"] > ran["predicted"] or (ran["used"] != ran["predicted"] and not plan.is_bound):
            raise Finding(f"used of {kind}", f"used {ran['used']}, predicted {ran['predicted']} bytes")

    def budgets(self, kind, function, given, expected, dtypes, plan):
        """Budgets down to the least, each below the peak before: results, what is used, and the peak, which never grows."""
        least = self.least(kind, function, given)
        if least > max(plan.peak, 1):
            raise Finding(f"least of {kind}", f"{least} bytes, but the plan without a budget takes {plan.peak}")
        below, peaks = plan.peak - 1, [plan.peak]
        for step in range(MOST_BUDGETS):
            budget = below if step < MOST_BUDGETS - 1 else least
            if budget < least:
                break
            for exact in (False, True) if step == 0 else (False,):
                f = tf.function(function, budget=budget, exact=exact)
                try:
                    made = f(*given)
                except tf.errors.ResourceExhaustedError as error:
                    if exact:
                        continue
                    raise Finding(f"refused {kind}", f"a budget of {budget} bytes, least {least}: {error}") from error
                except BaseException as error:
                    guarded(f"{kind} with a budget of {budget}", lambda error=error: (_ for _ in ()).throw(error))
                # Sums in another order: where they overflow, one order may meet both infinities and another one none.
                lost = not exact and self.may_overflow(dtypes)
                self.same(f"as {kind} with a budget of {budget}, exact={exact}", made, expected, dtypes, not exact, lost)
                tight = f.plan(*given)
                ran = f.last_run()
                if max(tight.peak, ran["used"]) > budget:
                    raise Finding(f"over budget of {kind}", f"{tight.peak} planned, {ran['used']} used, budget {budget}")
                self.used(f"{kind} with a budget", tight, ran)
                if not exact:
                    if tight.peak > peaks[-1]:
                        raise Finding(f"peak not monotone of {kind}", f"{peaks} then {tight.peak} at {budget}")
                    peaks.append(tight.peak)
                    below = (tight.peak - 1 + least) // 2 if tight.peak > least else least - 1

    def least(self, kind, function, given):
        try:
            tf.function(function, budget=1)(*given)
        except tf.errors.ResourceExhaustedError as error:
            found = _LEAST.search(str(error))
            if not found:
                raise Finding(f"refusal of {kind}", f"names no least budget: {error}") from error
            return int(found.group(1))
        except BaseException as error:
            guarded(f"{kind} with a budget of 1", lambda: (_ for _ in ()).throw(error))
        return 1

    def gradients(self):
        """By a tape around the eager program, around the function, and inside of a function."""
        floats = [i for i, t in enumerate(self.given) if t.dtype.is_floating]
        if not floats or not any(d in values.FLOATS for d in self.dtypes):
            return

        def gradient(function):
            def run(*given):
                with tf.GradientTape() as tape:
                    for i in floats:
                        tape.watch(given[i])
                    made = [part for part in function(*given) if part.dtype.is_floating]
                return tape.gradient(made, [given[i] for i in floats], unconnected_gradients="zero")

            return run

        try:
            made = gradient(self.function)(*self.given)
        except BaseException as error:
            if is_panic(error):
                raise Finding("panic", str(error)) from error
            if isinstance(error, (tf.errors.OpError, ValueError, TypeError, LookupError, NotImplementedError)):
                return
            raise
        dtypes = [part.dtype.name for part in made]
        expected = guarded("gradient", lambda: arrays(made))
        kept = self.scale
        self.scale = _largest([*expected, np.array(kept)])
        try:
            outside = guarded("tape around a function", lambda: gradient(tf.function(self.function))(*self.given))
            lost = self.bodies
            self.same("by a tape around a function", outside, expected, dtypes, close=True, lost=lost)
            self.run("gradient", gradient(self.function), self.given, expected, dtypes, close=True, lost=lost)
        finally:
            self.scale = kept


def _largest(all_arrays):
    floats = [a[np.isfinite(a)] for a in all_arrays if a is not None and a.dtype.kind == "f"]
    return max([float(np.abs(a.astype("float64")).max()) for a in floats if a.size], default=1.0)


# What random numbers lie within, by the start of their text; the other checks see that they are the same in every way.
RANGES = {"tf.random.stateless_uniform": (0, 1), "tf.random.stateless_truncated_normal": (-2, 2),
          "tf.random.stateless_normal": (-9, 9)}


def random_numbers(program):
    """Raises where random numbers are outside of their range."""
    for node in program.nodes:
        name = node.text.partition("(")[0]
        if node.op == "stateless" and name in RANGES:
            low, high = (-3, 8) if "minval=-3" in node.text else RANGES[name]
            made = values.array(tf, guarded("random", lambda node=node: eval(node.text, {"tf": tf})))
            if not ((made >= low) & (made <= high)).all():
                raise Finding("range of random numbers", f"{node.text}: from {made.min()} to {made.max()}")


def check(program, rng):
    """Runs a program in every way; raises a :class:`Finding` where two do not agree."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        bodies = any(node.bodies for node in program.nodes)
        checked = Checked(program.compiled(tf), program.tensors(tf), bodies)
        if bodies:
            checked.unrolled(program.compiled(Unrolled(tf)))
        random_numbers(program)
        planned = checked.planned()
        checked.open_lengths(rng)
        if planned:
            checked.gradients()
