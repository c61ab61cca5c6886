"""The base of callbacks, and those that only listen."""

import weakref


class Callback:
    """A base for callbacks of one's own: write the methods that are wanted."""

    def __init__(self):
        self.params, self._model = {}, None

    @property
    def model(self):
        """The model that is trained. It is held weakly: it holds its history, which is a callback."""
        held = vars(self).get("_model")
        return None if held is None else held()

    @model.setter
    def model(self, model):
        self._model = None if model is None else weakref.ref(model)

    def set_params(self, params):
        """Says how many epochs and steps there will be."""
        self.params = params

    def set_model(self, model):
        """Says which model is trained."""
        self.model = model

    def on_epoch_begin(self, epoch, logs=None):
        """At the start of an epoch."""

    def on_epoch_end(self, epoch, logs=None):
        """At the end of an epoch, with its figures."""

    def on_batch_begin(self, batch, logs=None):
        """At the start of a batch of training."""

    def on_batch_end(self, batch, logs=None):
        """At the end of a batch of training."""

    def on_train_batch_begin(self, batch, logs=None):
        """At the start of a batch of training."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        """At the end of a batch of training, with the figures so far."""
        self.on_batch_end(batch, logs)

    def on_test_batch_begin(self, batch, logs=None):
        """At the start of a batch of evaluation."""

    def on_test_batch_end(self, batch, logs=None):
        """At the end of a batch of evaluation."""

    def on_predict_batch_begin(self, batch, logs=None):
        """At the start of a batch of prediction."""

    def on_predict_batch_end(self, batch, logs=None):
        """At the end of a batch of prediction."""

    def on_train_begin(self, logs=None):
        """At the start of training."""

    def on_train_end(self, logs=None):
        """At the end of training."""

    def on_test_begin(self, logs=None):
        """At the start of evaluation."""

    def on_test_end(self, logs=None):
        """At the end of evaluation."""

    def on_predict_begin(self, logs=None):
        """At the start of prediction."""

    def on_predict_end(self, logs=None):
        """At the end of prediction."""


_BATCHES = ("on_batch_end", "on_train_batch_end", "on_test_batch_end")


def _forward(name):
    numbered = "batch" in name or "epoch" in name

    def call(self, *args):
        # Figures are always given, if need be none: functions of one's own may have no default for them.
        args = args if len(args) > numbered else (*args, {})
        for callback in self.callbacks:
            getattr(callback, name)(*args)

    call.__name__, call.__doc__ = name, getattr(Callback, name).__doc__
    return call


class CallbackList:
    """Several callbacks as one; the history last, so that it has what others put into the figures."""

    def __init__(self, callbacks, model, history, verbose, testing=False, **params):
        given = list(callbacks) if isinstance(callbacks, (list, tuple)) else [] if callbacks is None else [callbacks]
        wrong = next((c for c in given if not hasattr(c, "on_epoch_end")), None)
        if wrong is not None:
            raise TypeError(f"callbacks are objects of tf.keras.callbacks.Callback, not {wrong!r:.60}")
        self.ran = None
        if verbose:
            from .progress import ProgbarLogger

            if not any(isinstance(c, ProgbarLogger) for c in given):
                given.append(ProgbarLogger(self, testing))
        if history is not None:
            given.append(history)
        self.callbacks = given
        self.hears_batches = any(getattr(type(c), name, None) is not getattr(Callback, name)
                                 for c in given for name in _BATCHES if isinstance(c, Callback)) or any(
            not isinstance(c, Callback) or getattr(c, "_hears_batches", False) for c in given)
        for callback in given:
            callback.set_model(model)
            callback.set_params({"verbose": verbose, **params})


for _name in [n for n in vars(Callback) if n.startswith("on_")]:
    setattr(CallbackList, _name, _forward(_name))


class History(Callback):
    """The figures of every epoch: ``history["loss"]`` is a list."""

    def __init__(self):
        super().__init__()
        self.epoch, self.history = [], {}

    def on_epoch_end(self, epoch, logs=None):
        """Remembers."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """A callback of functions."""

    def __init__(self, on_epoch_begin=None, on_epoch_end=None, on_train_begin=None, on_train_end=None,
                 on_train_batch_begin=None, on_train_batch_end=None, **kwargs):
        super().__init__()
        given = dict(on_epoch_begin=on_epoch_begin, on_epoch_end=on_epoch_end, on_train_begin=on_train_begin,
                     on_train_end=on_train_end, on_train_batch_begin=on_train_batch_begin,
                     on_train_batch_end=on_train_batch_end, **kwargs)
        for name, function in given.items():
            if not hasattr(Callback, name):
                raise TypeError(f"a callback has no {name!r}")
            if function is not None:
                setattr(self, name, function)
        self._hears_batches = any(given.get(n) is not None for n in _BATCHES)
