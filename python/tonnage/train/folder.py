"""Folders of checkpoints: one process at a time writes to one, and its state file is read as it was written."""

import os
import weakref
import zlib

from .. import _tonnage as _t

_MARK = b"# crc32: "
_held = weakref.WeakKeyDictionary()


def hold(owner, folder):
    """Takes a folder for this process, until ``owner`` goes or releases it. Where another process has it, the error names that."""
    folder = os.path.abspath(folder)
    locks = _held.setdefault(owner, {})
    if folder not in locks:
        os.makedirs(folder, exist_ok=True)
        locks[folder] = _t.FolderLock(folder)
    locks[folder].check()


def release(owner):
    """Gives the folders back that an object holds."""
    _held.pop(owner, None)


def write_state(path, text):
    """Writes a text with its checksum, as a comment; it appears whole or not at all."""
    _t.save_text(path, f"{text}{_MARK.decode()}{zlib.crc32(text.encode()):08x}\n")


def read_state(path):
    """Reads it back; a text without a checksum as it is. ``None`` where there is no file."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    text, mark, found = data.rpartition(_MARK)
    if mark and found != f"{zlib.crc32(text):08x}\n".encode():
        from ..errors import DataLossError

        raise DataLossError(None, None, f"{path} is not as it was saved: the checksum is another")
    return data.decode(errors="replace")
