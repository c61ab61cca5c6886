"""Variables: named values that are updated in place, with TensorFlow's methods and a tensor's operators."""

import weakref

from . import _tonnage as _t
from ._shape import IndexedSlices, TensorShape
from ._tensor import Ref
from .module import scoped

_living = weakref.WeakValueDictionary()


class Variable(_t.Variable):
    """A named value that is updated in place. One that starts as zeros, or as random numbers, takes no memory until
    it is written.

    >>> v = tf.Variable([1.0, 2.0])
    >>> v.assign_add([10.0, 10.0]).numpy()
    array([11., 12.], dtype=float32)
    """

    def __new__(cls, initial_value=None, trainable=None, validate_shape=True, caching_device=None, name=None,
                variable_def=None, dtype=None, import_scope=None, constraint=None, synchronization=None,
                aggregation=None, shape=None, **_):
        if callable(initial_value) and not isinstance(initial_value, (_t.Tensor, _t.Variable)):
            initial_value = initial_value()
        name = scoped(name or "Variable")
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
    def device(self):
        """Where it lives."""
        return "/job:localhost/replica:0/task:0/device:CPU:0"

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

    def assign(self, value, use_locking=False, name=None, read_value=True):
        """Gives it another value."""
        self.put(value)
        return self._after(read_value)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        """Adds to it."""
        self.add(delta)
        return self._after(read_value)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        """Takes from it."""
        self.sub(delta)
        return self._after(read_value)

    def _after(self, read_value):
        if _t.is_symbolic():
            return self.read_value() if read_value else None
        return self if read_value else None

    def scatter_update(self, sparse_delta, use_locking=False, name=None):
        """Gives rows other values."""
        self.put_rows(sparse_delta.indices, sparse_delta.values)
        return self._after(True)

    def scatter_add(self, sparse_delta, use_locking=False, name=None):
        """Adds to rows."""
        self.add(_rows(sparse_delta))
        return self._after(True)

    def scatter_sub(self, sparse_delta, use_locking=False, name=None):
        """Takes from rows."""
        self.sub(_rows(sparse_delta))
        return self._after(True)

    def scatter_nd_update(self, indices, updates, name=None):
        """Gives elements other values by their indices."""
        return self.assign(_t.scatter_nd_update(self, indices, updates))

    def scatter_nd_add(self, indices, updates, name=None):
        """Adds to elements by their indices."""
        return self.assign(_t.scatter_nd_add(self, indices, updates))

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
        return self.read_value()[key]

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


def _operator(name):
    def operator(self, *others):
        return getattr(self.read_value(), name)(*others)

    operator.__name__ = name
    return operator


for _name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"]:
    for _side in ["", "r"]:
        setattr(Variable, f"__{_side}{_name}__", _operator(f"__{_side}{_name}__"))
for _name in ["neg", "pos", "abs", "invert", "lt", "le", "gt", "ge"]:
    setattr(Variable, f"__{_name}__", _operator(f"__{_name}__"))


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
