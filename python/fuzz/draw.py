"""Draws programs from a seed: each op is picked from the tables, written down as text, and run at once, so that the shape
and dtype of every value are known to the ops that follow."""

import random

import numpy as np
import tonnage as tf

from . import values
from .program import Body, Node, Program
from .unrolled import Unrolled

MOST_ELEMENTS = 6000


class Refused(Exception):
    """An op that the package refused, with its text: the drawing goes on without it."""


class Panicked(Exception):
    """An op that panicked, as a program of its own."""

    def __init__(self, program, text):
        super().__init__(text)
        self.program = program


class Drawing:
    """A program in the making. Inside of :meth:`body`, the nodes of a function that a loop or a branch runs."""

    def __init__(self, seed, tables):
        self.rng = random.Random(seed)
        self.tables = tables
        self.wild = self.rng.random() < 0.35
        # Sizes that the data decide are open in a function, and loops refuse them: a program has one or the other.
        self.data_decide = self.rng.random() < 0.1
        self.large = self.rng.random() < 0.15
        self.favourites = self.rng.sample(values.DTYPES, 3) if self.rng.random() < 0.4 else ["float32", "float32", "int32"]
        self.arguments, self.known, self.refusals, self.count = {}, {}, [], 0
        self.nodes, self.visible, self.depth = [], [], 0
        self.scope = {"tf": Unrolled(tf), "np": np}

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    # -- values ---------------------------------------------------------------------------------------------------

    def shape(self, rank=None):
        rank = self.rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]) if rank is None else rank
        sizes = [1, 2, 3, 4, 5, 7, 8] + ([0] if self.rng.random() < 0.15 else [])
        made = [self.rng.choice(sizes) for _ in range(rank)]
        if made and self.rng.random() < (0.8 if self.large else 0.15):
            made[self.rng.randrange(rank)] = self.rng.choice([16, 17, 33, 64, 200] if self.large else [16, 17, 33])
        return made if np.prod(made) <= 3000 else self.shape(rank)

    def argument(self, dtype, shape, array=None):
        """A new argument of the program."""
        name = self.fresh()
        array = values.drawn(self.rng, shape, dtype, self.wild) if array is None else np.asarray(array)
        self.arguments[name] = (array, dtype)
        self.scope[name] = values.tensor(tf, array, dtype)
        self.known[name] = (dtype, list(array.shape))
        self.visible.append(name)
        return name

    def dtype(self, name):
        return self.known[name][0]

    def sizes(self, name):
        return self.known[name][1]

    def rank(self, name):
        return len(self.known[name][1])

    def put(self, op, text, bodies=()):
        """Runs an op and writes it down; its name."""
        name = self.fresh()
        node = Node(name, op, text, bodies)
        scope = dict(self.scope)
        try:
            exec("\n".join(node.lines()), scope)
            made = scope[name]
            known = (made.dtype.name, [int(n) for n in made.shape])
        except Exception as error:
            self.refusals.append((op, "\n".join(node.lines()), error))
            raise Refused(text) from error
        except BaseException as error:  # a panic, in the bindings that Rust has for Python
            if isinstance(error, KeyboardInterrupt):
                raise
            read = {used: self.scope[used] for used in sorted(node.uses())}
            arguments = {used: (values.array(tf, t), t.dtype.name) for used, t in read.items()}
            raise Panicked(Program(arguments, [node], [name]), str(error)) from error
        if np.prod(known[1]) > MOST_ELEMENTS:
            raise Refused("large")
        self.scope[name], self.known[name] = made, known
        self.nodes.append(node)
        self.visible.append(name)
        return name

    def any(self, dtypes=values.DTYPES, rank=None, least=0, fits=lambda sizes: True):
        """A value of one of these dtypes, with a rank or at least one, whose sizes fit: one that there is, or one made of
        it by a cast or a reshape, or a new argument."""
        def matches(name):
            sizes = self.sizes(name)
            return (self.dtype(name) in dtypes and len(sizes) >= least and rank in (None, len(sizes)) and fits(sizes))

        found = [name for name in self.visible if matches(name)]
        if found and self.rng.random() < 0.9:
            # Late ones more often: programs are to be deep.
            return found[int(len(found) * self.rng.random() ** 0.5)]
        if self.visible and self.rng.random() < 0.5:
            name = self.visible[int(len(self.visible) * self.rng.random() ** 0.5)]
            if self.dtype(name) not in dtypes:
                name = self.put("cast", self.cast_text(name, self.rng.choice(dtypes)))
            wanted = rank if rank is not None else max(least, self.rank(name))
            if self.rank(name) != wanted:
                name = self.put("reshape", f"tf.reshape({name}, {self.factored(self.sizes(name), wanted)})")
            if matches(name):
                return name
        liked = [d for d in self.favourites if d in dtypes] or dtypes
        for _ in range(50):
            shape = self.shape(rank if rank is not None else max(least, self.rng.choice([0, 1, 2, 2, 3, 4])))
            if fits(shape):
                return self.argument(self.rng.choice(liked), shape)
        raise Refused("no shape")

    def cast_text(self, name, dtype):
        """A cast. A float outside of an integer's range has no value that all agree on: it is brought into [0, 100]."""
        if self.dtype(name) in values.FLOATS and dtype in values.INTEGERS:
            name = f"tf.clip_by_value(tf.where(tf.math.is_nan({name}), tf.zeros_like({name}), {name}), 0, 100)"
        return f"tf.cast({name}, {dtype!r})"

    def factored(self, sizes, rank):
        """Sizes of a rank with as many elements."""
        count = int(np.prod(sizes))
        if rank == 0:
            if count != 1:
                raise Refused("no scalar")
            return []
        made = []
        for _ in range(rank - 1):
            divisors = [d for d in range(1, count + 1) if count % d == 0] if count else [1, 2]
            made.append(self.rng.choice(divisors))
            count //= made[-1] or 1
        made.append(count)
        self.rng.shuffle(made)
        return made

    def float(self, **wanted):
        return self.any(values.FLOATS, **wanted)

    def full(self, **wanted):
        """Of a dtype that linear algebra takes."""
        return self.any(["float32", "float64"], **wanted)

    def number(self, **wanted):
        return self.any(values.FLOATS + values.INTEGERS, **wanted)

    def integer(self, **wanted):
        return self.any(values.INTEGERS, **wanted)

    def boolean(self, **wanted):
        return self.any(["bool"], **wanted)

    def like(self, name, shape=None):
        """Another value of the same dtype, of a shape that broadcasts with it, or of a given one."""
        dtype, sizes = self.known[name]
        if shape is not None:
            found = [n for n in self.visible if self.known[n] == (dtype, list(shape))]
        else:
            found = [n for n in self.visible if self.dtype(n) == dtype and _broadcasts(sizes, self.sizes(n))]
        if found and self.rng.random() < 0.7:
            return self.rng.choice(found)
        if shape is None:
            shape = [n if self.rng.random() < 0.7 else 1 for n in sizes[self.rng.randint(0, len(sizes)):]]
        return self.argument(dtype, shape)

    def indices(self, limit, shape):
        """An argument of indices below a limit."""
        if limit == 0:
            raise Refused("nothing to index")
        array = [self.rng.randrange(limit) for _ in range(int(np.prod(shape)))]
        dtype = self.rng.choice(["int32", "int64"])
        return self.argument(dtype, shape, np.array(array, dtype).reshape(shape))

    # -- attributes -----------------------------------------------------------------------------------------------

    def flip(self):
        return self.rng.random() < 0.5

    def axis(self, name):
        """One axis, counted from the front or from the back."""
        rank = self.rank(name)
        return self.rng.randrange(rank) - (rank if self.flip() else 0)

    def axes(self, name):
        """``None``, one axis or some."""
        rank = self.rank(name)
        if rank == 0 or self.rng.random() < 0.25:
            return None
        if self.flip():
            return self.axis(name)
        return [i - self.rng.choice([0, rank]) for i in self.rng.sample(range(rank), self.rng.randint(0, rank))]

    # -- programs -------------------------------------------------------------------------------------------------

    def step(self):
        """One op of any kind. One that is refused leaves nothing behind but what was made for it."""
        table = self.rng.choices([t for t, _ in self.tables], [w for _, w in self.tables])[0]
        try:
            made = self.rng.choice(table)(self)
            return self.put(*made) if isinstance(made, tuple) else made
        except Refused:
            return None

    def body(self, parameters, steps, finish, loop=None):
        """A function whose parameters are such values (tensors), of some ops; ``finish`` picks its results by name."""
        name, named = f"f{self.count + 1}", []
        kept = self.nodes, self.visible
        self.nodes, self.visible = [], list(self.visible) if self.flip() else []
        self.depth += 1
        try:
            for value in parameters:
                named.append(self.fresh())
                self.scope[named[-1]] = value
                self.known[named[-1]] = (value.dtype.name, [int(n) for n in value.shape])
                self.visible.append(named[-1])
            for _ in range(steps):
                self.step()
            results = finish(self, named)
            return Body(name, named, self.nodes, results, loop)
        finally:
            self.nodes, self.visible = kept
            # An argument that was made inside belongs to the program; the body captures it.
            self.depth -= 1

    def dtype_of(self, body):
        """The dtype of a body's first result."""
        return self.dtype(body.results[0])

    def program(self, steps):
        for _ in range(self.rng.randint(1, 3)):
            self.argument(self.rng.choice(self.favourites), self.shape())
        for _ in range(steps):
            self.step()
        made = [node.name for node in self.nodes]
        if not made:
            return None
        used = {name for node in self.nodes for name in node.uses()}
        ends = [name for name in made if name not in used]
        results = ends if self.flip() else self.rng.sample(ends, min(len(ends), self.rng.randint(1, 3)))
        return Program(self.arguments, self.nodes, results).pruned()


def _broadcasts(a, b):
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1]))


def program(seed, steps=None):
    """The program of a seed, or ``None`` where nothing came of it, and what was refused on the way."""
    from . import flow, nn, ops

    drawing = Drawing(seed, [(ops.TABLE, 10), (nn.TABLE, 3), (flow.TABLE, 2)])
    return drawing.program(steps or drawing.rng.randint(2, 14)), drawing.refusals
