"""``tf.keras.backend`` and ``tf.keras.config``: what layers share. Names that were given, the dtype of floats, and what a
call tells the layers inside of it."""

import threading as _threading

from .. import _tonnage as _t
from ..module import camel_to_snake as _camel_to_snake

_names = {}
_settings = {"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}
_local = _threading.local()


def unique_name(name):
    """A name that no layer has yet: ``dense``, ``dense_1``, ``dense_2``."""
    if _t.is_tracing():
        return name  # each trace makes the same names: variables that a function owns are found again by them
    count = _names.get(name, 0)
    _names[name] = count + 1
    return name if count == 0 else f"{name}_{count}"


def name_of(cls):
    """The name of a layer that was given none."""
    return unique_name(_camel_to_snake(cls.__name__.lstrip("_")))


def clear_session(free_memory=True):
    """Forgets the names that were given, so that they start anew. There is no session: models go when nobody holds
    them."""
    _names.clear()
    if free_memory:
        import gc

        gc.collect()


reset_uids = clear_session


def floatx():
    """The dtype of weights."""
    return _settings["floatx"]


def set_floatx(value):
    """Sets the dtype of weights that are made from here on."""
    if value not in ("float16", "bfloat16", "float32", "float64"):
        raise ValueError(f"Unknown `floatx` value: {value}. Expected one of ('bfloat16', 'float16', 'float32', 'float64')")
    _settings["floatx"] = value


def epsilon():
    """A small number."""
    return _settings["epsilon"]


def set_epsilon(value):
    """Sets the small number."""
    _settings["epsilon"] = float(value)


def image_data_format():
    """Where the channels of images are."""
    return _settings["image_data_format"]


def set_image_data_format(data_format):
    """Sets where the channels of images are."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"The `data_format` argument must be one of 'channels_first', 'channels_last'. Received: "
                         f"{data_format!r}")
    _settings["image_data_format"] = data_format


def standardize_data_format(data_format):
    """The given one, or the one that is set."""
    if data_format is None:
        return image_data_format()
    before = image_data_format()
    set_image_data_format(str(data_format).lower())
    made = image_data_format()
    set_image_data_format(before)
    return made


class CallContext:
    """What an outermost call tells all layers inside of it."""

    __slots__ = ("training",)

    def __init__(self):
        self.training = None


def call_context():
    """The call that runs on this thread, or none."""
    return getattr(_local, "call", None)


def set_call_context(context):
    """Lets a call begin or end."""
    _local.call = context


def learning_phase():
    """Whether what runs is training."""
    context = call_context()
    return bool(context and context.training)


def eagerly(f):
    """What a function makes outside of anything that is traced."""
    return _t.call_eagerly(f)


def get_value(x):
    """The value of a variable or a tensor."""
    return x.numpy() if hasattr(x, "numpy") else x


def set_value(x, value):
    """Gives a variable another value."""
    x.assign(value)


def int_shape(x):
    """The lengths of a tensor."""
    return tuple(x.shape)
