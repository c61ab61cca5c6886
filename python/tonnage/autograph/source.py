"""The syntax tree of a function, out of the source that it was compiled from.

Lines come from ``linecache``, which knows files, and what notebooks and doctests put there under names of their own.
"""

import ast
import copy
import functools
import inspect
import linecache
import os
import textwrap


class NoSourceError(Exception):
    """The source of a function is not known; the text says why."""


def node_of(function):
    """The function as a ``FunctionDef`` with the lines of its file, a new one at each call. A lambda is one that returns."""
    code = function.__code__
    lines = _lines(function)
    try:
        if function.__name__ == "<lambda>":
            return _lambda("".join(lines), code)
        block = inspect.getblock(lines[code.co_firstlineno - 1:])
        tree = ast.parse(textwrap.dedent("".join(block)))
    except (SyntaxError, IndexError) as error:
        raise NoSourceError(f"its source in {code.co_filename} could not be read: {error}") from error
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function.__name__]
    if not found:
        raise NoSourceError(f"{code.co_filename}:{code.co_firstlineno} is not where it is defined")
    ast.increment_lineno(found[0], code.co_firstlineno - 1)
    return found[0]


def _lines(function):
    name = function.__code__.co_filename
    if os.path.exists(name):
        linecache.checkcache(name)  # of a file that changed, the lines are read again; of no file, they would be forgotten
    lines = linecache.getlines(name, function.__globals__)
    if len(lines) < function.__code__.co_firstlineno:
        raise NoSourceError(f"its source is not known (it was defined in {name})")
    return lines


@functools.lru_cache(maxsize=4)
def _tree(text):
    return ast.parse(text)


def _lambda(text, code):
    """The innermost lambda whose body has all positions of the code: there may be several in a line."""
    positions = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0)]
    best = None
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Lambda) and all(_spans(node.body, *position) for position in positions):
            best = node  # ``ast.walk`` comes to inner nodes later
    if best is None or not positions:
        raise NoSourceError(f"{code.co_filename}:{code.co_firstlineno} is not where it is defined")
    # A copy: the tree is shared, and rewriting changes nodes.
    best = copy.deepcopy(best)
    made = ast.FunctionDef(name="__tonnage_lambda", args=best.args, body=[ast.Return(best.body)], decorator_list=[],
                           returns=None, type_params=[])
    return ast.fix_missing_locations(ast.copy_location(made, best))


def _spans(node, line, end_line, column, end_column):
    return (node.lineno, node.col_offset) <= (line, column) and (end_line, end_column) <= (node.end_lineno, node.end_col_offset)
