"""``tf.compat.v1.train``: optimizers that are ops of a graph. What they remember are variables beside those that they update."""

import tonnage as _tf

from .._variable import Variable as _Variable
from ._graph import Operation as _Operation
from .._notices import ignores as _ignores


class Optimizer:
    """What they share: gradients, and an op that applies them."""

    def __init__(self, learning_rate, use_locking=False, name=None):
        self._rate = learning_rate
        self._slots = {}
        self._name = name or type(self).__name__.removesuffix("Optimizer")

    def _step(self, gradient, variable):
        raise NotImplementedError

    def _slot(self, variable, name, start=0.0):
        key = (variable.number, name)
        if key not in self._slots:
            value = _tf.fill(variable.shape, start)
            self._slots[key] = _Variable(_tf.cast(value, variable.dtype), trainable=False,
                                        name=f"{variable.plain_name}/{self._name}_{name}")
        return self._slots[key]

    def get_slot(self, var, name):
        """What it remembers of a variable under a name."""
        return self._slots.get((var.number, name))

    def variables(self):
        """All that it remembers."""
        return list(self._slots.values())

    @_ignores("Optimizer.compute_gradients", "gate_gradients", "aggregation_method", "colocate_gradients_with_ops")
    def compute_gradients(self, loss, var_list=None, gate_gradients=None, aggregation_method=None,
                          colocate_gradients_with_ops=False, grad_loss=None):
        """Gradients with their variables."""
        from .v1 import trainable_variables

        variables = list(var_list if var_list is not None else trainable_variables())
        return list(zip(_tf.gradients(loss, variables, grad_loss), variables))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """What updates the variables when it is run."""
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable, check your graph for ops that do not support "
                             "gradients")
        made = []
        for gradient, variable in pairs:
            made += self._step(_tf.convert_to_tensor(gradient), variable)
        if global_step is not None:
            made.append(global_step.assign_add(1))
        return _Operation(made + self._finish())

    def _finish(self):
        return []

    @_ignores("Optimizer.minimize", "gate_gradients", "aggregation_method", "colocate_gradients_with_ops")
    def minimize(self, loss, global_step=None, var_list=None, gate_gradients=None, aggregation_method=None,
                 colocate_gradients_with_ops=False, name=None, grad_loss=None):
        """What makes a loss smaller when it is run."""
        return self.apply_gradients(self.compute_gradients(loss, var_list, grad_loss=grad_loss), global_step)


class GradientDescentOptimizer(Optimizer):
    """Gradient descent."""

    def _step(self, gradient, variable):
        return [variable.assign_sub(gradient * self._rate)]


class MomentumOptimizer(Optimizer):
    """Gradient descent with momentum."""

    def __init__(self, learning_rate, momentum, use_locking=False, name="Momentum", use_nesterov=False):
        super().__init__(learning_rate, use_locking, name)
        self._momentum, self._nesterov = momentum, use_nesterov

    def _step(self, gradient, variable):
        speed = self._slot(variable, "momentum")
        now = speed * self._momentum + gradient
        step = gradient + now * self._momentum if self._nesterov else now
        return [speed.assign(now), variable.assign_sub(step * self._rate)]


class AdagradOptimizer(Optimizer):
    """Adagrad."""

    def __init__(self, learning_rate, initial_accumulator_value=0.1, use_locking=False, name="Adagrad"):
        super().__init__(learning_rate, use_locking, name)
        self._start = initial_accumulator_value

    def _step(self, gradient, variable):
        squares = self._slot(variable, "accumulator", self._start)
        now = squares + gradient * gradient
        return [squares.assign(now), variable.assign_sub(gradient * self._rate / _tf.sqrt(now))]


class RMSPropOptimizer(Optimizer):
    """RMSProp."""

    def __init__(self, learning_rate, decay=0.9, momentum=0.0, epsilon=1e-10, use_locking=False, centered=False,
                 name="RMSProp"):
        super().__init__(learning_rate, use_locking, name)
        self._decay, self._momentum, self._epsilon, self._centered = decay, momentum, epsilon, centered

    def _step(self, gradient, variable):
        squares, speed = self._slot(variable, "rms", 1.0), self._slot(variable, "momentum")
        now = squares * self._decay + gradient * gradient * (1 - self._decay)
        made, below = [squares.assign(now)], now
        if self._centered:
            mean = self._slot(variable, "mg")
            middle = mean * self._decay + gradient * (1 - self._decay)
            made.append(mean.assign(middle))
            below = now - middle * middle
        step = speed * self._momentum + gradient * self._rate / _tf.sqrt(below + self._epsilon)
        return [*made, speed.assign(step), variable.assign_sub(step)]


class AdamOptimizer(Optimizer):
    """Adam."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False, name="Adam"):
        super().__init__(learning_rate, use_locking, name)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        self._powers = None

    def _step(self, gradient, variable):
        if self._powers is None:
            self._powers = [_Variable(beta, trainable=False, name=f"{name}_power")
                            for beta, name in ((self._beta1, "beta1"), (self._beta2, "beta2"))]
        first, second = self._slot(variable, "m"), self._slot(variable, "v")
        power1, power2 = (p + 0.0 for p in self._powers)
        m = first * self._beta1 + gradient * (1 - self._beta1)
        v = second * self._beta2 + gradient * gradient * (1 - self._beta2)
        rate = self._rate * _tf.sqrt(1 - power2) / (1 - power1)
        step = m * _tf.cast(rate, m.dtype) / (_tf.sqrt(v) + self._epsilon)
        return [first.assign(m), second.assign(v), variable.assign_sub(step)]

    def variables(self):
        """All that it remembers."""
        return [*super().variables(), *(self._powers or [])]

    def _finish(self):
        betas = (self._beta1, self._beta2)
        return [power.assign(power * beta) for power, beta in zip(self._powers or [], betas)]


@_ignores("get_global_step", "graph")
def get_global_step(graph=None):
    """The variable that counts steps, if there is one."""
    from .v1 import get_collection

    found = get_collection("global_step")
    return found[0] if found else None


def get_or_create_global_step(graph=None):
    """The variable that counts steps."""
    from .v1 import add_to_collection

    found = get_global_step(graph)
    if found is None:
        found = _Variable(_tf.constant(0, "int64"), trainable=False, name="global_step")
        add_to_collection("global_step", found)
    return found


create_global_step = get_or_create_global_step


def __getattr__(name):
    from .._missing import missing

    raise missing(__name__, name, globals())
