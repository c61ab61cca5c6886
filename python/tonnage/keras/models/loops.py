"""The loops around steps: epochs, validation, callbacks, predictions put together."""

import contextlib
import functools

import numpy as np

from ... import _nest
from ... import _tonnage as _t
from ..callbacks import CallbackList, History
from .batches import Arrays, arrays, batches, pack, split, tensor, unpack, weighted
from ..._notices import refuse


def _numbers(logs):
    """Figures as Python numbers, in the order of their names."""
    if not isinstance(logs, dict):
        return {"loss": _number(logs)} if logs is not None else {}
    flat = {}
    for name in sorted(logs):
        value = logs[name]
        flat.update(value if isinstance(value, dict) else {name: value})
    return {name: _number(value) for name, value in flat.items()}


def _number(value):
    if isinstance(value, (_t.Tensor, _t.Variable)):
        return float(value) if value.ndim == 0 else value.numpy()
    return value


def _on_all_ranks(loop):
    """A loop of a model under the strategy that it was compiled with."""
    @functools.wraps(loop)
    def call(self, *args, **kwargs):
        strategy = self.distribute_strategy
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            return loop(self, *args, **kwargs)

    return call


class LoopMixin:
    """The loops of a model. On several ranks all of them make as many steps, and the figures of an epoch are those of all."""

    def _ranks(self):
        return None if self.distribute_strategy is None else self.distribute_strategy.world

    def _voice(self, verbose, usual=1):
        """How much is printed: one rank speaks."""
        ranks = self._ranks()
        verbose = usual if verbose == "auto" else int(verbose)
        return verbose if ranks is None or ranks.rank == 0 else 0

    def _together(self, data, trains):
        """Batches as long as all ranks have one and, where they train, none of them says stop."""
        ranks = self._ranks()
        if ranks is None:
            yield from data
            return
        end = object()
        items = iter(data)
        while not trains or ranks.all(not self.stop_training):
            batch = next(items, end)
            if not ranks.all(batch is not end):
                return
            yield batch
        self.stop_training = True

    def _figures(self, made):
        """The figures after some batches: on several ranks those of all."""
        if self._ranks() is None or not isinstance(made, dict):
            return _numbers(made)
        of_all = self.get_metrics_result()
        return _numbers(of_all if of_all.keys() == made.keys() else made)

    @_on_all_ranks
    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_split=0.0,
            validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, steps_per_epoch=None,
            validation_steps=None, validation_batch_size=None, validation_freq=1, budget=None):
        """Trains it. ``budget`` is the most that a step may hold, such as ``"512MiB"``: it is kept, or refused before the first
        step, with the least that would do.

        Gives the history: the figures of each epoch.
        """
        self._need_compiled("fit")
        verbose, ranks = self._voice(verbose), self._ranks()
        if validation_split:
            data = tuple(arrays(part) for part in (x, y, sample_weight))
            if not hasattr(_nest.flatten(data[0])[0], "shape"):
                raise ValueError("`validation_split` is only supported for Tensors or NumPy arrays")
            (x, y, sample_weight), held = split(data, validation_split)
            validation_data = held
        if ranks is not None:
            ranks.agree([("budget", str(budget)), ("number of epochs", f"{initial_epoch} {epochs} {steps_per_epoch}"),
                         ("model", str([(tuple(v.shape), v.dtype.name) for v in self.variables]) if self.built else ""),
                         ("optimizer", type(self.optimizer).__name__)])
        train = batches(x, y, sample_weight, batch_size, steps_per_epoch, shuffle, class_weight, ranks)
        validation = None
        if validation_data is not None:
            validation = self._validation(validation_data, batch_size if validation_batch_size is None else validation_batch_size,
                                          validation_steps)
        self.history = History()
        todo = CallbackList(callbacks, self, self.history, verbose, epochs=epochs, steps=train.steps, budget=budget)
        step = self._step("train", budget)
        self.stop_training = False
        todo.on_train_begin()
        # Where a callback went on from what an earlier run had left, the epochs of that run are not made again.
        initial_epoch, logs = vars(self).pop("_first_epoch", initial_epoch), {}
        for epoch in range(initial_epoch, epochs):
            logs = self._epoch(epoch, train, step, todo)
            if validation is not None and self._validates(epoch, validation_freq):
                logs.update({f"val_{k}": v for k, v in self._evaluated(validation, todo).items()})
            todo.ran = step
            todo.on_epoch_end(epoch, logs)
            if self.stop_training if ranks is None else not ranks.all(not self.stop_training):
                break
        if getattr(self.optimizer, "use_ema", False):
            self.optimizer.finalize_variable_values(self.trainable_variables)
        todo.on_train_end(logs)
        return self.history

    def _epoch(self, epoch, train, step, todo):
        self.reset_metrics()
        todo.on_epoch_begin(epoch)
        made, done = None, 0
        for i, data in enumerate(self._together(train, True)):
            todo.on_train_batch_begin(i)
            made = step(data)
            done += 1
            if todo.hears_batches:
                todo.ran = step
                todo.on_train_batch_end(i, _numbers(made))
            if self.stop_training and self._ranks() is None:
                break
        if done == 0:
            raise ValueError("there was nothing to train on: the data gave no batch")
        if train.steps is not None and done < train.steps and not self.stop_training:
            from ..._notices import once

            once(("ran out", id(train)),
                 f"Your input ran out of data; interrupting training. Make sure that your dataset or generator can generate at "
                 f"least `steps_per_epoch * epochs` batches: it gave {done} of {train.steps}.")
            self.stop_training = True
        return self._figures(made)

    @staticmethod
    def _validates(epoch, freq):
        return epoch + 1 in freq if isinstance(freq, (list, tuple)) else (epoch + 1) % freq == 0

    def _validation(self, data, batch_size, steps):
        if isinstance(data, (tuple, list)) and not hasattr(data, "element_spec"):
            x, y, weight = unpack(tuple(data))
            return batches(x, y, weight, batch_size, steps, ranks=self._ranks())
        return batches(data, None, None, None, steps, ranks=self._ranks())

    def _evaluated(self, data, todo, budget=None):
        step = self._step("test", budget)
        self.reset_metrics()
        todo.on_test_begin()
        made = None
        for i, batch in enumerate(self._together(data, False)):
            todo.on_test_batch_begin(i)
            made = step(batch)
            if todo.hears_batches:
                todo.ran = step
                todo.on_test_batch_end(i, _numbers(made))
        if made is None:
            raise ValueError("there was nothing to evaluate on: the data gave no batch")
        logs = self._figures(made)
        todo.on_test_end(logs)
        return logs

    @_on_all_ranks
    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, callbacks=None,
                 return_dict=False, budget=None, **kwargs):
        """Its loss and its figures on data: a number, a list in the order of ``metrics_names``, or by name."""
        self._need_compiled("evaluate")
        refuse("Model.evaluate", kwargs)
        data = batches(x, y, sample_weight, batch_size, steps, ranks=self._ranks())
        verbose = self._voice(verbose)
        todo = CallbackList(callbacks, self, None, verbose, epochs=1, steps=data.steps, testing=True)
        logs = self._evaluated(data, todo, budget)
        return logs if return_dict else self._listed(logs)

    def _listed(self, logs):
        """Figures in the order of the metrics, those of one of several outputs by name at the end; the only one as a number."""
        several = self._compiled.names is not None and len(self._compiled.names) > 1
        later = {name for name, _ in self._compiled.asked()} if several else ()
        order = [name for name, _ in self._named_metrics() if name in logs and name not in later]
        values = [logs[name] for name in order + sorted(n for n in logs if n not in order)]
        return values[0] if len(values) == 1 else values

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None, budget=None):
        """What it makes of data, as arrays: all batches put together."""
        data = batches(x, None, None, batch_size, steps)
        step = self._step("predict", budget)
        if isinstance(data, Arrays) and data.steps == 1 and not callbacks:
            for batch in data:
                return _nest.map_structure(lambda t: np.array(t.numpy()), step(batch))
        verbose = self._voice(verbose, 0)
        todo = CallbackList(callbacks, self, None, verbose, epochs=1, steps=data.steps, testing=True)
        todo.on_predict_begin()
        rows = data.rows if isinstance(data, Arrays) else None
        whole, parts, at = None, [], 0
        for i, batch in enumerate(data):
            todo.on_predict_batch_begin(i)
            made = step(batch)
            flat = _nest.flatten(made)
            if rows is not None:
                # Written where it will stay: parts and the whole would take twice as much.
                given = [t.numpy() for t in flat]
                if whole is None:
                    whole = [np.empty((rows, *part.shape[1:]), part.dtype) for part in given]
                for array, part in zip(whole, given):
                    array[at:at + len(part)] = part
                at += len(given[0])
            else:
                parts.append([np.array(t.numpy()) for t in flat])
            todo.on_predict_batch_end(i, {"outputs": made})
        todo.on_predict_end({})
        if rows is None:
            if not parts:
                raise ValueError("there was nothing to predict on: the data gave no batch")
            whole = [np.concatenate(column) for column in zip(*parts)]
        return _nest.pack_sequence_as(made, whole)

    # One batch.

    @_on_all_ranks
    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False, budget=None):
        """One step of training; figures are those of this batch."""
        self._need_compiled("train_on_batch")
        self.reset_metrics()
        logs = self._figures(self._step("train", budget)(self._batch(x, y, sample_weight, class_weight)))
        return logs if return_dict else self._listed(logs)

    @_on_all_ranks
    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        """One step of evaluation; figures are those of this batch."""
        self._need_compiled("test_on_batch")
        self.reset_metrics()
        logs = self._figures(self._step("test")(self._batch(x, y, sample_weight)))
        return logs if return_dict else self._listed(logs)

    def predict_on_batch(self, x):
        """One step of prediction."""
        return _nest.map_structure(lambda t: np.array(t.numpy()), self._step("predict")(self._batch(x)))

    @staticmethod
    def _batch(x, y=None, sample_weight=None, class_weight=None):
        parts = (None if p is None else _nest.map_structure(tensor, arrays(p)) for p in pack(x, y, sample_weight))
        return weighted(tuple(parts), class_weight)

    def fit_generator(self, generator, **kwargs):
        """The older name of ``fit``."""
        return self.fit(generator, **kwargs)


