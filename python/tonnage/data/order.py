"""Random orders, and how many threads."""

import os
import random

import numpy as np

from .. import _tonnage as _t


class Dice:
    """Random numbers of passes. With a seed, or after ``tf.random.set_seed``, a program is the same each time."""

    def __init__(self, seed, anew):
        first = int(_t.call_eagerly(lambda: _t.random_int(0, 2**31 - 1, [], "int64", None))) if seed is None else int(seed)
        self._first, self._anew, self._passes = first, anew, 0

    def start(self):
        """NumPy's generator for the next pass."""
        made = np.random.default_rng([self._first, self._passes if self._anew else 0])
        self._passes += 1
        return made

    def __call__(self):
        """For the next pass: what makes what draws a number below another one, and what draws an order of so many."""
        generator = self.start()
        return lambda: random.Random(int(generator.integers(0, 2**63))).randrange, generator.permutation


def threads(parallel):
    """How many threads are asked for."""
    if parallel is None:
        return 1
    parallel = int(parallel)
    if parallel == -1:
        return max(2, min(16, os.cpu_count() or 2))
    if parallel <= 0:
        raise ValueError(f"`num_parallel_calls` must be positive or tf.data.AUTOTUNE. Received: {parallel}")
    return parallel
