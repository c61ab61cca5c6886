"""Optimizers: what they remember are variables, and an update is ops, so that a training step in a function is one plan."""

from .. import _tonnage as _t
from .._shape import IndexedSlices
from .._variable import Variable

_sqrt = _t.Op("sqrt", "sqrt", ["x"])


class Optimizer:
    """A base for optimizers: ``update`` says what happens to one variable."""

    def __init__(self, learning_rate=0.01, name=None, clipnorm=None, clipvalue=None, global_clipnorm=None, **_):
        self.learning_rate = learning_rate
        self.name = name or type(self).__name__
        self._clip = clipnorm, clipvalue, global_clipnorm
        self._slots = {}
        self.iterations = Variable(0, trainable=False, dtype="int64", name="iterations")

    def _rate(self, dtype):
        rate = self.learning_rate
        if callable(rate) and not isinstance(rate, (_t.Tensor, _t.Variable)):
            rate = rate(self.iterations)
        return _t.to_tensor(rate, None, dtype)

    def slot(self, variable, name):
        """What it remembers of a variable under a name; starts as zeros, which take no memory."""
        key = (variable.number, name)
        if key not in self._slots:
            first = _t.call_eagerly(lambda: _t.fill(variable.shape, 0, variable.dtype))
            made = _t.call_eagerly(lambda: Variable(first, trainable=False, name=f"{variable.plain_name}/{name}"))
            self._slots[key] = made
        return self._slots[key]

    @property
    def variables(self):
        """All that it remembers."""
        return [self.iterations, *self._slots.values()]

    def update(self, gradient, variable):
        """Updates one variable."""
        raise NotImplementedError

    def apply_gradients(self, grads_and_vars, name=None, **_):
        """Updates variables by their gradients."""
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        self.iterations.assign_add(1)
        for gradient, variable in self._clipped(pairs):
            self.update(gradient, variable)

    def apply(self, grads, trainable_variables):
        """Updates variables by their gradients."""
        self.apply_gradients(zip(grads, trainable_variables))

    def _clipped(self, pairs):
        from ..math import clip_by_global_norm, clip_by_norm, clip_by_value

        norm, value, whole = self._clip
        grads, variables = [g for g, _ in pairs], [v for _, v in pairs]
        if norm is None and value is None and whole is None:
            return pairs
        grads = [_dense(g) for g in grads]
        if norm is not None:
            grads = [clip_by_norm(g, norm) for g in grads]
        if value is not None:
            grads = [clip_by_value(g, -value, value) for g in grads]
        if whole is not None:
            grads = clip_by_global_norm(grads, whole)[0]
        return list(zip(grads, variables))

    def minimize(self, loss, var_list, tape=None):
        """Updates variables so that a loss gets smaller: a callable, or a value that a tape has seen."""
        from .._gradient import GradientTape

        if callable(loss) and not isinstance(loss, _t.Tensor):
            with GradientTape() as tape:
                loss = loss()
        if tape is None:
            raise ValueError("`tape` is required when a `Tensor` loss is passed.")
        variables = list(var_list() if callable(var_list) else var_list)
        self.apply_gradients(zip(tape.gradient(loss, variables), variables))


def _dense(gradient):
    return gradient.__tf_tensor__() if isinstance(gradient, IndexedSlices) else gradient


class SGD(Optimizer):
    """Gradient descent, with momentum if asked for. Rows of a gradient update just those rows."""

    def __init__(self, learning_rate=0.01, momentum=0.0, nesterov=False, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.momentum, self.nesterov = float(momentum), bool(nesterov)

    def update(self, gradient, variable):
        """Updates one variable."""
        rate = self._rate(variable.dtype)
        if not self.momentum:
            variable.assign_sub(gradient * rate)
            return
        gradient = _dense(gradient)
        speed = self.slot(variable, "momentum")
        speed.assign(speed * self.momentum - gradient * rate)
        step = speed * self.momentum - gradient * rate if self.nesterov else speed.read_value()
        variable.assign_add(step)


class Adam(Optimizer):
    """Adam, as Kingma and Ba wrote it; with weight decay, as Loshchilov and Hutter."""

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, weight_decay=None, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.beta_1, self.beta_2, self.epsilon = float(beta_1), float(beta_2), float(epsilon)
        self.weight_decay = weight_decay

    def update(self, gradient, variable):
        """Updates one variable."""
        gradient, dtype = _dense(gradient), variable.dtype
        m, v = self.slot(variable, "m"), self.slot(variable, "v")
        m.assign_add((gradient - m) * (1.0 - self.beta_1))
        v.assign_add((gradient * gradient - v) * (1.0 - self.beta_2))
        steps = _t.cast(self.iterations, dtype)
        one = _t.to_tensor(1.0, None, dtype)
        rate = self._rate(dtype) * _sqrt(one - _t.to_tensor(self.beta_2, None, dtype) ** steps)
        rate = rate / (one - _t.to_tensor(self.beta_1, None, dtype) ** steps)
        if self.weight_decay:
            variable.assign_sub(variable * (self._rate(dtype) * float(self.weight_decay)))
        variable.assign_sub(m * rate / (_sqrt(v) + self.epsilon))


class AdamW(Adam):
    """Adam with weight decay."""

    def __init__(self, learning_rate=0.001, weight_decay=0.004, **kwargs):
        super().__init__(learning_rate, weight_decay=weight_decay, **kwargs)


class RMSprop(Optimizer):
    """Gradients by the root of their mean square."""

    def __init__(self, learning_rate=0.001, rho=0.9, epsilon=1e-7, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.rho, self.epsilon = float(rho), float(epsilon)

    def update(self, gradient, variable):
        """Updates one variable."""
        gradient = _dense(gradient)
        square = self.slot(variable, "square")
        square.assign_add((gradient * gradient - square) * (1.0 - self.rho))
        variable.assign_sub(gradient * self._rate(variable.dtype) / (_sqrt(square) + self.epsilon))
