"""Learning rates that depend on the step: callables from the number of steps, a tensor, to the rate. Inside of a training
step they are part of the plan."""

import math as _math

from ... import _tonnage as _t
from ..saving import Configured as _Configured

_minimum, _maximum = (_t.Op(n, n, ["x", "y"]) for n in ("minimum", "maximum"))
_floor, _ceil, _cos, _log = (_t.Op(n, n, ["x"]) for n in ("floor", "ceil", "cos", "log"))


class LearningRateSchedule(_Configured):
    """A base for schedules of one's own: write ``__call__(self, step)``."""

    def __call__(self, step):
        raise NotImplementedError


def _number(value):
    return _t.to_tensor(value, "float32", None) if not isinstance(value, (_t.Tensor, _t.Variable)) else _t.cast(value, "float32")


class ExponentialDecay(LearningRateSchedule):
    """``initial * decay_rate ** (step / decay_steps)``, in steps if ``staircase``."""

    def __init__(self, initial_learning_rate, decay_steps, decay_rate, staircase=False, name="ExponentialDecay"):
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.decay_rate, self.staircase, self.name = decay_rate, staircase, name

    def __call__(self, step):
        passed = _number(step) / float(self.decay_steps)
        passed = _floor(passed) if self.staircase else passed
        return _number(float(self.decay_rate)) ** passed * float(self.initial_learning_rate)


class InverseTimeDecay(LearningRateSchedule):
    """``initial / (1 + decay_rate * step / decay_steps)``, in steps if ``staircase``."""

    def __init__(self, initial_learning_rate, decay_steps, decay_rate, staircase=False, name="InverseTimeDecay"):
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.decay_rate, self.staircase, self.name = decay_rate, staircase, name

    def __call__(self, step):
        passed = _number(step) / float(self.decay_steps)
        passed = _floor(passed) if self.staircase else passed
        return float(self.initial_learning_rate) / (1.0 + passed * float(self.decay_rate))


class PiecewiseConstantDecay(LearningRateSchedule):
    """One rate up to each boundary, the last after all of them."""

    def __init__(self, boundaries, values, name="PiecewiseConstant"):
        if len(boundaries) != len(values) - 1:
            raise ValueError(f"The length of boundaries should be 1 less than the length of values. Received: "
                             f"boundaries={boundaries}, values={values}")
        self.boundaries, self.values, self.name = list(boundaries), list(values), name

    def __call__(self, step):
        step = _number(step)
        rate = _number(float(self.values[0]))
        for boundary, value in zip(self.boundaries, self.values[1:]):
            rate = _t.where_(step > float(boundary), _number(float(value)), rate)
        return rate


class PolynomialDecay(LearningRateSchedule):
    """From one rate to another along a power of what is left."""

    def __init__(self, initial_learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False,
                 name="PolynomialDecay"):
        self.initial_learning_rate, self.decay_steps, self.end_learning_rate = initial_learning_rate, decay_steps, end_learning_rate
        self.power, self.cycle, self.name = power, cycle, name

    def __call__(self, step):
        step, steps = _number(step), _number(float(self.decay_steps))
        if self.cycle:
            steps = steps * _maximum(_ceil(step / steps), _number(1.0))
        else:
            step = _minimum(step, steps)
        low, high = float(self.end_learning_rate), float(self.initial_learning_rate)
        return (1.0 - step / steps) ** float(self.power) * (high - low) + low


class CosineDecay(LearningRateSchedule):
    """Half a wave of the cosine down to ``alpha`` times the rate, after a straight way up if one is asked for."""

    def __init__(self, initial_learning_rate, decay_steps, alpha=0.0, name="CosineDecay", warmup_target=None, warmup_steps=0):
        self.initial_learning_rate, self.decay_steps, self.alpha = initial_learning_rate, decay_steps, alpha
        self.name, self.warmup_target, self.warmup_steps = name, warmup_target, warmup_steps

    def _wave(self, step, high):
        done = _minimum(step, _number(float(self.decay_steps))) / float(self.decay_steps)
        return high * ((1.0 - self.alpha) * 0.5 * (1.0 + _cos(done * _math.pi)) + self.alpha)

    def __call__(self, step):
        step, first = _number(step), float(self.initial_learning_rate)
        if self.warmup_target is None:
            return self._wave(step, first)
        target, steps = float(self.warmup_target), float(self.warmup_steps)
        up = step / steps * (target - first) + first
        return _t.where_(step < steps, up, self._wave(_maximum(step - steps, _number(0.0)), target))


class CosineDecayRestarts(LearningRateSchedule):
    """Waves of the cosine, each ``t_mul`` times as long and ``m_mul`` times as high as the one before."""

    def __init__(self, initial_learning_rate, first_decay_steps, t_mul=2.0, m_mul=1.0, alpha=0.0, name="SGDRDecay"):
        self.initial_learning_rate, self.first_decay_steps = initial_learning_rate, first_decay_steps
        self.t_mul, self.m_mul, self.alpha, self.name = t_mul, m_mul, alpha, name

    def __call__(self, step):
        done = _number(step) / float(self.first_decay_steps)
        if self.t_mul == 1.0:
            restart = _floor(done)
            done = done - restart
        else:
            ratio = float(self.t_mul)
            restart = _floor(_log(1.0 - done * (1.0 - ratio)) / _math.log(ratio))
            power = _number(ratio) ** restart
            done = (done - (1.0 - power) / (1.0 - ratio)) / power
        height = _number(float(self.m_mul)) ** restart
        wave = 0.5 * height * (1.0 + _cos(done * _math.pi))
        return float(self.initial_learning_rate) * ((1.0 - self.alpha) * wave + self.alpha)


def serialize(schedule):
    """A schedule as plain data."""
    from ..saving import serialize_keras_object

    return serialize_keras_object(schedule)


def deserialize(config, custom_objects=None):
    """A schedule from plain data."""
    from ..saving import deserialize_keras_object

    return deserialize_keras_object(config, custom_objects)
