"""Callbacks that change how training goes on."""

import math

import numpy as np

from .base import Callback


class _Watching(Callback):
    """What watches a figure: whether it got better."""

    def __init__(self, monitor, mode, min_delta):
        super().__init__()
        if mode not in ("auto", "min", "max"):
            from ..._notices import once

            once(("mode", mode), f"mode {mode!r} is unknown, fallback to auto mode.")
            mode = "auto"
        self.monitor, self.mode, self.min_delta = monitor, mode, abs(min_delta)
        larger = mode == "max" or (mode == "auto" and any(
            word in monitor for word in ("acc", "auc", "precision", "recall", "f1", "fbeta", "iou", "r2_score", "top_k")))
        self._sign = 1.0 if larger else -1.0

    def _worst(self):
        return -self._sign * math.inf

    def _better(self, value, best):
        return self._sign * (value - best) > self.min_delta if math.isfinite(best) else value == value

    def _value(self, logs):
        value = (logs or {}).get(self.monitor)
        if value is None:
            from ..._notices import once

            once((type(self).__name__, self.monitor),
                 f"{type(self).__name__} conditioned on metric `{self.monitor}` which is not available. Available metrics are: "
                 f"{','.join(logs or {})}")
        return value


class EarlyStopping(_Watching):
    """Ends training when a figure no longer gets better."""

    def __init__(self, monitor="val_loss", min_delta=0, patience=0, verbose=0, mode="auto", baseline=None,
                 restore_best_weights=False, start_from_epoch=0):
        super().__init__(monitor, mode, min_delta)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best, self.best_weights = None, None

    def on_train_begin(self, logs=None):
        """Starts anew."""
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best, self.best_weights = self._worst(), None

    def on_epoch_end(self, epoch, logs=None):
        """Looks whether it got better."""
        value = self._value(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            self.best_weights, self.best_epoch = self._copies(), epoch
        self.wait += 1
        if self._better(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self._copies()
            if self.baseline is None or self._better(value, self.baseline):
                self.wait = 0
            return  # an epoch that is the best so far never ends training
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def _copies(self):
        return [np.array(value) for value in self.model.get_weights()]

    def on_train_end(self, logs=None):
        """Gives the best weights back, if asked for."""
        if self.stopped_epoch > 0 and self.verbose > 0:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.restore_best_weights and self.best_weights is not None:
            self.model.set_weights(self.best_weights)
            self.best_weights = None


class ReduceLROnPlateau(_Watching):
    """Lowers the learning rate when a figure no longer gets better."""

    def __init__(self, monitor="val_loss", factor=0.1, patience=10, verbose=0, mode="auto", min_delta=1e-4, cooldown=0,
                 min_lr=0.0):
        super().__init__(monitor, mode, min_delta)
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau does not support a factor >= 1.0. Received factor={factor}")
        self.factor, self.patience, self.verbose = factor, patience, verbose
        self.cooldown, self.min_lr = cooldown, min_lr
        self.wait = self.cooldown_counter = 0
        self.best = self._worst()

    def on_train_begin(self, logs=None):
        """Starts anew."""
        self.wait = self.cooldown_counter = 0
        self.best = self._worst()

    def on_epoch_end(self, epoch, logs=None):
        """Looks whether it got better."""
        rate = float(self.model.optimizer.learning_rate)
        logs["learning_rate"] = rate
        value = self._value(logs)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._better(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience and rate > self.min_lr:
                new = max(rate * self.factor, self.min_lr)
                self.model.optimizer.learning_rate = new
                if self.verbose > 0:
                    print(f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {new}.")
                self.cooldown_counter, self.wait = self.cooldown, 0


class LearningRateScheduler(Callback):
    """Sets the learning rate at the start of each epoch: ``schedule(epoch, rate)``."""

    def __init__(self, schedule, verbose=0):
        super().__init__()
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch, logs=None):
        """Sets it."""
        import inspect

        now = float(self.model.optimizer.learning_rate)
        rate = self.schedule(epoch, now) if len(inspect.signature(self.schedule).parameters) > 1 else self.schedule(epoch)
        if not isinstance(rate, (float, np.floating)) and not hasattr(rate, "dtype"):
            raise ValueError(f"The output of the `schedule` function should be a float. Got: {rate}")
        self.model.optimizer.learning_rate = float(rate)
        if self.verbose > 0:
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {float(rate)}.")

    def on_epoch_end(self, epoch, logs=None):
        """Puts it into the figures."""
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)


class TerminateOnNaN(Callback):
    """Ends training when the loss is no number."""

    def on_batch_end(self, batch, logs=None):
        """Looks at the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True
