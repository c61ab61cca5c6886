"""Callbacks that write files."""

import csv
import os

from .base import Callback
from .rates import _Watching
from ... import _replicas
from ..._notices import ignores
from ..._variable import Variable
from ...train.checkpoint import file_of, remove
from ...train.folder import hold, release


class ModelCheckpoint(_Watching):
    """Saves the model, or its weights, after each epoch or so many batches; only where a figure got better, if asked for."""

    def __init__(self, filepath, monitor="val_loss", verbose=0, save_best_only=False, save_weights_only=False, mode="auto",
                 save_freq="epoch", initial_value_threshold=None):
        super().__init__(monitor, mode, 0.0)
        self.filepath, self.verbose = os.fspath(filepath), verbose
        self.save_best_only, self.save_weights_only, self.save_freq = save_best_only, save_weights_only, save_freq
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Unrecognized save_freq: {save_freq}. Expected save_freq are 'epoch' or integer values")
        endings = (".weights.h5", ".safetensors") if save_weights_only else (".keras",)
        if not self.filepath.endswith(endings):
            raise ValueError(f"The filepath provided must end in {' or '.join(endings)}. Received: filepath={self.filepath}")
        self.best = self._worst() if initial_value_threshold is None else initial_value_threshold
        self._hears_batches = save_freq != "epoch"
        self._batches, self._epoch = 0, 0

    def on_epoch_begin(self, epoch, logs=None):
        """Remembers which epoch it is."""
        self._epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        """Saves after so many batches."""
        if self.save_freq != "epoch":
            self._batches += 1
            if self._batches >= self.save_freq:
                self._batches = 0
                self._save(self._epoch, batch, logs)

    def on_epoch_end(self, epoch, logs=None):
        """Saves after an epoch."""
        if self.save_freq == "epoch":
            self._save(epoch, None, logs)

    def _save(self, epoch, batch, logs):
        logs = logs or {}
        if self.save_best_only:
            value = self._value(logs)
            if value is None or not self._better(value, self.best):
                return
            self.best = value
        try:
            path = self.filepath.format(epoch=epoch + 1, batch=(batch or 0) + 1, **logs)
        except KeyError as error:
            raise KeyError(f"Failed to format this callback filepath: {self.filepath!r}. Reason: {error}") from None
        optimizer = getattr(self.model, "optimizer", None)
        if any(v.in_blocks for v in (*self.model.variables, *(optimizer.variables if optimizer is not None else ()))):
            raise NotImplementedError("ModelCheckpoint of variables that ranks hold in blocks, which one rank cannot write alone: use tf.train.Checkpoint")
        if _replicas.writes(path):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            if self.save_weights_only:
                self.model.save_weights(path)
            else:
                self.model.save(path)
            if self.verbose > 0:
                print(f"\nEpoch {epoch + 1}: saving model to {path}")
        _replicas.wait()


class BackupAndRestore(Callback):
    """Keeps the state of training in a folder, and goes on from there after an interruption."""

    @ignores("BackupAndRestore", "save_freq")
    def __init__(self, backup_dir, save_freq="epoch", delete_checkpoint=True):
        super().__init__()
        self.folder, self.delete_checkpoint = os.fspath(backup_dir), delete_checkpoint
        self._path = os.path.join(self.folder, "latest")

    def on_train_begin(self, logs=None):
        """Goes on from what is there. Until training ends, the folder is this process's."""
        self._writes = _replicas.writes(self._path)
        if self._writes:
            hold(self, self.folder)
        _replicas.wait()
        if os.path.exists(file_of(self._path)):
            begun = Variable(0, dtype="int64", trainable=False, name="begun")
            self._checkpoint(begun).read(self._path)
            self.model._first_epoch = int(begun)

    def _checkpoint(self, begun):
        from ... import train

        return train.Checkpoint(model=self.model, optimizer=self.model.optimizer, begun=begun)

    def on_epoch_end(self, epoch, logs=None):
        """Saves."""
        os.makedirs(self.folder, exist_ok=True)
        self._checkpoint(Variable(epoch + 1, dtype="int64", trainable=False, name="begun")).write(self._path)

    def on_train_end(self, logs=None):
        """Takes away what is no longer needed."""
        if self.delete_checkpoint and self._writes:
            remove(self._path)
        release(self)


class CSVLogger(Callback):
    """Writes the figures of each epoch to a file."""

    def __init__(self, filename, separator=",", append=False):
        super().__init__()
        self.filename, self.separator, self.append = os.fspath(filename), separator, append
        self._file = self._writer = None

    def on_train_begin(self, logs=None):
        """Opens the file."""
        if not _replicas.writes(self.filename):
            return
        self._old = self.append and os.path.exists(self.filename) and os.path.getsize(self.filename) > 0
        self._file = open(self.filename, "a" if self.append else "w", newline="", encoding="utf-8")
        self._writer = None

    def on_epoch_end(self, epoch, logs=None):
        """Writes a line. Figures of validation have columns from the start: they may come with a later epoch."""
        logs = logs or {}
        if self._file is None:
            return
        if self._writer is None:
            names = sorted(logs)
            if not any(name.startswith("val_") for name in names):
                names += [f"val_{name}" for name in names]
            self._writer = csv.DictWriter(self._file, ["epoch", *names], restval="NA", delimiter=self.separator,
                                          extrasaction="ignore")
            if not self._old:
                self._writer.writeheader()
        self._writer.writerow({"epoch": epoch, **logs})
        self._file.flush()

    def on_train_end(self, logs=None):
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = self._writer = None
