"""A model as a table: layers, shapes, numbers, bytes; and what training takes besides the weights."""


from ..utils import bytes_text


def _size(variables):
    return sum(v.shape.num_elements() * v.dtype.size for v in variables)


def _count(variables):
    return sum(v.shape.num_elements() for v in variables)


def _shape(layer):
    try:
        shapes = layer.output_shape
    except AttributeError:
        return "?"
    return ", ".join(str(s) for s in (shapes if isinstance(shapes, list) else [shapes]))


def _rows(layers, depth, nested):
    for layer in layers:
        variables = layer.weights
        shape = str(layer.batch_shape) if hasattr(layer, "batch_shape") else _shape(layer)
        yield (f"{'  ' * depth}{layer.name} ({type(layer).__name__})", shape, f"{_count(variables):,}", bytes_text(_size(variables)),
               "Y" if layer.trainable else "N")
        if nested and hasattr(layer, "layers"):
            yield from _rows(layer.layers, depth + 1, nested)


def summary(model, print_fn=None, nested=False, trainable=False):
    """Prints it."""
    if not model.built:
        raise ValueError(f"This model has not yet been built. Build the model first by calling `build()` or by calling the model "
                         f"on a batch of data: {model.name!r}")
    start = getattr(model, "_start", None)
    layers = ([start] if start is not None else []) + model.layers
    table = [("Layer (type)", "Output Shape", "Param #", "Bytes", "Trains"), *_rows(layers, 0, nested)]
    table = [row[: 5 if trainable else 4] for row in table]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = [f'Model: "{model.name}"']
    for i, row in enumerate(table):
        lines.append("  ".join(cell.rjust(w) if 1 < j < 4 else cell.ljust(w)
                               for j, (cell, w) in enumerate(zip(row, widths))).rstrip())
        if i == 0:
            lines.append("  ".join("─" * w for w in widths))
    trained, rest = model.trainable_weights, model.non_trainable_weights
    for what, variables in (("Total", model.weights), ("Trainable", trained), ("Non-trainable", rest)):
        lines.append(f" {what} params: {_count(variables):,} ({bytes_text(_size(variables))})")
    if model.compiled and model.optimizer is not None:
        lines.append(f" Optimizer state: {bytes_text(model.optimizer.bytes(trained))}")
        if model.inputs:
            try:
                peak = model.plan(32).peak
            except (ValueError, TypeError):
                peak = None  # only the targets' shapes would tell
            if peak is not None:
                lines.append(f" A training step of 32 rows: {bytes_text(peak)}")
    text = "\n".join(lines)
    (print_fn or print)(text)
