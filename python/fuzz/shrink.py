"""Makes a program that fails smaller: fewer results, fewer ops, values in place of what computes them."""

import numpy as np
import tonnage as tf

from . import values
from .check import is_panic
from .program import Body, Node, Program


def _evaluated(program):
    scope = {"tf": tf, "np": np}
    for name, (array, dtype) in program.arguments.items():
        scope[name] = values.tensor(tf, array, dtype)
    for node in program.nodes:
        exec("\n".join(node.lines()), scope)
    return scope


def _as_argument(program, at, scope):
    """The program whose node there is an argument instead, with the node's value."""
    node, made = program.nodes[at], scope[program.nodes[at].name]
    arguments = {**program.arguments, node.name: (values.array(tf, made), made.dtype.name)}
    return Program(arguments, program.nodes[:at] + program.nodes[at + 1:], program.results).pruned()


def _shorter_bodies(node):
    """The node with one op less in a body: what used it uses a parameter or an earlier value instead."""
    for b, body in enumerate(node.bodies):
        for n in range(len(body.nodes)):
            gone = body.nodes[n].name
            for other in [*body.parameters, *(earlier.name for earlier in body.nodes[:n])]:
                kept = [_renamed(inner, gone, other) for i, inner in enumerate(body.nodes) if i != n]
                results = [other if name == gone else name for name in body.results]
                bodies = list(node.bodies)
                bodies[b] = Body(body.name, body.parameters, kept, results, body.loop)
                yield Node(node.name, node.op, node.text, bodies)


def _renamed(node, old, new):
    import re

    def swap(text):
        return re.sub(rf"\b{old}\b", new, text)

    bodies = [Body(b.name, b.parameters, [_renamed(n, old, new) for n in b.nodes], [swap(r) for r in b.results],
                   b.loop and swap(b.loop)) for b in node.bodies]
    return Node(node.name, node.op, swap(node.text), bodies)


def _candidates(program):
    for name in program.results:
        if len(program.results) > 1:
            yield Program(program.arguments, program.nodes, [name]).pruned()
    # An earlier value as the result, in place of the last one.
    for node in reversed(program.nodes):
        if [node.name] != program.results:
            yield Program(program.arguments, program.nodes, [node.name]).pruned()
    try:
        scope = _evaluated(program)
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        scope = None
    for at in range(len(program.nodes)):
        if scope is not None and program.nodes[at].name not in program.results:
            yield _as_argument(program, at, scope)
    for at, node in enumerate(program.nodes):
        for shorter in _shorter_bodies(node):
            nodes = program.nodes[:at] + [shorter] + program.nodes[at + 1:]
            yield Program(program.arguments, nodes, program.results).pruned()


def shrunk(program, fails, most=300):
    """The smallest program found that ``fails`` still says true of."""
    tried = 0
    progress = True
    while progress and tried < most:
        progress = False
        for candidate in _candidates(program):
            tried += 1
            if candidate.nodes and len(candidate.source()) < len(program.source()) and fails(candidate):
                program, progress = candidate, True
                break
            if tried >= most:
                break
    return program
