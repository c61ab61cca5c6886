"""The graph of objects that a checkpoint holds: who holds whom under which name, down to the variables.

It is found by walking attributes, as ``tf.Module`` finds variables. In a file it is a list of nodes with their children's numbers, so that
an object which is held twice is saved once, and is found from either side.
"""

from .. import _tonnage as _t
from ..module import Module

_HIDDEN = ("_made_with", "_nodes", "_losses", "_build_shapes", "_graph", "_graph_layers", "_compiled", "_functions", "_tonnage_deferred",
           "_weights", "history", "_start", "_slots", "_built_for", "_inner", "_scale")


def is_holder(value):
    """Whether something can hold variables."""
    from .checkpoint import Checkpoint

    if isinstance(value, (_t.Variable, Module, Checkpoint, list, tuple, dict)):
        return True
    return hasattr(value, "variables") and hasattr(value, "get_config")  # optimizers and metrics


def children(value):
    """What an object holds, by name."""
    if isinstance(value, _t.Variable):
        return {}
    if isinstance(value, dict):
        return {str(k): v for k, v in value.items() if _some(v)}
    if isinstance(value, (list, tuple)):
        return {str(i): v for i, v in enumerate(value) if _some(v)}
    if not isinstance(value, Module) and hasattr(value, "get_config"):
        return _listed(value)
    hidden = (*_HIDDEN, *getattr(value, "_not_tracked", ()))
    found = {name: child for name, child in vars(value).items()
             if name not in hidden and not name.startswith("_tonnage_") and _some(child)}
    optimizer = vars(value).get("optimizer")
    if optimizer is not None and "optimizer" in hidden:
        found["optimizer"] = optimizer
    graph = vars(value).get("_graph")
    if graph is not None and "_layers" not in vars(value):
        found["_layers"] = [layer for layer in value.layers]
    for i, variable in enumerate(vars(value).get("_weights", ())):
        if not any(child is variable for child in found.values()):
            found[f"weight_{i}"] = variable
    return found


def _listed(value):
    """Optimizers and metrics: what they remember, in the order of its making."""
    return {f"state_{i}": variable for i, variable in enumerate(value.variables)}


def _some(value, depth=0):
    """Whether variables are, or may come to be, somewhere inside."""
    if not is_holder(value) or depth > 32:
        return False
    if isinstance(value, dict):
        return any(_some(v, depth + 1) for v in value.values())
    if isinstance(value, (list, tuple)):
        return any(_some(v, depth + 1) for v in value)
    return True


def graph_of(root):
    """All objects from a root on: a list of ``(object, {name: number})``, the root first."""
    nodes, numbers, queue = [], {}, [root]

    def number(value):
        key = ("variable", value.number) if isinstance(value, _t.Variable) else id(value)
        if key not in numbers:
            numbers[key] = len(numbers)
            queue.append(value)
        return numbers[key]

    queue.clear()
    number(root)
    while len(nodes) < len(queue):
        value = queue[len(nodes)]
        nodes.append((value, {name: number(child) for name, child in children(value).items()}))
    return nodes


def paths_of(nodes):
    """A name for each node: the shortest way to it from the root."""
    names = {0: ""}
    for i, (_, held) in enumerate(nodes):
        for name, number in held.items():
            names.setdefault(number, f"{names[i]}/{name}" if names[i] else name)
    return names
