"""``tf.bitwise``: ops on the bits of integers."""

from ._names import BITWISE, made

globals().update(made(BITWISE))


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
