"""Variables: named values that are updated in place, with TensorFlow's methods and a tensor's operators."""

import sys
import weakref

from . import _replicas
from . import _tonnage as _t
from ._shape import IndexedSlices, TensorShape
from ._tensor import Ref
from .module import scoped
from ._notices import ignores

_living = weakref.WeakValueDictionary()


def deferred_graph():
    """The deferred graph that ops go into, if there is one and nothing inside of it is traced."""
    graphs = sys.modules.get("tonnage.compat._graph")
    if graphs is None or _t.is_tracing() or not _t.is_symbolic():
        return None
    stack = graphs.stack("graphs")
    return stack[-1] if stack else None


class Variable(_t.Variable):
    """A named value that is updated in place. One that starts as zeros, or as random numbers, takes no memory until
    it is written.

    >>> v = tf.Variable([1.0, 2.0])
    >>> v.assign_add([10.0, 10.0]).numpy()
    array([11., 12.], dtype=float32)
    """

    def __new__(cls, initial_value=None, trainable=None, validate_shape=True, caching_device=None, name=None,
                variable_def=None, dtype=None, import_scope=None, constraint=None, synchronization=None,
                aggregation=None, shape=None, experimental_enable_variable_lifting=True):
        if caching_device or variable_def or import_scope or not validate_shape:
            from ._notices import no_effect

            no_effect("tf.Variable", caching_device=caching_device, variable_def=variable_def, import_scope=import_scope,
                      validate_shape=not validate_shape)
        if callable(initial_value) and not isinstance(initial_value, (_t.Tensor, _t.Variable)):
            initial_value = initial_value()
        if dtype == "string" or getattr(initial_value, "dtype", None) == "string" or isinstance(initial_value, (str, bytes)):
            raise NotImplementedError("tf.Variable: variables hold numbers, whose bytes are known beforehand; keep strings in a tensor")
        name = scoped(name or "Variable")
        graph = deferred_graph()
        if graph is not None:
            name = graph.unique_name(name)
        ranks = _replicas.joined()
        if ranks is not None and initial_value is not None and not _t.is_symbolic():
            initial_value = ranks.first_value(_t.to_tensor(initial_value, dtype, None))
        if initial_value is None:
            if shape is None:
                raise ValueError("A variable needs an initial_value, or a shape and a dtype.")
            self = _t.Variable.__new__(cls, None, trainable is not False, name, dtype,
                                       TensorShape(shape).as_list())
        else:
            self = _t.Variable.__new__(cls, initial_value, trainable is not False, name, dtype, None)
        self._constraint = constraint
        _living[self.number] = self
        return self

    def __init__(self, *args, **kwargs):
        super().__init__()

    # What it is.

    @property
    def name(self):
        """Its name, with TensorFlow's ``:0``."""
        return f"{self.plain_name}:0"

    @property
    def constraint(self):
        """What is applied to it after an update; optimizers ask for it."""
        return getattr(self, "_constraint", None)

    @property
    def initializer(self):
        """What initializes it in a session."""
        from .compat._graph import Initializer

        return Initializer([self])

    @property
    def op(self):
        """Itself."""
        return self

    @property
    def handle(self):
        """Itself."""
        return self

    @property
    def _unique_id(self):
        """A text of its own: optimizers of Keras find their slots by it."""
        return f"variable_{self.number}"

    @property
    def _shared_name(self):
        return self.plain_name

    def get_shape(self):
        """Its shape."""
        return self.shape

    def ref(self):
        """As a key."""
        return Ref(self, ("variable", self.number))

    experimental_ref = ref

    def is_initialized(self, name=None):
        """Whether it has a value."""
        return _t.to_tensor(self.initialized, None, None)

    # Its value.

    def value(self):
        """Its value now."""
        return self.read_value()

    def numpy(self):
        """Its value now as a NumPy array, without a copy and so read-only."""
        return self.read_value().numpy()

    def initialized_value(self):
        """Its value now."""
        return self.read_value()

    def eval(self, session=None):
        """Its value in a session."""
        return self.read_value().eval(session=session)

    # Updates, in place.

    def _updated(self, update, read_value=True):
        """What an update gives: itself, in a function its new value, and in a deferred graph the update, which runs when it is
        fetched and which nothing else that is built later waits for."""
        graph = deferred_graph()
        before = None if graph is None else self.read_value()
        update()
        if graph is not None:
            made = self.read_value()
            graph.show(self, before)
            made._updates = self
            return made
        if not read_value:
            return None
        return self.read_value() if _t.is_symbolic() else self

    def assign(self, value, use_locking=False, name=None, read_value=True):
        """Gives it another value."""
        return self._updated(lambda: self.put(value), read_value)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        """Adds to it."""
        return self._updated(lambda: self.add(delta), read_value)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        """Takes from it."""
        return self._updated(lambda: self.sub(delta), read_value)

    def load(self, value, session=None):
        """Gives it another value in a session."""
        from .compat._graph import get_default_session

        session = session or get_default_session()
        if session is None:
            self.assign(value)
        else:
            session._session.set(self, _t.call_eagerly(lambda: _t.to_tensor(value, self.dtype, None)))

    def scatter_update(self, sparse_delta, use_locking=False, name=None):
        """Gives rows other values."""
        return self._updated(lambda: self.put_rows(sparse_delta.indices, sparse_delta.values))

    def scatter_add(self, sparse_delta, use_locking=False, name=None):
        """Adds to rows."""
        return self._updated(lambda: self.add(_rows(sparse_delta)))

    def scatter_sub(self, sparse_delta, use_locking=False, name=None):
        """Takes from rows."""
        return self._updated(lambda: self.sub(_rows(sparse_delta)))

    def scatter_nd_update(self, indices, updates, name=None):
        """Gives elements other values by their indices."""
        return self.assign(_t.scatter_nd_update(self, indices, updates))

    def scatter_nd_add(self, indices, updates, name=None):
        """Adds to elements by their indices."""
        return self.assign(_t.scatter_nd_add(self, indices, updates))

    def scatter_nd_sub(self, indices, updates, name=None):
        """Takes from elements by their indices."""
        return self.assign(_t.scatter_nd_add(self, indices, -_t.to_tensor(updates, None, self.dtype)))

    def sparse_read(self, indices, name=None):
        """Rows of it."""
        return _t.gather(self, indices, 0, 0)

    def gather_nd(self, indices, name=None):
        """Parts of it by indices of several axes."""
        return _t.gather_nd(self, indices, 0)

    def count_up_to(self, limit):
        """One more, up to a limit."""
        if int(self) >= limit:
            from .errors import OutOfRangeError

            raise OutOfRangeError(None, None, f"Reached limit of {limit}")
        return self.assign_add(1)

    # A tensor's manners.

    def __repr__(self):
        if not self.initialized:
            return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, no value yet>"
        if _t.is_symbolic():
            return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"
        text = repr(self.read_value()).partition("numpy=")[2]
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, numpy={text}"

    def __getitem__(self, key):
        made = self.read_value()[key]
        made.assign = lambda value, name=None, read_value=True: self._assign_part(key, value)
        return made

    def _assign_part(self, key, value):
        """Gives a part of it, as an index says, other values."""
        size = self.shape.num_elements()
        places = _t.reshape(_t.count(0, 1, [size], "int64"), self.shape)[key]
        values = _t.broadcast_to(_t.to_tensor(value, None, self.dtype), places.shape)
        flat = _t.reshape(self.read_value(), [size])
        indices, values = _t.reshape(places, [-1, 1]), _t.reshape(values, [-1])
        return self.assign(_t.reshape(_t.scatter_nd_update(flat, indices, values), self.shape))

    def __iter__(self):
        return iter(self.read_value())

    def __len__(self):
        return len(self.read_value())

    def __bool__(self):
        return bool(self.read_value())

    def __int__(self):
        return int(self.read_value())

    def __float__(self):
        return float(self.read_value())

    def __index__(self):
        return self.read_value().__index__()

    def __array__(self, *args, **kwargs):
        return self.read_value().__array__(*args, **kwargs)

    def __format__(self, spec):
        return format(self.read_value(), spec) if spec else repr(self)

    def __hash__(self):
        return hash(("variable", self.number))

    def __eq__(self, other):
        if self is other:
            return _t.ones_like(_t.cast(self.read_value(), "bool"))
        return self.read_value() == other

    def __ne__(self, other):
        return self.read_value() != other

    def __deepcopy__(self, memo):
        return Variable(_t.identity(self.read_value()), self.trainable, name=self.plain_name)

    __array_priority__ = 100


def _rows(given):
    return IndexedSlices(_t.to_tensor(given.values, None, None), _t.to_tensor(given.indices, None, None))


def _binary(name):
    def operator(self, other):
        return getattr(self.read_value(), name)(other)

    operator.__name__ = name
    return operator


def _unary(name):
    def operator(self):
        return getattr(self.read_value(), name)()

    operator.__name__ = name
    return operator


for _name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"]:
    for _side in ["", "r"]:
        setattr(Variable, f"__{_side}{_name}__", _binary(f"__{_side}{_name}__"))
for _name in ["lt", "le", "gt", "ge"]:
    setattr(Variable, f"__{_name}__", _binary(f"__{_name}__"))
for _name in ["neg", "pos", "abs", "invert"]:
    setattr(Variable, f"__{_name}__", _unary(f"__{_name}__"))


def living():
    """The variables that somebody holds, by number."""
    return dict(_living)


def wrap(raw):
    """A variable of the extension, which a function or a graph owns, as one of this class."""
    known = _living.get(raw.number)
    if known is not None:
        return known
    made = _t.Variable.__new__(Variable, None, True, "", None, None, raw)
    _living[raw.number] = made
    return made
