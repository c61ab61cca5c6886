"""A program as data: arguments, assignments and results. It is kept as Python text, so that what fails can be printed as
it ran."""

import itertools
import linecache
import re

import numpy as np

from . import values

_NAME = re.compile(r"\b(v\d+)\b")
_serial = itertools.count()


class Node:
    """One assignment, ``name = text``, with the functions that its text calls: ``bodies`` are ``(name, parameters,
    nodes, results, frame)``, and a frame is the text around the nodes of a loop that AutoGraph converts."""

    def __init__(self, name, op, text, bodies=()):
        self.name, self.op, self.text, self.bodies = name, op, text, list(bodies)

    def uses(self):
        """The names that it reads, bodies included, without those that bodies define."""
        found = set(_NAME.findall(self.text))
        for body in self.bodies:
            found |= body.uses()
        return found

    def lines(self):
        return [line for body in self.bodies for line in body.lines()] + [f"{self.name} = {self.text}"]


class Body:
    """A function that a node's text names. ``loop`` is the header of a loop around its nodes; its results are then
    assigned to its parameters after each iteration."""

    def __init__(self, name, parameters, nodes, results, loop=None):
        self.name, self.parameters, self.nodes, self.results, self.loop = name, parameters, nodes, results, loop

    def uses(self):
        inner = set(_NAME.findall(self.loop or "")) | set(_NAME.findall(", ".join(self.results)))
        for node in self.nodes:
            inner |= node.uses()
        return inner - set(self.parameters) - {node.name for node in self.nodes}

    def lines(self):
        inner = [line for node in self.nodes for line in node.lines()]
        if self.loop:
            targets = ", ".join(self.parameters)
            inner = [self.loop, *_indent([*inner, f"{targets} = {', '.join(self.results)}"]), f"return {targets}"]
        else:
            inner.append(f"return {', '.join(self.results)}")
        return [f"def {self.name}({', '.join(self.parameters)}):", *_indent(inner)]


def _indent(lines):
    return ["    " + line for line in lines]


class Program:
    """Arguments by name (an array and a dtype's name each), nodes in order, names of results."""

    def __init__(self, arguments, nodes, results):
        self.arguments, self.nodes, self.results = dict(arguments), list(nodes), list(results)

    def pruned(self):
        """Without what no result needs."""
        needed, kept = set(self.results), []
        for node in reversed(self.nodes):
            if node.name in needed:
                needed |= node.uses()
                kept.append(node)
        arguments = {name: a for name, a in self.arguments.items() if name in needed}
        return Program(arguments, kept[::-1], self.results)

    def ops(self):
        """The names of its ops, those of bodies included."""
        def of(nodes):
            return [op for node in nodes for op in (node.op, *of([n for b in node.bodies for n in b.nodes]))]

        return of(self.nodes)

    def source(self):
        """The function ``program`` as text."""
        lines = [line for node in self.nodes for line in node.lines()]
        returned = "".join(name + ", " for name in self.results)
        return "\n".join([f"def program({', '.join(self.arguments)}):", *_indent([*lines, f"return ({returned})"]), ""])

    def compiled(self, tf):
        """The function ``program`` over a namespace. AutoGraph finds its source as that of any function."""
        name = f"fuzz_program_{next(_serial)}.py"
        source = self.source()
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        scope = {"tf": tf, "np": np}
        exec(compile(source, name, "exec"), scope)
        return scope["program"]

    def tensors(self, tf):
        """The arguments as tensors of a namespace."""
        return [values.tensor(tf, array, dtype) for array, dtype in self.arguments.values()]

    def script(self, note=""):
        """A complete program, to be run by hand."""
        lines = [f"# {line}" for line in note.splitlines()]
        lines += ["import numpy as np", "import tonnage as tf", "", "", self.source(), ""]
        for name, (array, dtype) in self.arguments.items():
            lines.append(f"{name} = tf.cast({values.literal(array)}, {dtype!r})")
        given = ", ".join(self.arguments)
        lines += [f"print(program({given}))", f"print(tf.function(program)({given}))"]
        return "\n".join(lines)


def forget_sources():
    """Drops the texts of programs that ran."""
    for name in [n for n in linecache.cache if n.startswith("fuzz_program_")]:
        del linecache.cache[name]
