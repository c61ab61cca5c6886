"""``tf.compat``: programs in the manner of TensorFlow 1, and the names of TensorFlow 2."""


def __getattr__(name):
    import importlib

    if name == "v1":
        return importlib.import_module(".v1", __name__)
    if name == "v2":
        return importlib.import_module("tonnage")
    raise AttributeError(f"module 'tonnage.compat' has no attribute {name!r}; there are v1 and v2")


def as_str(value):
    """Text of bytes or text."""
    return value.decode() if isinstance(value, bytes) else str(value)


as_text = as_str


def as_bytes(value):
    """Bytes of text or bytes."""
    return value if isinstance(value, bytes) else str(value).encode()
