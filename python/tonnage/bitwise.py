"""``tf.bitwise``: ops on the bits of integers."""

from ._names import BITWISE as _BITWISE, made as _made

globals().update(_made(_BITWISE))


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
