"""``tf.profiler.experimental``: recordings of memory over time, and of planned calls step by step, as files.

A folder gets a page for the browser (``memory.html``) and trace events for Perfetto and chrome://tracing
(``memory.trace.json``), a pair for each recording.
"""

import os as _os

from . import _tonnage as _t
from .errors import AlreadyExistsError as _AlreadyExistsError, UnavailableError as _UnavailableError

_running = {"recording": None, "folder": None}


class _Options:
    """How to record. Everything is always recorded; what asks for less changes nothing, and says so."""

    def __init__(self, host_tracer_level=2, python_tracer_level=0, device_tracer_level=1, delay_ms=None):
        self.host_tracer_level, self.python_tracer_level = host_tracer_level, python_tracer_level
        self.device_tracer_level, self.delay_ms = device_tracer_level, delay_ms
        if python_tracer_level or delay_ms is not None:
            from ._notices import once

            once("profiler", "ProfilerOptions: memory and planned steps are recorded from the start, Python's calls are not")


def _start(logdir, options=None):
    """Begins to record."""
    if _running["recording"] is not None:
        raise _AlreadyExistsError(None, None, "Another profiler is running.")
    _os.makedirs(logdir, exist_ok=True)
    _running.update(recording=_t.start_recording("cpu:0"), folder=str(logdir))


def _stop(save=True):
    """Ends the recording and writes it to its folder."""
    recording, folder = _running["recording"], _running["folder"]
    if recording is None:
        raise _UnavailableError(None, None, "Cannot export profiling results. No profiler is running.")
    _running.update(recording=None, folder=None)
    timeline = recording.finish()
    if save:
        taken = sum(name.endswith(".trace.json") for name in _os.listdir(folder))
        lead = _os.path.join(folder, "memory" if taken == 0 else f"memory_{taken}")
        timeline.save(lead + ".html")
        timeline.save(lead + ".trace.json")


class _Profile:
    """Records what runs inside of ``with``."""

    def __init__(self, logdir, options=None):
        self._logdir, self._options = logdir, options

    def __enter__(self):
        _start(self._logdir, self._options)
        return self

    def __exit__(self, *exception):
        _stop()


class _Trace:
    """A step of a program. Steps are not marked in a recording: planned calls stand in it by themselves."""

    def __init__(self, name, **kwargs):
        self.name, self.metadata = name, kwargs

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def set_metadata(self, **kwargs):
        """Adds to what is known of it."""
        self.metadata.update(kwargs)


class experimental:
    """What TensorFlow keeps under ``experimental``."""

    start, stop = staticmethod(_start), staticmethod(_stop)
    Profile, Trace, ProfilerOptions = _Profile, _Trace, _Options


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
