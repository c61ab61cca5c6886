"""What optimizers share. The steps themselves, what is remembered, decay and clipping are ``tonnage::optim``'s; here are
names, schedules, constraints and files. A rule of one's own is an ``update_step`` over slots."""

from ... import _replicas
from ... import _tonnage as _t
from ..._notices import refuse
from ..._shape import IndexedSlices
from ..._variable import Variable, wrap
from ..backend import eagerly
from ..saving import Configured, deserialize_keras_object, serialize_keras_object
from .schedules import LearningRateSchedule


class Optimizer(Configured):
    """A base for optimizers. One's own writes ``update_step(gradient, variable, learning_rate)``, and makes what it
    remembers in ``build``, by ``add_variable_from_reference``.

    Built-in ones compute in Rust: state is in the plan before the first step, and gradients that are rows change just
    those rows.
    """

    _rule = None
    """The name of its rule in Rust; ``None`` is one of the user's own."""

    loss_scale_factor = gradient_accumulation_steps = ema_overwrite_frequency = _parts = _across = None

    def __init__(self, learning_rate=0.01, weight_decay=None, clipnorm=None, clipvalue=None, global_clipnorm=None,
                 use_ema=False, ema_momentum=0.99, ema_overwrite_frequency=None, loss_scale_factor=None,
                 gradient_accumulation_steps=None, name=None, **kwargs):
        kwargs.pop("jit_compile", None)
        if kwargs:
            raise ValueError(f"Argument(s) not recognized: {kwargs}")
        if gradient_accumulation_steps is not None and not gradient_accumulation_steps >= 2:
            raise ValueError("`gradient_accumulation_steps` must be an integer >= 2. Received: "
                             f"gradient_accumulation_steps={gradient_accumulation_steps}")
        if ema_overwrite_frequency is not None and (not isinstance(ema_overwrite_frequency, int)
                                                    or ema_overwrite_frequency < 1):
            raise ValueError("`ema_overwrite_frequency` must be an integer >= 1 or None. Received: "
                             f"ema_overwrite_frequency={ema_overwrite_frequency}")
        if sum(clip is not None for clip in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError(f"Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: "
                             f"clipnorm={clipnorm}, clipvalue={clipvalue}, global_clipnorm={global_clipnorm}.")
        for what, clip in (("clipnorm", clipnorm), ("clipvalue", clipvalue), ("global_clipnorm", global_clipnorm)):
            if clip is not None and clip <= 0:
                raise ValueError(f"{what} must be positive. Received: {clip}")
        self.name = name or type(self).__name__.lower()
        self.weight_decay, self.use_ema, self.ema_momentum = weight_decay, use_ema, ema_momentum
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm
        self.ema_overwrite_frequency, self.loss_scale_factor = ema_overwrite_frequency, loss_scale_factor
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self._sums, self._parts = {}, None
        self.built = False
        self._schedule = learning_rate if self._is_schedule(learning_rate) else None
        first = 0.0 if self._schedule is not None else float(learning_rate)
        clips = (("norm", clipnorm), ("value", clipvalue), ("global", global_clipnorm))
        clip = next(((how, float(most)) for how, most in clips if most is not None), None)
        decay = float(weight_decay) if weight_decay else None
        averages = float(ema_momentum) if use_ema else None
        self._inner = _t.Optimizer(self._rule or "sgd", first, self._numbers(), decay, clip, averages)
        self._inner.build([])
        self.iterations, self._learning_rate = (wrap(v) for v in self._inner.variables)
        self._slots = []
        if self._schedule is not None:
            eagerly(self._follow)

    @staticmethod
    def _is_schedule(rate):
        return isinstance(rate, LearningRateSchedule) or (
            callable(rate) and not isinstance(rate, (_t.Tensor, _t.Variable)))

    def _numbers(self):
        """The numbers of its rule."""
        return {}

    def _follow(self):
        """Sets the rate to what the schedule says of this step. Where gradients add up, each batch counts for it."""
        steps = self.iterations if self._parts is None else self._parts
        try:
            rate = self._schedule(steps)
        except TypeError:
            rate = self._schedule()  # older programs give a callable without arguments
        self._learning_rate.assign(_t.cast(_t.to_tensor(rate, None, None), self._learning_rate.dtype))

    # The rate.

    @property
    def learning_rate(self):
        """The rate, a variable that may be changed between steps: no step is traced again. With a schedule, what it says of the
        next step."""
        if self._schedule is not None and not _t.is_tracing():
            self._follow()
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, rate):
        if self._is_schedule(rate):
            self._schedule = rate
            eagerly(self._follow)
            return
        if self._schedule is not None:
            raise TypeError("This optimizer was created with a `LearningRateSchedule` object as its `learning_rate` "
                            "constructor argument, hence its learning rate is not settable.")
        self._learning_rate.assign(float(rate))

    lr = learning_rate

    # What it remembers.

    def build(self, variables):
        """Makes what is remembered of variables: zeros, which take no memory before the first step."""
        if self._rule is not None:
            self._inner.build(list(variables))
        self.built = True
        if "_tonnage_deferred" in vars(self):
            from ...train.checkpoint import resume

            resume(self)

    def _build_once(self, variables):
        if self._rule is not None or not self.built:
            self.build(variables)
            self.built = True

    def add_variable_from_reference(self, reference_variable, name="slot", initializer="zeros"):
        """A slot of a variable's shape, for rules of one's own."""
        from .. import initializers

        first = initializers.get(initializer)

        def make():
            value = first(reference_variable.shape.as_list(), dtype=reference_variable.dtype)
            return Variable(value, trainable=False, name=f"{reference_variable.plain_name}/{name}")

        self._slots.append(eagerly(make))
        return self._slots[-1]

    def add_variable(self, shape=(), initializer="zeros", dtype=None, name=None):
        """A slot of any shape, for rules of one's own."""
        from .. import initializers

        first = initializers.get(initializer)
        make = lambda: Variable(first(list(shape), dtype=dtype), trainable=False, name=name or "slot")  # noqa: E731
        self._slots.append(eagerly(make))
        return self._slots[-1]

    def _index(self, variables):
        self._places = {variable.number: i for i, variable in enumerate(variables)}

    def _get_variable_index(self, variable):
        return self._places[variable.number]

    @property
    def variables(self):
        """All that it remembers: steps, rate, then of each variable, then sums of gradients."""
        sums = [] if self._parts is None else [self._parts, *self._sums.values()]
        return [self.iterations, self._learning_rate, *(wrap(v) for v in self._inner.variables[2:]), *self._slots, *sums]

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        """Leaves variables alone that would be pulled to 0: themselves, or all whose names contain one of these."""
        self._inner.keep_from_decay(list(var_list or []))
        self._kept_names = list(var_names or [])

    def bytes(self, variables):
        """What it remembers of variables once a step was made, in bytes."""
        return self._inner.bytes(list(variables)) if self._rule is not None else sum(v.bytes for v in self._slots)

    # Steps.

    def apply_gradients(self, grads_and_vars, name=None, skip_gradients_aggregation=False, **kwargs):
        """Updates variables by their gradients, pairs of both. On several replicas those of all are added up, unless they are already."""
        aggregate = kwargs.pop("experimental_aggregate_gradients", not skip_gradients_aggregation)
        refuse("Optimizer.apply_gradients", kwargs)
        pairs = list(grads_and_vars)
        self._apply([g for g, _ in pairs], [v for _, v in pairs], aggregate)

    def apply(self, grads, trainable_variables=None):
        """Updates variables by their gradients."""
        self._apply(grads, trainable_variables, True)

    def _apply(self, grads, trainable_variables, aggregate):
        grads = list(grads)
        variables = list(self._built_for if trainable_variables is None else trainable_variables)
        if len(grads) != len(variables):
            raise ValueError(f"{len(grads)} gradients for {len(variables)} variables")
        if all(g is None for g in grads):
            raise ValueError("No gradients provided for any variable.")
        missing = [v.plain_name for g, v in zip(grads, variables) if g is None]
        if missing:
            from ..._notices import once

            once(("gradients", self.name, tuple(missing)),
                 f"Gradients do not exist for variables {missing} when minimizing the loss.")
        for gradient, variable in zip(grads, variables):
            if gradient is not None and tuple(gradient.shape) != tuple(variable.shape):
                raise ValueError(f"the gradient of {variable.name!r} has the shape {tuple(gradient.shape)}, the variable "
                                 f"{tuple(variable.shape)}")
        ranks = _replicas.several()
        if ranks is not None and not _t.in_replica():
            raise RuntimeError("gradients cannot be applied for all replicas at once: apply them in what strategy.run calls")
        self._across = None
        if ranks is not None and aggregate:
            grads = self._summed(ranks, _replicas.stack()[-1], grads, variables)
        self._build_once(variables)
        self._built_for = variables
        names = vars(self).get("_kept_names")
        if names:
            self._inner.keep_from_decay([v for v in variables if any(n in v.plain_name for n in names)])
        if self.gradient_accumulation_steps is not None and self._parts is None:
            self._parts = eagerly(lambda: Variable(0, dtype="int64", trainable=False, name="parts"))
        if self._schedule is not None:
            self._follow()
        if self.loss_scale_factor is not None:
            grads = [g if g is None else _dense(g) / float(self.loss_scale_factor) for g in grads]
        if self.gradient_accumulation_steps is None:
            self._update(grads, variables)
        else:
            self._accumulate(grads, variables)

    def _summed(self, ranks, strategy, grads, variables):
        """Gradients of all replicas, added up; or as they are, where each rank gets the sums of its blocks alone as the step is made."""
        is_ours = self._rule is not None and self.gradient_accumulation_steps is None
        if is_ours:
            dense = [g is not None and not isinstance(g, IndexedSlices) for g in grads]
            strategy._seen[self._inner] = variables, dense
        self._across = strategy if is_ours and strategy.sharding in ("gradients", "weights") else None
        return grads if self._across else ranks.sum_gradients(variables, grads)

    def _update(self, grads, variables):
        """One step of the rule, and what follows it."""
        self._step(grads, variables)
        for variable in variables:
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable))
        if self.use_ema:
            self._follow_means(variables)

    def _follow_means(self, variables):
        """Means start at the values of the first step, as Keras has it, and take their variables' place when that is due."""
        steps = _t.to_tensor(self.iterations, None, None)
        for variable in variables:
            average = self._inner.average(variable)
            if average is None:
                continue
            average.put(_t.where_(steps == 1, _t.cast(variable.read_value(), average.dtype), average.read_value()))
            if self.ema_overwrite_frequency is not None:
                due = steps % self.ema_overwrite_frequency == 0
                variable.assign(_t.where_(due, _t.cast(average.read_value(), variable.dtype), variable.read_value()))

    def _wait_with_means(self, variables):
        """Means follow at each batch, as Keras has it, also where variables wait for more gradients."""
        steps = _t.to_tensor(self.iterations, None, None)
        for variable in variables:
            average = self._inner.average(variable)
            if average is None:
                continue
            value, share = _t.cast(variable.read_value(), average.dtype), float(self.ema_momentum)
            mean = _t.where_(steps == 0, value, average.read_value() * share + value * (1.0 - share))
            average.put(mean)
            if self.ema_overwrite_frequency is not None:
                due = (steps + 1) % self.ema_overwrite_frequency == 0
                variable.assign(_t.where_(due, _t.cast(mean, variable.dtype), variable.read_value()))

    def _accumulate(self, grads, variables):
        """Adds gradients up, and takes a step by their mean each time that enough are there."""
        from ..._control import cond

        for gradient, variable in zip(grads, variables):
            if gradient is not None and variable.number not in self._sums:
                make = lambda v=variable: Variable(  # noqa: E731
                    _t.fill(v.shape.as_list(), 0, v.dtype), trainable=False, name=f"{v.plain_name}/gradient")
                self._sums[variable.number] = eagerly(make)
        steps = self.gradient_accumulation_steps
        sums = [None if g is None else self._sums[v.number] for g, v in zip(grads, variables)]
        dense = [None if g is None else _t.cast(_dense(g), v.dtype) for g, v in zip(grads, variables)]

        def step():
            means = [g if g is None else (s.read_value() + g) / float(steps) for g, s in zip(dense, sums)]
            self._update(means, variables)
            for kept in sums:
                if kept is not None:
                    kept.assign(_t.zeros_like(kept.read_value()))
            return _t.to_tensor(True, None, None)

        def add():
            for kept, gradient in zip(sums, dense):
                if kept is not None:
                    kept.assign_add(gradient)
            if self.use_ema:
                self._wait_with_means(variables)
            return _t.to_tensor(False, None, None)

        self._parts.assign_add(1)
        cond(_t.to_tensor(self._parts, None, None) % steps == 0, step, add)

    def _step(self, grads, variables):
        if self._across is not None:
            self._inner.apply_across(self._across.world, self._across.sharding, variables, grads)
            return
        if self._rule is not None:
            self._inner.apply(variables, grads)
            return
        self._index(variables)
        for gradient, variable in zip(self._clipped(grads), variables):
            if gradient is None:
                continue
            rate = _t.cast(self._learning_rate.read_value(), variable.dtype)
            if self.weight_decay:
                variable.assign_sub(variable * (rate * float(self.weight_decay)))
            self.update_step(_dense(gradient), variable, rate)
        self.iterations.assign_add(1)

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable: what a rule of one's own writes."""
        raise NotImplementedError(f"{type(self).__name__} has no update_step()")

    def _clipped(self, grads):
        """Gradients as clipping leaves them, for rules of one's own."""
        from ...math import clip_by_global_norm, clip_by_norm, clip_by_value

        if self.clipnorm is not None:
            return [g if g is None else clip_by_norm(_dense(g), self.clipnorm) for g in grads]
        if self.clipvalue is not None:
            return [g if g is None else clip_by_value(_dense(g), -self.clipvalue, self.clipvalue) for g in grads]
        if self.global_clipnorm is not None:
            there = iter(clip_by_global_norm([_dense(g) for g in grads if g is not None], self.global_clipnorm)[0])
            return [g if g is None else next(there) for g in grads]
        return grads

    def minimize(self, loss, var_list, tape=None):
        """Updates variables so that a loss gets smaller: a callable, or a value that a tape has seen."""
        from ..._gradient import GradientTape

        if callable(loss) and not isinstance(loss, _t.Tensor):
            with GradientTape() as tape:
                loss = loss()
        if tape is None:
            raise ValueError("`tape` is required when a `Tensor` loss is passed.")
        variables = list(var_list() if callable(var_list) else var_list)
        self.apply_gradients(zip(tape.gradient(loss, variables), variables))

    def scale_loss(self, loss):
        """The loss that gradients are to be taken of."""
        return loss if self.loss_scale_factor is None else loss * float(self.loss_scale_factor)

    def finalize_variable_values(self, var_list):
        """Gives variables their running means, where those are kept (``use_ema``)."""
        for variable in var_list if self.use_ema else []:
            average = self._inner.average(variable)
            if average is not None:
                variable.assign(_t.cast(average.read_value(), variable.dtype))

    # As data.

    def get_config(self):
        """What it was made with, as plain data; the rate as it is now."""
        config = super().get_config()
        config["name"] = self.name
        config["learning_rate"] = (serialize_keras_object(self._schedule) if self._schedule is not None
                                   else float(self._learning_rate))
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Made again from what :meth:`get_config` gave."""
        return cls(**{k: deserialize_keras_object(v, custom_objects) for k, v in config.items()})


def _dense(gradient):
    return gradient.__tf_tensor__() if isinstance(gradient, IndexedSlices) else gradient
