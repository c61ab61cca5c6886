"""The progress bar: figures, and the memory of a step as it was planned and as it was measured."""

import sys
import time

from ..utils import bytes_text
from .base import Callback

_WIDTH = 20


def _figure(value):
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4f}" if abs(value) >= 1e-3 or value == 0 else f"{value:.4e}"


class ProgbarLogger(Callback):
    """Prints how far training is: a bar that grows (``verbose=1``), or a line for each epoch (``verbose=2``)."""

    def __init__(self, source=None, testing=False):
        super().__init__()
        self._source, self._testing = source, testing
        self._shown = self._start = 0.0
        self._seen = 0

    @property
    def _verbose(self):
        return self.params.get("verbose", 1)

    def _begin(self):
        self._start, self._shown, self._seen = time.perf_counter(), 0.0, 0

    def on_epoch_begin(self, epoch, logs=None):
        """Begins a bar."""
        print(f"Epoch {epoch + 1}/{self.params.get('epochs') or '?'}")
        self._begin()

    def on_test_begin(self, logs=None):
        """Begins a bar."""
        if self._testing:
            self._begin()

    on_predict_begin = on_test_begin

    def on_train_batch_end(self, batch, logs=None):
        """Lets the bar grow."""
        self._seen = batch + 1
        self._update(logs)

    def on_test_batch_end(self, batch, logs=None):
        """Lets the bar grow."""
        if self._testing:
            self._seen = batch + 1
            self._update(logs)

    on_predict_batch_end = on_test_batch_end

    def _update(self, logs):
        now = time.perf_counter()
        # A terminal is told some times a second; a file gets the last line alone.
        if self._verbose == 1 and now - self._shown > 0.1 and sys.stdout.isatty():
            self._shown = now
            sys.stdout.write("\r\033[K" + self._line(logs))
            sys.stdout.flush()

    def on_epoch_end(self, epoch, logs=None):
        """Ends the bar."""
        self._end(logs)

    def on_test_end(self, logs=None):
        """Ends the bar."""
        if self._testing:
            self._end(logs)

    on_predict_end = on_test_end

    def _end(self, logs):
        lead = "\r\033[K" if self._verbose == 1 and sys.stdout.isatty() else ""
        sys.stdout.write(lead + self._line(logs) + "\n")
        sys.stdout.flush()

    def _line(self, logs):
        steps, seen = self.params.get("steps"), self._seen
        taken = time.perf_counter() - self._start
        parts = [f"{seen}/{steps if steps is not None else '?'}"]
        if self._verbose == 1:
            full = _WIDTH if not steps else int(_WIDTH * seen / steps)
            parts[0] += " " + "━" * full + " " * (_WIDTH - full)
        each = taken / max(1, seen)
        each = f"{each:.0f}s" if each >= 1 else f"{each * 1e3:.0f}ms" if each >= 1e-3 else f"{each * 1e6:.0f}us"
        parts[0] += f" {taken:.0f}s {each}/step"
        parts.extend(f"{name}: {_figure(value)}" for name, value in (logs or {}).items())
        memory = self._memory()
        return " - ".join(parts + ([memory] if memory else []))

    def _memory(self):
        function = getattr(self._source, "ran", None)
        ran = function.last_run() if function is not None else None
        if ran is None:
            return None
        return f"memory: {bytes_text(ran['predicted'])} planned, {bytes_text(ran['used'])} measured"
