"""``tf.compat``: programs in the manner of TensorFlow 1, and the names of TensorFlow 2."""


def __getattr__(name):
    import importlib

    if name == "v1":
        return importlib.import_module(".v1", __name__)
    if name == "v2":
        return importlib.import_module("tonnage")
    raise AttributeError(f"module 'tonnage.compat' has no attribute {name!r}; there are v1, v2 and conversions of text")


def as_text(bytes_or_text, encoding="utf-8"):
    """Text of bytes or text."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text).decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_str(bytes_or_text, encoding="utf-8"):
    """Text of bytes or text."""
    return as_text(bytes_or_text, encoding)


def as_bytes(bytes_or_text, encoding="utf-8"):
    """Bytes of text or bytes."""
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_str_any(value, encoding="utf-8"):
    """Text of anything; bytes are decoded."""
    return as_str(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path):
    """The text of a path."""
    return as_str_any(path.__fspath__()) if hasattr(path, "__fspath__") else path
