"""``tf.random``: numbers that take no memory until they are written, the same on any number of threads."""

from . import _tonnage as _t
from ._shape import TensorShape as _TensorShape, _lengths_of

_seeds = {"global": None, "count": 0}


def set_seed(seed):
    """Lets all random numbers start again from a seed."""
    number = int(seed)
    _seeds["global"], _seeds["count"] = number, 0
    _t.set_seed(number & 0xFFFFFFFFFFFFFFFF)


def _seed(seed):
    """A seed of one op: as in TensorFlow each call draws others, and a program that is run again the same."""
    if seed is None:
        return None
    if _t.is_symbolic():
        return None  # fresh ones each call; fixed ones are what the stateless ops are for
    _seeds["count"] += 1
    return [int(seed), int(_seeds["global"] or 0), _seeds["count"]]


def _philox(alg):
    """There is one algorithm; asking for another one warns once."""
    if str(getattr(alg, "name", alg)).lower() not in ("none", "auto_select", "philox", "1", "3"):
        from ._notices import no_effect

        no_effect("tf.random", alg=alg)


def _scaled(made, mean, stddev):
    if not _is(stddev, 1):
        made = made * _t.to_tensor(stddev, None, made.dtype)
    return made if _is(mean, 0) else made + _t.to_tensor(mean, None, made.dtype)


def _is(value, number):
    return isinstance(value, (int, float)) and value == number


def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    """Numbers of the normal distribution.

    >>> tf.random.normal([1000, 1000]).is_recipe   # takes no memory
    True
    """
    return _scaled(_t.random_normal(shape, dtype, _seed(seed)), mean, stddev)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    """The same, none further than two deviations away."""
    return _scaled(_t.random_truncated_normal(shape, dtype, _seed(seed)), mean, stddev)


def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None, name=None):
    """Numbers between two bounds, the upper one not included."""
    return _uniform(shape, minval, maxval, dtype, _seed(seed))


def _uniform(shape, minval, maxval, dtype, seed):
    dtype = _t.DType(dtype)
    if dtype.is_integer:
        if maxval is None:
            raise ValueError("Must specify maxval for integer dtype " + dtype.name)
        if int(minval) < dtype.min or int(maxval) - 1 > dtype.max:
            raise ValueError(f"random: {dtype.name} has no numbers from {int(minval)} up to, without, {int(maxval)}")
        return _t.random_int(int(minval), int(maxval), shape, dtype, seed)
    high = 1 if maxval is None else maxval
    if all(isinstance(v, (int, float)) for v in (minval, high)):
        return _t.random_uniform(float(minval), float(high), shape, dtype, seed)
    made = _t.random_uniform(0.0, 1.0, shape, dtype, seed)
    low, high = (_t.to_tensor(v, None, dtype) for v in (minval, high))
    return made * (high - low) + low


def shuffle(value, seed=None, name=None):
    """The rows in a random order."""
    return _t.random_shuffle(value, _seed(seed))


def categorical(logits, num_samples, dtype="int64", seed=None, name=None):
    """Classes, drawn by their logits."""
    return _t.cast(_t.random_categorical(logits, int(num_samples), _seed(seed)), dtype)


def gamma(shape, alpha, beta=None, dtype="float32", seed=None, name=None):
    """Numbers of the gamma distribution."""
    return _gamma(shape, alpha, beta, dtype, _seed(seed))


def _gamma(shape, alpha, beta, dtype, seed):
    alpha = _t.to_tensor(alpha, dtype, None)
    alpha = _t.broadcast_to(alpha, list(_TensorShape(shape)) + _lengths_of(alpha))
    made = _t.random_gamma(alpha, seed)
    return made if beta is None else made / beta


def poisson(shape, lam, dtype="float32", seed=None, name=None):
    """Numbers of the Poisson distribution."""
    lam = _t.to_tensor(lam, None, dtype)
    lam = _t.broadcast_to(lam, list(_TensorShape(shape)) + _lengths_of(lam))
    return _t.cast(_t.random_poisson(lam, _seed(seed)), dtype)


def stateless_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg="auto_select"):
    """Numbers of the normal distribution that the seed alone decides."""
    _philox(alg)
    return _scaled(_t.random_normal(shape, dtype, seed), mean, stddev)


def stateless_truncated_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg="auto_select"):
    """The same, none further than two deviations away."""
    _philox(alg)
    return _scaled(_t.random_truncated_normal(shape, dtype, seed), mean, stddev)


def stateless_uniform(shape, seed, minval=0, maxval=None, dtype="float32", name=None, alg="auto_select"):
    """Numbers between two bounds that the seed alone decides.

    >>> a, b = (tf.random.stateless_uniform([2], seed=[1, 2]) for _ in range(2))
    >>> bool(tf.reduce_all(a == b))
    True
    """
    _philox(alg)
    return _uniform(shape, minval, maxval, dtype, seed)


def stateless_categorical(logits, num_samples, seed, dtype="int64", name=None):
    """Classes, drawn by their logits and the seed alone."""
    return _t.cast(_t.random_categorical(logits, int(num_samples), seed), dtype)


def stateless_gamma(shape, seed, alpha, beta=None, dtype="float32", name=None):
    """Numbers of the gamma distribution that the seed alone decides."""
    alpha = _t.broadcast_to(_t.to_tensor(alpha, None, dtype), shape)
    return _gamma([], alpha, beta, dtype, seed)


def stateless_binomial(shape, seed, counts, probs, output_dtype="int32", name=None):
    """How many of so many tries succeed, each with a probability; the seed alone decides.

    Counted try by try, so that it takes as long as the largest count is.

    >>> tf.random.stateless_binomial([3], seed=[1, 2], counts=5.0, probs=1.0).numpy().tolist()
    [5, 5, 5]
    """
    counts, probs = (_t.broadcast_to(_t.cast(_t.to_tensor(v, None, None), "float32"), shape) for v in (counts, probs))
    if counts.is_symbolic:
        from .errors import DataDecideError

        raise DataDecideError("how many tries a binomial number has")
    most = int(_t.reduce_max(counts, None, False)) if counts.shape.num_elements() else 0
    tries = _t.random_uniform(0.0, 1.0, [most, *_lengths_of(counts)], "float32", seed)
    numbers = _t.reshape(_t.count(0, 1, [most], "float32"), [most] + [1] * counts.ndim)
    done = _t.Op("logical_and", "logical_and", ["x", "y"])(tries < probs, numbers < counts)
    return _t.reduce_sum(_t.cast(done, output_dtype), 0, False)


def fold_in(seed, data, alg="auto_select"):
    """Another seed, by a number. No other seed, of ``split`` or of another number, draws the same.

    >>> tf.random.fold_in([1, 2], 7).shape
    TensorShape([2])
    """
    _philox(alg)
    number = (int(data) + 2**63) % 2**64 - 2**63
    return _t.to_tensor(_t.fold_in_seed(seed, number), getattr(seed, "dtype", "int32"), None)


def split(seed, num=2, alg="auto_select"):
    """Several other seeds, which have nothing to do with each other.

    >>> tf.random.split([1, 2], 3).shape
    TensorShape([3, 2])
    """
    _philox(alg)
    made = _t.to_tensor(_t.split_seed(seed, int(num)), getattr(seed, "dtype", "int32"), None)
    return _t.reshape(made, [int(num), 2])


# The first word of the seeds that generators draw from, so that no seed of a user's is among them.
_GENERATOR = int.from_bytes(b"generato", "big")


class Generator:
    """Random numbers of its own: the same seed gives the same ones in the same order."""

    def __init__(self, seed=0):
        self._words, self._count = [int(seed)], 0

    @classmethod
    def from_seed(cls, seed, alg=None):
        """A generator that starts from a seed."""
        _philox(alg)
        return cls(seed)

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        """A generator that starts anywhere."""
        import os

        _philox(alg)

        return cls(int.from_bytes(os.urandom(4), "little"))

    def _next(self):
        if _t.is_symbolic():
            return None  # in a function: fresh ones each call
        return self._draw()

    def _draw(self):
        """A seed that was not drawn from before."""
        self._count += 1
        return [_GENERATOR, *self._words, self._count]

    def reset_from_seed(self, seed):
        """Starts again from a seed."""
        self._words, self._count = [int(seed)], 0

    def split(self, count=1):
        """Other generators, which have nothing to do with each other."""
        made = [Generator() for _ in range(count)]
        for generator, words in zip(made, _t.split_seed(self._draw(), count)):
            generator._words = list(words)
        return made

    def normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None):
        """Numbers of the normal distribution."""
        return stateless_normal(shape, self._next(), mean, stddev, dtype)

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None):
        """The same, none further than two deviations away."""
        return stateless_truncated_normal(shape, self._next(), mean, stddev, dtype)

    def uniform(self, shape, minval=0, maxval=None, dtype="float32", name=None):
        """Numbers between two bounds."""
        return stateless_uniform(shape, self._next(), minval, maxval, dtype)

    def uniform_full_int(self, shape, dtype="uint64", name=None):
        """All bits of integers."""
        return _t.random_bits(shape, dtype, self._next())


_default = None


def get_global_generator():
    """The generator that programs share."""
    global _default
    if _default is None:
        _default = Generator.from_non_deterministic_state()
    return _default


def set_global_generator(generator):
    """Lets programs share that generator."""
    global _default
    _default = generator


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
