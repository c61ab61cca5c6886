"""``tf.memory``: what Tonnage has that others have not. What a function will take before it runs, budgets that hold,
and who holds what, since which line."""

import contextlib

from . import _tonnage as _t
from ._function import Function
from ._function import function as _function

Plan = _t.Plan


def _as_function(f):
    return f if isinstance(f, _t.Function) else _function(f)


def plan(f, *specs, **kwargs):
    """What a call of a function with such arguments would take: order, addresses, peak. Runs nothing.

    >>> tf.memory.plan(f, tf.TensorSpec([1024, 784])).peak
    """
    return _as_function(f).plan(*specs, **kwargs)


def explain(f, *specs, **kwargs):
    """The same as a table, in words."""
    return str(plan(f, *specs, **kwargs))


def report(path, f, *specs, **kwargs):
    """Writes the plan of a call to a file, as text."""
    text = explain(f, *specs, **kwargs)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    return path


def budget(f, bytes, spill=True, exact=False):
    """A function whose calls hold at most that many bytes, or are refused before they start."""
    inner = f.python_function if isinstance(f, Function) else f
    return _function(inner, budget=bytes, spill=spill, exact=exact)


def max_batch(f, budget, *specs):
    """The largest size of the one open dim of the specs that fits the budget."""
    return _as_function(f).max_batch(budget, tuple(specs))


class Info(dict):
    """What a device holds: ``current``, ``peak``, ``cached``, ``limit`` and ``holders``."""

    def __str__(self):
        return self["text"]


def info(device="CPU:0"):
    """What a device holds, by whom, since which line."""
    from .config import _device

    return Info(_t.memory_info(_device(device)))


def set_limit(bytes, device="CPU:0"):
    """The most that a device may hold from here on; ``None`` is what the machine has."""
    from .config import _device

    _t.set_limit(_device(device), bytes)


@contextlib.contextmanager
def limit(bytes, device="CPU:0"):
    """The most that a device may hold inside of ``with``."""
    from .config import _device

    before = _t.memory_info(_device(device))["limit"]
    set_limit(bytes, device)
    try:
        yield
    finally:
        set_limit(before, device)


def trace(f, *args, **kwargs):
    """Runs a callable and says what each op did to memory: ``(result, events)``, an event being op, line, action and
    bytes."""
    return _t.record_memory(lambda: f(*args, **kwargs))


class NotSteady(AssertionError):
    """Memory that grows from round to round."""


def steady(f, rounds=5, warmup=2):
    """Runs a callable again and again; raises, with the holders that grew, where memory grows from round to round."""
    for _ in range(warmup):
        f()
    before = info()
    for _ in range(rounds):
        f()
    after = info()
    if after["current"] <= before["current"]:
        return
    had = {(h["kind"], h["source"]): h["bytes"] for h in before["holders"]}
    grew = [f"{h['kind']} {h['what']} at {h['source']}: {had.get((h['kind'], h['source']), 0)} to {h['bytes']} bytes"
            for h in after["holders"] if h["bytes"] > had.get((h["kind"], h["source"]), 0)]
    raise NotSteady(f"memory grew from {before['current']} to {after['current']} bytes in {rounds} rounds; "
                    + "; ".join(grew))


def resident():
    """What the system says that this process holds, in bytes."""
    return _t.resident()


def set_spill_folder(path):
    """Where values that wait in a file wait."""
    _t.set_spill_folder(str(path))


def _html(plan):
    """A plan as a picture: what is live at each step."""
    steps = plan.steps()
    most = max([plan.peak, 1])
    width = max(2, min(12, 900 // max(1, len(steps))))
    bars = []
    for i, step in enumerate(steps):
        height = 160 * step["live"] / most
        title = f"{step['op']} {step['source'] or ''}: {step['live']:,} bytes live"
        bars.append(f'<rect x="{i * width}" y="{160 - height:.1f}" width="{width - 1}" height="{height:.1f}" '
                    f'fill="#4878a8"><title>{_escape(title)}</title></rect>')
    rows = "".join(f"<tr><td>{_escape(h['kind'])}</td><td>{_escape(h['what'])}</td><td>{h['bytes']:,}</td>"
                   f"<td>{_escape(h['source'])}</td></tr>" for h in plan.live_at_peak()[:8])
    return (f"<b>peak {plan.peak:,} bytes</b><br><svg width='{len(steps) * width}' height='160'>{''.join(bars)}</svg>"
            f"<table><tr><th>kind</th><th>what</th><th>bytes</th><th>line</th></tr>{rows}</table>")


def _escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


Plan._repr_html_ = _html


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
