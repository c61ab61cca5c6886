"""Several checkpoints in a folder: the latest, and which are kept."""

import os
import re
import time

from .. import _replicas
from .checkpoint import file_of, remove
from .folder import hold, read_state, write_state
from .._notices import ignores

_STATE = "checkpoint"


class CheckpointState:
    """What the state file of a folder says."""

    def __init__(self, latest, paths, times=()):
        self.model_checkpoint_path, self.all_model_checkpoint_paths = latest, list(paths)
        self.all_model_checkpoint_timestamps = list(times)


def update_checkpoint_state(folder, latest, paths, times=()):
    """Writes the state file of a folder; it appears whole or not at all."""
    def relative(path):
        # A folder may end in a slash.
        return os.path.basename(path) if os.path.abspath(os.path.dirname(path)) == os.path.abspath(folder) else path

    lines = [f'model_checkpoint_path: "{relative(latest)}"', *(f'all_model_checkpoint_paths: "{relative(p)}"' for p in paths),
             *(f"all_model_checkpoint_timestamps: {t!r}" for t in times)]
    write_state(os.path.join(folder, _STATE), "\n".join(lines) + "\n")


def get_checkpoint_state(checkpoint_dir, latest_filename=None):
    """What the state file of a folder says; nothing where there is none."""
    folder = os.fspath(checkpoint_dir)
    text = read_state(os.path.join(folder, latest_filename or _STATE))
    if text is None:
        return None
    latest = re.search(r'^model_checkpoint_path: "(.*)"$', text, re.M)
    if latest is None:
        return None
    place = lambda p: os.path.join(folder, p)  # noqa: E731
    paths = re.findall(r'^all_model_checkpoint_paths: "(.*)"$', text, re.M)
    times = re.findall(r"^all_model_checkpoint_timestamps: (.*)$", text, re.M)
    return CheckpointState(place(latest.group(1)), [place(p) for p in paths], [float(t) for t in times])


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    """The latest checkpoint of a folder; ``None`` where there is none."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not os.path.exists(file_of(state.model_checkpoint_path)):
        return None
    return state.model_checkpoint_path


class CheckpointManager:
    """Saves checkpoints with numbers, keeps the last ones and takes older ones away.

    >>> checkpoint = tf.train.Checkpoint(step=tf.Variable(1))
    >>> manager = tf.train.CheckpointManager(checkpoint, "runs", max_to_keep=3)
    >>> status = checkpoint.restore(manager.latest_checkpoint)
    >>> manager.save()
    'runs/ckpt-1'
    """

    def __init__(self, checkpoint, directory, max_to_keep=None, keep_checkpoint_every_n_hours=None, checkpoint_name="ckpt",
                 step_counter=None, checkpoint_interval=None, init_fn=None):
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"The value of `max_to_keep` must be positive or None. Received: {max_to_keep}")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is given.")
        self.checkpoint, self.directory, self._most = checkpoint, os.fspath(directory), max_to_keep
        self._every, self._name, self._init = keep_checkpoint_every_n_hours, checkpoint_name, init_fn
        self._counter, self.checkpoint_interval, self._last_step = step_counter, checkpoint_interval, None
        state = get_checkpoint_state(self.directory)
        self._kept = []
        if state is not None:
            times = dict(zip(state.all_model_checkpoint_paths, state.all_model_checkpoint_timestamps))
            self._kept = [(p, times.get(p, 0.0)) for p in state.all_model_checkpoint_paths if os.path.exists(file_of(p))]
        self._preserved = self._kept[0][1] if self._kept else time.time()

    @property
    def checkpoints(self):
        """The checkpoints that are kept, the oldest first."""
        return [path for path, _ in self._kept]

    @property
    def latest_checkpoint(self):
        """The latest; ``None`` where there is none."""
        return self._kept[-1][0] if self._kept else None

    @ignores("CheckpointManager.save", "options")
    def save(self, checkpoint_number=None, check_interval=True, options=None):
        """Saves, unless the last one is too young; gives the path."""
        if self.checkpoint_interval is not None and check_interval:
            step = int(self._counter)
            if self._last_step is not None and step - self._last_step < self.checkpoint_interval:
                return None
            self._last_step = step
        writes = _replicas.writes(self.directory)
        if writes:
            hold(self, self.directory)
        if checkpoint_number is None:
            self.checkpoint.save_counter.assign_add(1)
            checkpoint_number = int(self.checkpoint.save_counter)
        path = os.path.join(self.directory, f"{self._name}-{int(checkpoint_number)}")
        self.checkpoint.write(path)
        self._kept = [(p, t) for p, t in self._kept if p != path] + [(path, time.time())]
        # Old ones are named until they are gone: if this ends in between, the next save takes them away.
        if writes:
            self._record()
        before = len(self._kept)
        for old in self._sweep():
            if writes:
                remove(old)
        if writes and len(self._kept) < before:
            self._record()
        _replicas.wait()
        return path

    def _record(self):
        update_checkpoint_state(self.directory, self.latest_checkpoint, self.checkpoints, [t for _, t in self._kept])

    def _sweep(self):
        gone = []
        while self._most is not None and len(self._kept) > self._most:
            path, made = self._kept.pop(0)
            if self._every is not None and made - self._preserved >= self._every * 3600:
                self._preserved = made
                continue
            if os.path.exists(file_of(path)):
                gone.append(path)
        return gone

    def restore_or_initialize(self):
        """Restores the latest; without one, calls what initializes."""
        if self.latest_checkpoint is not None:
            self.checkpoint.restore(self.latest_checkpoint)
            return self.latest_checkpoint
        if self._init is not None:
            self._init()
        return None
