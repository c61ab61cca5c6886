"""Training: ``compile``, ``fit``, ``evaluate``, ``predict`` and their kin.

One step (forward, backward, update, metrics) is one function, traced once for each shape of a batch and planned: its peak is
known before it runs, and ``fit(budget=...)`` holds it to a number of bytes.

Decision: ``docs/decisions/keras-steps-are-functions.md``.
"""

import weakref

import numpy as np

from ... import _nest
from ... import _replicas
from ... import _tonnage as _t
from ..._function import Function
from ..._gradient import GradientTape
from ..._shape import TensorSpec
from ...autograph import converted
from .. import metrics as _metrics
from .batches import arrays, unpack
from .compiled import Compiled
from .loops import LoopMixin
from ..._notices import ignores


class Trainer(LoopMixin):
    """What makes a layer a model that is trained."""

    @ignores("Trainer.compile", "jit_compile")
    def compile(self, optimizer="rmsprop", loss=None, loss_weights=None, metrics=None, weighted_metrics=None,
                run_eagerly=False, steps_per_execution=1, jit_compile="auto", auto_scale_loss=True):
        """Says how it is trained: by which optimizer, to which loss, with which figures beside it."""
        from .. import optimizers

        if steps_per_execution != 1:
            from ..._notices import once

            once("steps_per_execution", "steps_per_execution does nothing: a step is one planned call as it is")
        self.optimizer = optimizers.get(optimizer)
        if auto_scale_loss and self.dtype_policy.name == "mixed_float16" and self.optimizer._rule is not None and not isinstance(
                self.optimizer, optimizers.LossScaleOptimizer):
            self.optimizer = optimizers.LossScaleOptimizer(self.optimizer)
        self.loss = loss
        owner = weakref.ref(self)
        self._compiled = Compiled(loss, loss_weights, metrics, weighted_metrics, lambda: owner().output_names or None)
        self._compile_with = dict(optimizer=self.optimizer, loss=loss, loss_weights=loss_weights, metrics=metrics,
                                  weighted_metrics=weighted_metrics, run_eagerly=run_eagerly)
        self.run_eagerly = bool(run_eagerly)
        self._distribute = _replicas.stack()[-1] if _replicas.several() is not None else None
        self._functions = {}
        self.stop_training = False

    _distribute = None

    @property
    def distribute_strategy(self):
        """The strategy that it was compiled under, where that has several replicas; otherwise ``None``."""
        return self._distribute

    @property
    def compiled(self):
        """Whether it was compiled."""
        return self._compiled is not None

    def _need_compiled(self, method):
        if self._compiled is None:
            raise ValueError(f"You must call `compile()` before calling `{method}()`.")

    def get_compile_config(self):
        """How it was compiled, as plain data; none where it was not, or where that has no name."""
        from ..saving import serialize_keras_object

        if self._compiled is None:
            return None
        return {k: serialize_keras_object(v) for k, v in self._compile_with.items()}

    def compile_from_config(self, config):
        """Compiles it as :meth:`get_compile_config` says."""
        from ..saving import deserialize_keras_object

        self.compile(**{k: deserialize_keras_object(v) for k, v in config.items()})
        if self.optimizer is not None and self.built and self.weights:
            self.optimizer.build(self.trainable_variables)

    # Figures.

    def _own_metrics(self):
        found = []
        for layer in self._flatten_layers():
            for key, value in vars(layer).items():
                if key not in self._not_tracked:
                    _collect_metrics(value, found)
        return found

    @property
    def metrics(self):
        """All figures: the loss, those that were compiled, and its own."""
        return [*(self._compiled.metrics if self._compiled else []), *self._own_metrics()]

    @property
    def metrics_names(self):
        """Their names in logs."""
        return [name for name, _ in self._named_metrics()]

    def _named_metrics(self):
        return [*(self._compiled.named() if self._compiled else []), *((m.name, m) for m in self._own_metrics())]

    def reset_metrics(self):
        """Lets all figures start anew."""
        for metric in self.metrics:
            metric.reset_state()

    def get_metrics_result(self):
        """All figures by their names."""
        made = {}
        for name, metric in self._named_metrics():
            result = metric.result()
            if isinstance(result, dict):
                made.update(result)
            else:
                made[name] = result
        return made

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Adds a batch to the figures and gives all of them."""
        self._compiled.update(y, y_pred, sample_weight)
        return self.get_metrics_result()

    @property
    def compiled_metrics(self):
        """What older training steps update."""
        owner = self

        class Metrics:
            metrics = owner._compiled.metrics

            @staticmethod
            def update_state(y, y_pred, sample_weight=None):
                owner._compiled.update(y, y_pred, sample_weight)

        return Metrics

    def compiled_loss(self, y, y_pred, sample_weight=None, regularization_losses=None):
        """What older training steps compute."""
        loss = self._compiled.total(y, y_pred, sample_weight)
        for extra in regularization_losses or []:
            loss = loss + extra
        self._compiled.tracker.update_state(loss)
        return loss

    # One step.

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss of a batch: that which was compiled, and what layers add."""
        loss = self._compiled.total(y, y_pred, sample_weight)
        for extra in self.losses:
            extra = _t.to_tensor(extra, None, None)
            extra = extra if extra.dtype.name == "float32" or loss is None else _t.cast(extra, "float32")
            extra = _replicas.share(_t.reduce_sum(extra, None, False) if extra.ndim else extra)
            loss = extra if loss is None else loss + extra
        if loss is None:
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`.")
        return loss

    def _track_loss(self, loss, x):
        rows = next((t for t in _nest.flatten(x) if t is not None and t.ndim), None)
        self._compiled.tracker.update_state(loss, float(rows.lengths[0] or 1) if rows is not None else None)

    def train_step(self, data):
        """One step of training; write another one for training of one's own."""
        x, y, sample_weight = unpack(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True)
            scaled = self.optimizer.scale_loss(loss) if self.optimizer is not None else loss
        self._track_loss(_replicas.whole(loss), x)
        variables = self.trainable_variables
        if variables:
            gradients = tape.gradient(scaled, variables)
            self.optimizer.apply_gradients(zip(gradients, variables))
        else:
            from ..._notices import once

            once("nothing to train", "The model does not have any trainable weights.")
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data):
        """One step of evaluation."""
        x, y, sample_weight = unpack(data)
        y_pred = self(x, training=False)
        if self._compiled.loss is not None or self.losses:
            loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False)
            self._track_loss(_replicas.whole(loss), x)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data):
        """One step of prediction."""
        x, _, _ = unpack(data)
        return self(x, training=False)

    def _step(self, kind, budget=None):
        """The planned function of a step."""
        key = kind, None if budget is None else str(budget)
        found = self._functions.get(key)
        if found is None:
            owner = weakref.ref(self)

            def step(data):
                model = owner()
                run, strategy = converted(getattr(model, f"{kind}_step")), model.distribute_strategy
                # Predictions are of all rows on each rank.
                made = run(data) if strategy is None or kind == "predict" else strategy.run(run, (data,))
                model._clear_losses()
                return made

            found = Function(step, autograph=False, budget=budget)
            if getattr(self, "run_eagerly", False):
                found.run_eagerly(True)
            self._functions[key] = found
        return found

    def make_train_function(self, force=False):
        """The planned function of a training step."""
        return self._step("train")

    def make_test_function(self, force=False):
        """The planned function of a step of evaluation."""
        return self._step("test")

    def make_predict_function(self, force=False):
        """The planned function of a step of prediction."""
        return self._step("predict")

    # Before it runs.

    def plan(self, batch, budget=None):
        """What a step of training takes on such a batch (of prediction, where it is not compiled): order, addresses, peak. Runs
        nothing. ``batch`` is a number of rows, or ``(x, y)`` of arrays or ``tf.TensorSpec``.

        >>> model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(2)])
        >>> model.compile("sgd", "mse")
        >>> model.plan(128).peak > model.plan(64).peak > 0
        True
        """
        specs = self._specs(batch)
        kind = "train" if self._compiled is not None else "predict"
        return self._step(kind, budget).plan(specs)

    def _specs(self, batch):
        if isinstance(batch, (int, np.integer)):
            inputs = self._input_types if self._graph is None else self._graph.inputs
            if inputs is None:
                raise ValueError("a number of rows is enough for models whose inputs are known, since they were built or called; "
                                 "give (x, y) of arrays or tf.TensorSpec")
            rows = int(batch)
            x = _nest.map_structure(lambda t: TensorSpec([rows, *t.shape[1:]], t.dtype), inputs)
            if self._compiled is None:
                return (x,)
            return x, self._target_specs(rows, inputs)

        def spec(value):
            if value is None or isinstance(value, TensorSpec):
                return value
            dtype = "float32" if isinstance(value, np.ndarray) and value.dtype == np.float64 else value.dtype
            return TensorSpec(value.shape, dtype)

        return tuple(None if part is None else _nest.map_structure(spec, arrays(part) if not _is_spec(part) else part)
                     for part in (batch if isinstance(batch, (tuple, list)) else (batch,)))

    def _target_specs(self, rows, inputs):
        from .. import losses
        from ..layers.symbolic import spec_of_call
        from .compiled import _flat, outputs_of

        def spec(tensor, loss):
            named = getattr(losses.get(loss), "fn", losses.get(loss)) if loss is not None else None
            sparse = isinstance(named, losses.SparseCategoricalCrossentropy) or named is losses.sparse_categorical_crossentropy
            shape = [rows, *tensor.shape[1:]]
            return TensorSpec(shape[:-1], "int64") if sparse else TensorSpec(shape, tensor.dtype)

        results = spec_of_call(self, (inputs,), {}) if self._graph is None else self._graph.outputs
        outputs, names = outputs_of(results, self.output_names)
        made = [spec(t, loss) for t, loss in zip(outputs, _flat(self.loss, names, "loss"))]
        if isinstance(results, dict):
            return dict(zip(names, made))
        return made if isinstance(results, (list, tuple)) else made[0]


def _is_spec(part):
    return any(isinstance(leaf, TensorSpec) for leaf in _nest.flatten(part))


def _collect_metrics(value, found):
    if isinstance(value, _metrics.Metric):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _collect_metrics(part, found)
    elif isinstance(value, dict):
        for part in value.values():
            _collect_metrics(part, found)
