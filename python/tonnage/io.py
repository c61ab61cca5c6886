"""``tf.io``: files by the names that TensorFlow has for them, which are the system's; and bytes as numbers and as text."""

import glob as _glob
import os as _os
import shutil as _shutil

from . import _tonnage as _t


class gfile:
    """Files and folders."""

    @staticmethod
    def exists(path):
        """Whether there is a file or a folder."""
        return _os.path.exists(path)

    @staticmethod
    def isdir(path):
        """Whether there is a folder."""
        return _os.path.isdir(path)

    @staticmethod
    def listdir(path):
        """The names in a folder."""
        return _os.listdir(path)

    @staticmethod
    def join(path, *paths):
        """Paths one behind another."""
        return _os.path.join(path, *paths)

    @staticmethod
    def remove(path):
        """Removes a file."""
        _os.remove(path)

    @staticmethod
    def rmtree(path):
        """Removes a folder with all that is in it."""
        _shutil.rmtree(path)

    @staticmethod
    def mkdir(path):
        """Makes a folder."""
        _os.mkdir(path)

    @staticmethod
    def GFile(name, mode="r"):
        """Opens a file."""
        return open(name, mode)

    @staticmethod
    def makedirs(path):
        """Makes a folder, and those around it; nothing where it is there."""
        _os.makedirs(path, exist_ok=True)

    @staticmethod
    def glob(pattern):
        """The files that a pattern, or one of several, names."""
        patterns = [pattern] if isinstance(pattern, (str, bytes, _os.PathLike)) else pattern
        return [found for one in patterns for found in sorted(_glob.glob(_os.fspath(one)))]

    @staticmethod
    def copy(src, dst, overwrite=False):
        """Copies a file."""
        _free(dst, overwrite)
        _shutil.copyfile(src, dst)

    @staticmethod
    def rename(src, dst, overwrite=False):
        """Gives a file another name."""
        _free(dst, overwrite)
        _os.replace(src, dst)


def encode_base64(input, pad=False, name=None):
    """Strings in base 64, of characters that addresses of the web may have; filled up with ``=`` if ``pad`` is said.

    >>> tf.io.encode_base64("hello").numpy()
    b'aGVsbG8'
    """
    return _t.strings_encode_base64(input, bool(pad))


def decode_base64(input, name=None):
    """What strings in base 64 stand for."""
    return _t.strings_decode_base64(input)


def decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None):
    """The bytes of strings as numbers. Strings of different lengths are filled up, or cut, to ``fixed_length`` bytes.

    >>> tf.io.decode_raw(["ab"], tf.uint8).numpy().tolist()
    [[97, 98]]
    """
    return _t.strings_decode_raw(_t.to_tensor(input_bytes, "string", None), out_type, bool(little_endian), fixed_length)


def _free(path, overwrite):
    if not overwrite and _os.path.exists(path):
        from .errors import AlreadyExistsError

        raise AlreadyExistsError(None, None, f"file already exists: {path}")


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
