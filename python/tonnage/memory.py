"""``tf.memory``: what Tonnage has that others have not. What a function will take before it runs, budgets that hold,
and who holds what, since which line."""

import contextlib as _contextlib
from html import escape as _escape
import os as _os
import sys as _sys
import tempfile as _tempfile
from typing import NamedTuple as _NamedTuple

from . import _tonnage as _t
from ._function import Function as _Function, unbound as _unbound
from ._function import function as _function

Plan = _t.Plan


class ShardedPlan(_NamedTuple):
    """What a step takes of a rank where ranks hold blocks of it."""

    sharding: str
    """What they hold in blocks: ``"replicas"`` (nothing), ``"state"``, ``"gradients"`` too, ``"weights"`` too."""
    peak: int
    """Bytes that it takes at most."""
    sent: int
    """Bytes that a rank sends to others in a step."""
    seconds: float
    """How long it is expected to take, by the figures of this machine: see :func:`tf.config.calibrate`."""
    plan: Plan
    """All of it: order, addresses, who holds what."""


def _as_function(f):
    f = _unbound(f)
    return f if isinstance(f, _t.Function) else _function(f)


def _step(f, specs):
    """What is planned, and its arguments: a function's own, or those of the step of a model of Keras."""
    if "keras" in _sys.modules:
        from ._as_tensorflow.models import is_model, step_of

        if is_model(f):
            step, batch = step_of(f, *specs)
            return step, (batch,)
    return _as_function(f), specs


def _step_around(f, specs, around):
    """The same, of what ``around`` makes of the callable."""
    step, given = _step(f, specs)
    return _function(around(step.python_function)), given


def plan(f, *specs, **kwargs):
    """What a call of a function with such arguments would take: order, addresses, peak. Runs nothing.

    Of a model of Keras it is a step of training, or where it is not compiled of prediction, on a batch: ``(x, y)`` of arrays or
    ``tf.TensorSpec``, or a number of rows.

    >>> tf.memory.plan(lambda x: tf.tanh(x), tf.TensorSpec([1 << 20])).peak   # the argument and the result
    8388608
    """
    f, specs = _step(f, specs)
    return f.plan(*specs, **kwargs)


def plan_ranks(step, *specs, ranks):
    """What a step of training would take of each of so many ranks, which need not be there: a plan for every way to share it, from ``"replicas"`` on, with
    memory, traffic and time. ``step`` is what ``strategy.run`` calls, with arguments or their types. Runs nothing.

    >>> weight, adam = tf.Variable(tf.zeros([1000])), tf.keras.optimizers.Adam()
    >>> def step(x):
    ...     with tf.GradientTape() as tape:
    ...         loss = tf.reduce_mean(x * weight)
    ...     adam.apply_gradients([(tape.gradient(loss, weight), weight)])
    >>> [plan.sharding for plan in tf.memory.plan_ranks(step, tf.TensorSpec([8, 1000]), ranks=100)]
    ['replicas', 'state', 'gradients', 'weights']
    """
    from ._sharding import plans

    if not isinstance(ranks, int) or ranks < 1:
        raise ValueError(f"tf.memory.plan_ranks: {ranks!r} ranks, where at least 1 is needed")
    return plans(step, specs, _t.World.on_paper(ranks))[0]


def explain(f, *specs, **kwargs):
    """The same as a table, in words.

    >>> "tanh" in tf.memory.explain(lambda x: tf.tanh(x), tf.TensorSpec([256]))
    True
    """
    return str(plan(f, *specs, **kwargs))


def summary(model, batch=None):
    """A model of Keras as a table: its layers with the bytes of their weights; the state of the optimizer; and, of a batch as :func:`plan` takes it, the
    peak of a step, with what of it each layer holds.

    >>> print(tf.memory.summary(model, 32))   # doctest: +SKIP
    """
    from ._as_tensorflow.models import summary

    return summary(model, batch)


def report(path=None, f=None, *specs, **kwargs):
    """A report: the plan of a call of ``f`` with such arguments, or, without one, what is held now. A notebook shows it, and
    ``path`` is a file that it is written to.

    The name says the format: ``.html`` is a page with a picture of every address at every step, ``.trace.json`` is for Perfetto,
    ``.pb.gz`` for pprof; ``.csv``, ``.json`` and ``.txt`` are what they are.

    >>> tf.memory.report("step.html", lambda x: tf.tanh(x @ x), tf.TensorSpec([64, 64]))   # doctest: +SKIP
    """
    if f is not None:
        planned = plan(f, *specs, **kwargs)
        made = Report(planned, str(planned).rstrip("\n"), path)
    else:
        made = Report(_t.start_recording("cpu:0").finish(), str(info()), path)  # a recording begins with all that is there
    if path is not None:
        made.save(path)
    return made


class Report:
    """What :func:`report` gives: text in a terminal, a page in a notebook, the path of its file where there is one."""

    def __init__(self, picture, text, path):
        self._picture, self._text, self._path = picture, text, path

    def save(self, path):
        """Writes it in the format that the file's name says."""
        if str(path).lower().endswith(".txt"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(self._text + "\n")
        else:
            self._picture.save(str(path))

    def __fspath__(self):
        if self._path is None:
            raise TypeError("the report was not written to a file: give report() a path")
        return _os.fspath(self._path)

    def __str__(self):
        return self._text

    __repr__ = __str__

    def _repr_html_(self):
        with _tempfile.TemporaryDirectory() as folder:
            path = _os.path.join(folder, "report.html")
            self.save(path)
            with open(path, encoding="utf-8") as file:
                page = file.read()
        # In a frame: a page has styles and scripts of its own.
        return f'<iframe srcdoc="{_escape(page)}" style="width: 100%; height: 640px; border: 0"></iframe>'


@_contextlib.contextmanager
def record(path=None):
    """Records what is held, by line, inside of ``with``, and writes it to a file in the format that its name says. Gives a list
    that has the timeline afterwards.

    >>> with tf.memory.record() as recorded:
    ...     y = tf.constant([1.0, 2.0]) + 1.0
    >>> recorded[0].peak > 0
    True
    """
    recording, made = _t.start_recording("cpu:0"), []
    try:
        yield made
    finally:
        timeline = recording.finish()
        made.append(timeline)
        if path is not None:
            timeline.save(str(path))


def budget(f, bytes, spill=True, exact=False):
    """A function whose calls hold at most that many bytes, or are refused before they start. ``"least"`` takes as little as it can.

    >>> f = tf.memory.budget(lambda x: tf.tanh(x), "1MiB")
    >>> f(tf.ones([4])).shape
    TensorShape([4])
    """
    f = _unbound(f)
    inner = f.python_function if isinstance(f, _Function) else f
    return _function(inner, budget=bytes, spill=spill, exact=exact)


def max_batch(f, budget, *specs):
    """The largest size of the one open dim of the specs that fits the budget; of a model of Keras the largest batch.

    >>> step = tf.function(lambda x: tf.reduce_sum(tf.tanh(x @ tf.ones([64, 64]))))
    >>> tf.memory.max_batch(step, "1MiB", tf.TensorSpec([None, 64])) > 100
    True
    """
    f, specs = _step(f, specs)
    return f.max_batch(budget, tuple(specs))


@_contextlib.contextmanager
def budgeted(bytes):
    """Gives every function that is called within a budget: it holds at most that many bytes, or is refused before it starts, with the least
    that would do. With ``"least"`` each takes as little as it can. A function with a budget of its own has the lesser. ``fit`` of Keras
    calls functions too.

    >>> f = tf.function(lambda x: tf.tanh(x))
    >>> with tf.memory.budgeted("1MiB"):
    ...     f(tf.ones([4])).shape
    TensorShape([4])
    """
    before = _t.enter_budget(bytes)
    try:
        yield
    finally:
        _t.leave_budget(before)


def progress():
    """A callback for ``fit`` of Keras: the progress bar shows the bytes that are held, the most that were, and the peak that was
    predicted for a step."""
    from ._as_tensorflow.models import progress

    return progress()


class Info(dict):
    """What a device holds: ``current``, ``peak``, ``cached``, ``reserved`` (both together), ``overhead`` (of a GPU: what its driver takes besides), ``limit`` and ``holders``. It is shown as a table."""

    def __init__(self, figures):
        super().__init__(figures)

    def __str__(self):
        return self["text"].rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self):
        head, *_ = self["text"].splitlines()
        return f"<b>{_escape(head)}</b>" + _table(self["holders"])


def info(device="CPU:0"):
    """What a device holds, by whom, since which line.

    >>> sorted(k for k in tf.memory.info() if k in ("current", "peak"))
    ['current', 'peak']
    """
    from .config import _device

    return Info(_t.memory_info(_device(device)))


def set_limit(bytes, device="CPU:0"):
    """The most that a device may hold from here on; ``None`` is what the machine has."""
    from .config import _device

    _t.set_limit(_device(device), bytes)


def reset_peak(device="CPU:0"):
    """Lets the peak of a device start again from what it holds now.

    >>> tf.memory.reset_peak()
    >>> tf.memory.info()["peak"] == tf.memory.info()["current"]
    True
    """
    from .config import _device

    _t.reset_peak(_device(device))


def empty_cache(device="CPU:0"):
    """Gives back what a device keeps warm for the next call; returns how many bytes that were.

    >>> x = tf.random.normal([512, 512]) + 1.0
    >>> del x
    >>> freed = tf.memory.empty_cache()
    >>> tf.memory.info()["cached"]
    0
    """
    from .config import _device

    return _t.empty_cache(_device(device))


@_contextlib.contextmanager
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
    bytes.

    >>> made, events = tf.memory.trace(lambda: tf.constant([1.0, 2.0]) + 1.0)
    >>> "add" in [op for op, line, action, size in events if action == "allocated"]
    True
    """
    return _t.record_memory(lambda: f(*args, **kwargs))


class NotSteady(AssertionError):
    """Memory that grows from round to round."""

    def __init__(self, message):
        super().__init__(message)


def steady(f, iterations=5, warmup=2):
    """Runs a callable again and again; raises, with the holders that grew, where memory grows from iteration to iteration.

    >>> tf.memory.steady(lambda: tf.ones([1000]) * 2.0)
    """
    for _ in range(warmup):
        f()
    before = info()
    for _ in range(iterations):
        f()
    after = info()
    if after["current"] <= before["current"]:
        return
    had = {(h["kind"], h["source"]): h["bytes"] for h in before["holders"]}
    grew = [f"{h['kind']} {h['what']} at {h['source']}: {had.get((h['kind'], h['source']), 0)} to {h['bytes']} bytes"
            for h in after["holders"] if h["bytes"] > had.get((h["kind"], h["source"]), 0)]
    raise NotSteady(f"memory grew from {before['current']} to {after['current']} bytes in {iterations} iterations; "
                    + "; ".join(grew))


def resident():
    """What the system says that this process holds, in bytes."""
    return _t.resident()


def set_spill_folder(path):
    """Where values that wait in a file wait."""
    _t.set_spill_folder(str(path))


@_contextlib.contextmanager
def variables_in_files():
    """Keeps the values of variables that are made within in files of the spill folder, and what optimizers remember of them:
    a model may be larger than memory, also while it is trained. Those of less than 512 KiB stay in memory.

    A plan says what it reads and writes (``plan.reads``, ``plan.writes``). That takes longer than in memory, and the file is about twice as
    large as the variables that are written. It is gone with the process: save what is to stay.

    >>> with tf.memory.variables_in_files():
    ...     w = tf.Variable(tf.random.normal([512, 512]))
    >>> w.in_files
    True
    >>> w.assign_add(tf.ones([512, 512])).shape
    TensorShape([512, 512])
    """
    before = _t.keep_in_files(True)
    try:
        yield
    finally:
        _t.keep_in_files(before)


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
    return (f"<b>peak {plan.peak:,} bytes</b><br><svg width='{len(steps) * width}' height='160'>{''.join(bars)}</svg>"
            + _table(plan.live_at_peak()[:8]))


def _table(holders):
    rows = "".join(f"<tr><td>{_escape(h['kind'])}</td><td>{_escape(h['what'])}</td><td>{h['bytes']:,}</td>"
                   f"<td>{_escape(h['source'])}</td></tr>" for h in holders)
    return f"<table><tr><th>kind</th><th>what</th><th>bytes</th><th>line</th></tr>{rows}</table>"


Plan._repr_html_ = _html


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
