"""The rules: names and usual numbers are Keras'."""

from ... import _tonnage as _t
from ..._variable import wrap
from .base import Optimizer


class SGD(Optimizer):
    """Steps against the gradient, with momentum if asked for.

    Momentum remembers gradients, not steps: a rate that changes acts at once on all of it.
    """

    _rule = "sgd"

    def __init__(self, learning_rate=0.01, momentum=0.0, nesterov=False, name="SGD", **kwargs):
        if not isinstance(momentum, (int, float)) or not 0 <= momentum <= 1:
            raise ValueError("`momentum` must be a float between [0, 1].")
        self.momentum, self.nesterov = float(momentum), bool(nesterov)
        super().__init__(learning_rate, name=name, **kwargs)

    def _numbers(self):
        return {"momentum": self.momentum, "nesterov": float(self.nesterov)}


class Adam(Optimizer):
    """Adam of Kingma and Ba, with ``epsilon`` where Keras has it: beside the root of the mean of squares as it is remembered."""

    _rule = "adam"
    _epsilon_hat = True

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False, name="adam", **kwargs):
        self.beta_1, self.beta_2, self.epsilon = float(beta_1), float(beta_2), float(epsilon)
        self.amsgrad = bool(amsgrad)
        super().__init__(learning_rate, name=name, **kwargs)

    def _numbers(self):
        return {"beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon, "amsgrad": float(self.amsgrad),
                "epsilon_hat": float(self._epsilon_hat)}


class AdamW(Adam):
    """Adam with weight decay of its own, as Loshchilov and Hutter wrote it."""

    def __init__(self, learning_rate=0.001, weight_decay=0.004, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False,
                 name="adamw", **kwargs):
        if weight_decay is None:
            raise ValueError("Argument `weight_decay` must be a float. Received: weight_decay=None")
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, name, weight_decay=weight_decay, **kwargs)


class Adam8Bit(Adam):
    """Adam that remembers in 8 bits: a quarter of the state."""

    _rule = "adam8"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, name="adam8bit", **kwargs):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, False, name, **kwargs)


class Adamax(Adam):
    """Adam with the largest of past gradients in place of the root of their mean square."""

    _rule = "adamax"
    _epsilon_hat = False

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, name="adamax", **kwargs):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, False, name, **kwargs)


class Nadam(Adam):
    """Adam with Nesterov's momentum."""

    _rule = "nadam"
    _epsilon_hat = False

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, name="nadam", **kwargs):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, False, name, **kwargs)


class RMSprop(Optimizer):
    """Gradients by the root of their mean square."""

    _rule = "rmsprop"

    def __init__(self, learning_rate=0.001, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False, name="rmsprop", **kwargs):
        self.rho, self.momentum, self.epsilon, self.centered = float(rho), float(momentum), float(epsilon), bool(centered)
        super().__init__(learning_rate, name=name, **kwargs)

    def _numbers(self):
        return {"rho": self.rho, "momentum": self.momentum, "epsilon": self.epsilon, "centered": float(self.centered)}


class Adagrad(Optimizer):
    """Gradients by the root of the sum of their squares."""

    _rule = "adagrad"

    def __init__(self, learning_rate=0.001, initial_accumulator_value=0.1, epsilon=1e-7, name="adagrad", **kwargs):
        self.initial_accumulator_value, self.epsilon = float(initial_accumulator_value), float(epsilon)
        super().__init__(learning_rate, name=name, **kwargs)

    def _numbers(self):
        return {"start": self.initial_accumulator_value, "epsilon": self.epsilon}


class Adadelta(Optimizer):
    """Steps whose size follows that of past steps."""

    _rule = "adadelta"

    def __init__(self, learning_rate=0.001, rho=0.95, epsilon=1e-7, name="adadelta", **kwargs):
        self.rho, self.epsilon = float(rho), float(epsilon)
        super().__init__(learning_rate, name=name, **kwargs)

    def _numbers(self):
        return {"rho": self.rho, "epsilon": self.epsilon}


class Ftrl(Optimizer):
    """Follows the regularized leader; with an l1 weights become exactly 0."""

    _rule = "ftrl"

    def __init__(self, learning_rate=0.001, learning_rate_power=-0.5, initial_accumulator_value=0.1,
                 l1_regularization_strength=0.0, l2_regularization_strength=0.0,
                 l2_shrinkage_regularization_strength=0.0, beta=0.0, name="ftrl", **kwargs):
        self._given = {"power": float(learning_rate_power), "start": float(initial_accumulator_value),
                       "l1": float(l1_regularization_strength), "l2": float(l2_regularization_strength),
                       "shrinkage": float(l2_shrinkage_regularization_strength), "beta": float(beta)}
        super().__init__(learning_rate, name=name, **kwargs)

    def _numbers(self):
        return self._given


class Lion(Optimizer):
    """Steps of one size, by the sign of a running mean."""

    _rule = "lion"

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.99, name="lion", **kwargs):
        self.beta_1, self.beta_2 = float(beta_1), float(beta_2)
        super().__init__(learning_rate, name=name, **kwargs)

    def _numbers(self):
        return {"beta_1": self.beta_1, "beta_2": self.beta_2}


class Adafactor(Optimizer):
    """Adam whose memory of squares is a row and a column; steps are shares of what a variable is."""

    _rule = "adafactor"

    def __init__(self, learning_rate=0.001, beta_2_decay=-0.8, epsilon_2=1e-3, clip_threshold=1.0, relative_step=True,
                 name="adafactor", **kwargs):
        self._given = {"decay": float(beta_2_decay), "least": float(epsilon_2), "clip": float(clip_threshold), "relative": 1.0}
        self.relative_step = bool(relative_step)
        super().__init__(learning_rate, name=name, **kwargs)

    def _numbers(self):
        return self._given


class LossScaleOptimizer(Optimizer):
    """Another optimizer, for gradients of 16 bits: losses are scaled so that these do not round to 0, by a factor that finds
    its size by itself. A step whose gradients are not finite is left out."""

    def __init__(self, inner_optimizer, initial_scale=32768.0, dynamic_growth_steps=2000, name=None):
        if inner_optimizer._rule is None:
            raise ValueError("LossScaleOptimizer takes a built-in optimizer")
        if inner_optimizer.gradient_accumulation_steps is not None or inner_optimizer.loss_scale_factor is not None:
            raise ValueError("LossScaleOptimizer: the inner optimizer adds gradients up or scales losses itself; give it "
                             "neither gradient_accumulation_steps nor loss_scale_factor")
        self.inner_optimizer = inner_optimizer
        self.name = name or "loss_scale_optimizer"
        self._scale = _t.LossScale(float(initial_scale), int(dynamic_growth_steps))

    iterations = property(lambda self: self.inner_optimizer.iterations)
    learning_rate = property(lambda self: self.inner_optimizer.learning_rate,
                             lambda self, rate: setattr(self.inner_optimizer, "learning_rate", rate))
    _rule = property(lambda self: self.inner_optimizer._rule)
    _inner = property(lambda self: self.inner_optimizer._inner)
    _schedule = property(lambda self: self.inner_optimizer._schedule)
    use_ema = property(lambda self: self.inner_optimizer.use_ema)
    ema_overwrite_frequency = property(lambda self: self.inner_optimizer.ema_overwrite_frequency)
    built = property(lambda self: self.inner_optimizer.built, lambda self, value: None)

    @property
    def dynamic_scale(self):
        """The factor, a variable."""
        return wrap(self._scale.variables[0])

    @property
    def variables(self):
        """All that both remember."""
        return [*(wrap(v) for v in self._scale.variables), *self.inner_optimizer.variables]

    def build(self, variables):
        """Makes what is remembered of variables."""
        self.inner_optimizer.build(variables)

    def _follow(self):
        self.inner_optimizer._follow()

    def scale_loss(self, loss):
        """The loss times the factor."""
        return self._scale.scale(loss)

    def _step(self, grads, variables):
        self._scale.apply(self._inner, variables, grads)

    def get_config(self):
        """What it was made with, as plain data."""
        from ..saving import serialize_keras_object

        given = self._arguments()
        return {"inner_optimizer": serialize_keras_object(self.inner_optimizer), "name": self.name,
                "initial_scale": given["initial_scale"], "dynamic_growth_steps": given["dynamic_growth_steps"]}
