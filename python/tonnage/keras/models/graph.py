"""The graph of a functional model: calls of layers in an order in which each finds its inputs."""

from ... import _nest
from ..layers.symbolic import KerasTensor, _map


class Graph:
    """From symbolic inputs to symbolic results."""

    def __init__(self, inputs, outputs, name):
        for what, value in (("inputs", inputs), ("outputs", outputs)):
            for tensor in _nest.flatten(value):
                if not isinstance(tensor, KerasTensor):
                    raise ValueError(f"All `{what}` values must be KerasTensors. Received: {what}={value!r:.100} including "
                                     f"invalid value {tensor!r:.60} of type {type(tensor)}")
        self.inputs, self.outputs = inputs, outputs
        self.flat_inputs = _nest.flatten(inputs)
        self.nodes = self._ordered(name)

    def _ordered(self, name):
        given = {id(t) for t in self.flat_inputs}
        order, done = [], set()
        # A stack rather than recursion: models are deeper than Python's.
        stack = [(t, False) for t in reversed(_nest.flatten(self.outputs))]
        while stack:
            tensor, ready = stack.pop()
            node = tensor.node
            if id(tensor) in given or node is None or id(node) in done:
                if node is None and id(tensor) not in given:
                    raise ValueError(f"`inputs` not connected to `outputs`: {tensor!r} of model {name!r} comes from nowhere")
                continue
            if not node.inputs:
                raise ValueError(f"`inputs` not connected to `outputs`: model {name!r} needs the input {node.layer.name!r}")
            if ready:
                done.add(id(node))
                order.append(node)
                continue
            stack.append((tensor, True))
            stack.extend((t, False) for t in reversed(node.inputs))
        return order

    @property
    def layers(self):
        """The layers in order: inputs first, each once."""
        found = []
        for tensor in self.flat_inputs:
            if tensor.node is not None and tensor.node.layer not in found:
                found.append(tensor.node.layer)
        for node in self.nodes:
            if not any(node.layer is layer for layer in found):
                found.append(node.layer)
        return found

    def feed(self, inputs, name):
        """The tensors for the symbolic inputs: by place, or by the names of a dictionary."""
        if isinstance(inputs, dict) and not isinstance(self.inputs, dict):
            names = [t.node.layer.name if t.node is not None else t.name for t in self.flat_inputs]
            missing = [n for n in names if n not in inputs]
            if missing:
                raise ValueError(f"Missing data for input {missing[0]!r} of model {name!r}. You passed a data dictionary with "
                                 f"keys {list(inputs)}. Expected the following keys: {names}")
            return [inputs[n] for n in names]
        flat = _nest.flatten(inputs)
        if len(flat) != len(self.flat_inputs):
            raise ValueError(f"Model {name!r} expects {len(self.flat_inputs)} input(s), but it received {len(flat)} input "
                             f"tensors. Inputs received: {[tuple(t.shape) for t in flat]}")
        return flat

    def run(self, inputs, name, training):
        """What the layers make of inputs."""
        values = {}
        for symbol, value in zip(self.flat_inputs, self.feed(inputs, name)):
            values[id(symbol)] = self._checked(symbol, value, name)
        for node in self.nodes:
            fill = lambda v: values[id(v)] if isinstance(v, KerasTensor) else v  # noqa: E731
            kwargs = {k: _map(fill, v) for k, v in node.kwargs.items()}
            made = node.layer(*(_map(fill, a) for a in node.args), **kwargs)
            for symbol, value in zip(_nest.flatten(node.outputs), _nest.flatten(made)):
                values[id(symbol)] = value
        return _map(lambda t: values[id(t)], self.outputs)

    @staticmethod
    def _checked(symbol, value, name):
        from ... import _tonnage as _t

        shape = tuple(value.shape)
        if len(shape) == len(symbol.shape) - 1 and symbol.shape[-1] == 1:
            value = _t.expand_dims(value, -1)
            shape = tuple(value.shape)
        # A batch may be shorter than the model says: the last one of an epoch often is.
        if len(shape) != len(symbol.shape) or any(a is not None and b is not None and a != b
                                                  for a, b in zip(symbol.shape[1:], shape[1:])):
            layer = symbol.node.layer.name if symbol.node is not None else symbol.name
            raise ValueError(f'Input of model "{name}" is incompatible with the model: input {layer!r} expects the shape '
                             f"{symbol.shape}, found shape={shape}")
        return value if value.dtype == symbol.dtype else _t.cast(value, symbol.dtype)

    # As data.

    def config(self):
        """The layers and which calls feed which, as plain data."""
        from ..saving import serialize_keras_object

        places, made = {}, []
        for layer in self.layers:
            nodes = [n for n in self.nodes if n.layer is layer]
            for i, node in enumerate(nodes):
                for tensor in _nest.flatten(node.outputs):
                    places[id(tensor)] = (layer.name, i, tensor.place)
        for tensor in self.flat_inputs:
            places.setdefault(id(tensor), (tensor.node.layer.name, 0, 0))

        def place(value):
            if isinstance(value, KerasTensor):
                return {"class_name": "__keras_tensor__", "config": {"history": list(places[id(value)])}}
            if isinstance(value, dict):
                return {k: place(v) for k, v in value.items()}
            if isinstance(value, tuple):
                return {"class_name": "__tuple__", "items": [place(v) for v in value]}
            if isinstance(value, list):
                return [place(v) for v in value]
            return serialize_keras_object(value)

        for layer in self.layers:
            config = serialize_keras_object(layer)
            calls = [{"args": [place(a) for a in n.args], "kwargs": {k: place(v) for k, v in n.kwargs.items()}}
                     for n in self.nodes if n.layer is layer]
            made.append({**config, "name": layer.name, "inbound_nodes": calls})
        point = lambda v: _map(lambda t: list(places[id(t)]), v)  # noqa: E731
        return {"layers": made, "input_layers": serialize_keras_object(point(self.inputs)),
                "output_layers": serialize_keras_object(point(self.outputs))}


def from_config(config, make=None):
    """Symbolic inputs and results, from what :meth:`Graph.config` gave. ``make`` gives the layer of an entry, if not by what that
    says of its class."""
    from ..saving import deserialize_keras_object

    if make is None:
        make = lambda entry: deserialize_keras_object(  # noqa: E731
            {k: v for k, v in entry.items() if k not in ("name", "inbound_nodes")})
    layers, tensors, waiting = {}, {}, []
    for entry in config["layers"]:
        layer = layers[entry["name"]] = make(entry)
        if not entry["inbound_nodes"]:
            tensors[entry["name"], 0, 0] = layer.output
        waiting.extend((entry["name"], i, call) for i, call in enumerate(entry["inbound_nodes"]))

    def ready(value):
        if isinstance(value, dict):
            if value.get("class_name") == "__keras_tensor__":
                return tuple(value["config"]["history"]) in tensors
            return all(ready(v) for v in value.values())
        return not isinstance(value, list) or all(ready(v) for v in value)

    def filled(value):
        if isinstance(value, dict):
            if value.get("class_name") == "__keras_tensor__":
                return tensors[tuple(value["config"]["history"])]
            if value.get("class_name") == "__tuple__":
                return tuple(filled(v) for v in value["items"])
            if "class_name" in value:
                return deserialize_keras_object(value)
            return {k: filled(v) for k, v in value.items()}
        return [filled(v) for v in value] if isinstance(value, list) else value

    while waiting:
        still = []
        for name, i, call in waiting:
            later = any(n == name and j < i for n, j, _ in still)
            if later or not ready(call):
                still.append((name, i, call))
                continue
            made = layers[name](*filled(call["args"]), **filled(call["kwargs"]))
            for place, tensor in enumerate(_nest.flatten(made)):
                tensors[name, i, place] = tensor
        if len(still) == len(waiting):
            raise ValueError(f"the configuration of the model is not whole: {[name for name, _, _ in still]} have inputs from "
                             "nowhere")
        waiting = still

    def point(value):
        if isinstance(value, dict) and value.get("class_name") == "__tuple__":
            return tuple(point(v) for v in value["items"])
        if isinstance(value, dict):
            return {k: point(v) for k, v in value.items()}
        if len(value) == 3 and isinstance(value[0], str):
            return tensors[tuple(value)]
        return [point(v) for v in value]

    return point(config["input_layers"]), point(config["output_layers"])
