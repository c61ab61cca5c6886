"""``tf.strings``: ops of tensors of strings. What gives numbers, and what only looks at a part of strings, is planned in functions; what makes new strings is made
at once, and lets a function run op by op: only the data say how many bytes there are. Loaded when it is touched.
"""

from . import _print
from . import _tonnage as _t
from ._ragged import RaggedTensor as _Ragged, of_rows as _of_rows
from .errors import InvalidArgumentError as _InvalidArgumentError, OutOfRangeError as _OutOfRangeError


def _bytes(text):
    """Text of any kind as bytes."""
    if isinstance(text, (str, bytes)):
        return text.encode() if isinstance(text, str) else text
    return _t.to_tensor(text, "string", None).item()


def _wrong(text):
    return _InvalidArgumentError(None, None, text)


def _each(x, op):
    """What an op makes of strings, in rows where they are."""
    if isinstance(x, _Ragged):
        return x.with_flat_values(op(x.flat_values))
    return op(x)


def _is_utf8(unit):
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise _wrong(f"unit is 'BYTE' or 'UTF8_CHAR', not {unit!r}")
    return unit == "UTF8_CHAR"


def _has_case(encoding):
    if encoding not in ("", "utf-8"):
        raise _wrong(f"only utf-8 or '' (no encoding) is supported, received {encoding}")
    return encoding == "utf-8"


def length(input, unit="BYTE", name=None):
    """How long strings are, in bytes or characters.

    >>> tf.strings.length(["abc", "\\u00e9"]).numpy().tolist()
    [3, 2]
    """
    utf8 = _is_utf8(unit)
    return _each(input, lambda x: _t.strings_length(x, utf8))


def lower(input, encoding="", name=None):
    """Strings in lower case: letters of ASCII, or all of them where the encoding is ``utf-8``."""
    utf8 = _has_case(encoding)
    return _each(input, lambda x: _t.strings_lower(x, utf8))


def upper(input, encoding="", name=None):
    """Strings in upper case: letters of ASCII, or all of them where the encoding is ``utf-8``.

    >>> tf.strings.upper("tonnage").numpy()
    b'TONNAGE'
    """
    utf8 = _has_case(encoding)
    return _each(input, lambda x: _t.strings_upper(x, utf8))


def strip(input, name=None):
    """Strings without white space at their ends."""
    return _each(input, _t.strings_strip)


def substr(input, pos, len, unit="BYTE", name=None):
    """Of each string ``len`` bytes or characters from ``pos`` on; a negative position counts from the end.

    >>> tf.strings.substr(["tonnage", "tensor"], 1, 3).numpy().tolist()
    [b'onn', b'ens']
    """
    utf8 = _is_utf8(unit)
    pos = _t.to_tensor(pos, None, getattr(len, "dtype", None))
    len = _t.to_tensor(len, None, pos.dtype)
    return _each(input, lambda x: _t.strings_substr(x, pos, len, utf8))


def join(inputs, separator="", name=None):
    """Strings of several tensors one behind the other, with a separator between them.

    >>> tf.strings.join([["a", "b"], "c"], "-").numpy().tolist()
    [b'a-c', b'b-c']
    """
    inputs = list(inputs)
    rows = next((x for x in inputs if isinstance(x, _Ragged)), None)
    if rows is None:
        return _t.strings_join(inputs, _bytes(separator))
    return rows.with_flat_values(join([x.flat_values if isinstance(x, _Ragged) else x for x in inputs], separator))


def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    """All strings along axes as one each; along all axes where none is named. Of several axes the first is joined first.

    >>> tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=-1, separator=" ").numpy().tolist()
    [b'a b', b'c d']
    """
    if isinstance(inputs, _Ragged):
        return _joined_rows(inputs, axis, keepdims, separator)
    inputs = _t.to_tensor(inputs, "string", None)
    axes = [*range(inputs.ndim)][::-1] if axis is None else [int(a) for a in _listed(axis)]
    if any(not -inputs.ndim <= a < inputs.ndim for a in axes):
        raise _OutOfRangeError(None, None, f"Invalid reduction dimension {axes} for input with {inputs.ndim} dimension(s)")
    return _t.strings_reduce_join(inputs, axes, _bytes(separator), bool(keepdims))


def _listed(axis):
    return axis if isinstance(axis, (list, tuple)) else axis.numpy().reshape(-1).tolist() if hasattr(axis, "numpy") else [axis]


def _joined_rows(rows, axis, keep, separator):
    """The innermost rows of a ragged tensor as a string each."""
    if axis not in (-1, rows.ragged_rank):
        raise NotImplementedError("reduce_join of a ragged tensor joins its innermost rows (axis=-1)")
    if isinstance(rows.values, _Ragged):
        return rows.with_values(_joined_rows(rows.values, -1, keep, separator))
    made = _t.strings_segment_join(rows.values, rows.value_rowids(), len(rows), _bytes(separator))
    return _t.expand_dims(made, 1) if keep else made


def unsorted_segment_join(inputs, segment_ids, num_segments, separator="", name=None):
    """The strings of each segment as one.

    >>> tf.strings.unsorted_segment_join(["a", "b", "c"], [1, 0, 1], 2, "-").numpy().tolist()
    [b'b', b'a-c']
    """
    return _t.strings_segment_join(inputs, segment_ids, int(num_segments), _bytes(separator))


def split(input, sep=None, maxsplit=-1, name=None):
    """The pieces of each string between separators, or between white space; at most ``maxsplit`` cuts. Of several strings rows of pieces.

    >>> tf.strings.split(["a b", "c"])
    <tf.RaggedTensor [[b'a', b'b'], [b'c']]>
    """
    separator = None if sep is None else _bytes(sep)
    return _rows(input, lambda x: _t.strings_split(x, separator, None if maxsplit < 0 else int(maxsplit)))


def bytes_split(input, name=None):
    """The bytes of each string, each a string.

    >>> tf.strings.bytes_split("ab").numpy().tolist()
    [b'a', b'b']
    """
    return _rows(input, _t.strings_bytes_split)


def _rows(x, cut):
    """Rows of what an op cuts each string into."""
    if isinstance(x, _Ragged):
        return x.with_flat_values(_rows(x.flat_values, cut))
    x = _t.to_tensor(x, "string", None)
    pieces, splits = cut(x)
    return _of_rows(pieces, splits, x.lengths)


def regex_full_match(input, pattern, name=None):
    """Which strings match a regular expression as a whole.

    >>> tf.strings.regex_full_match(["ab1", "ab"], "[a-z]+[0-9]").numpy().tolist()
    [True, False]
    """
    pattern = _bytes(pattern).decode()
    return _each(input, lambda x: _t.strings_regex_full_match(x, pattern))


def regex_replace(input, pattern, rewrite, replace_global=True, name=None):
    r"""Strings with another text in place of what a regular expression matches; in it ``\1`` is the first group.

    >>> tf.strings.regex_replace("tensor flow", r"(\w+) (\w+)", r"\2 \1").numpy()
    b'flow tensor'
    """
    pattern, rewrite = _bytes(pattern).decode(), _bytes(rewrite)
    return _each(input, lambda x: _t.strings_regex_replace(x, pattern, rewrite, bool(replace_global)))


def to_number(input, out_type="float32", name=None):
    """The numbers that strings say.

    >>> tf.strings.to_number(["1.5", "-2"]).numpy().tolist()
    [1.5, -2.0]
    """
    return _each(input, lambda x: _t.strings_to_number(x, _t.DType(out_type)))


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill="", name=None):
    """Numbers as strings, as C prints them.

    >>> tf.strings.as_string([1.5, 2.0], precision=2).numpy().tolist()
    [b'1.50', b'2.00']
    """
    if scientific and shortest:
        raise _wrong("Cannot select both scientific and shortest notation")
    if len(fill) > 1:
        raise _wrong("Fill string must be one or fewer characters")
    notation = "scientific" if scientific else "shortest" if shortest else "fixed"
    sizes = [None if n < 0 else int(n) for n in (precision, width)]
    return _each(input, lambda x: _t.strings_as_string(x, sizes[0], notation, sizes[1], fill))


def to_hash_bucket(input, num_buckets, name=None):
    """A bucket for each string by a quick hash, with TensorFlow's values."""
    return _each(input, lambda x: _t.strings_hash_bucket(x, int(num_buckets)))


def to_hash_bucket_fast(input, num_buckets, name=None):
    """A bucket for each string by its fingerprint, with TensorFlow's values.

    >>> tf.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3).numpy().tolist()
    [0, 2, 2]
    """
    return _each(input, lambda x: _t.strings_hash_bucket_fast(x, int(num_buckets)))


def to_hash_bucket_strong(input, num_buckets, key, name=None):
    """A bucket for each string by a hash with a key of two numbers, with TensorFlow's values."""
    if len(key) != 2:
        raise _wrong("Key must have 2 elements")
    key = [int(k) & (1 << 64) - 1 for k in key]
    return _each(input, lambda x: _t.strings_hash_bucket_strong(x, int(num_buckets), key))


def format(template, inputs, placeholder="{}", summarize=3, name=None):
    """A text with tensors in place of its placeholders, as ``tf.print`` shows them.

    >>> tf.strings.format("{} of {}", (tf.constant([1, 2]), tf.constant(2.5))).numpy()
    b'[1 2] of 2.5'
    """
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    pieces = template.split(placeholder)
    if len(pieces) - 1 != len(inputs):
        raise ValueError(f"The template expects {len(pieces) - 1} tensors, but the inputs only has {len(inputs)}. Please ensure the number of "
                         "placeholders in template matches inputs length.")
    tensors = [_t.to_tensor(x, None, None) for x in inputs]
    if any(x.is_symbolic for x in tensors):
        from .errors import DataDecideError

        raise DataDecideError("how many bytes strings have")
    shown = [_print.summary(x, summarize) for x in tensors]
    text = "".join(piece + text for piece, text in zip(pieces, [*shown, ""]))
    return _t.to_tensor(text.encode("utf-8", "surrogateescape"), "string", None)


def _instead(errors, replacement_char):
    """What stands for what is no character: ``None`` is an error, nothing an empty text."""
    if errors not in ("replace", "ignore", "strict"):
        raise _wrong(f"errors is 'strict', 'replace' or 'ignore', not {errors!r}")
    return None if errors == "strict" else "" if errors == "ignore" else chr(replacement_char)


def _controls(errors, replacement_char, replace):
    """What stands for control characters: themselves, nothing or another character."""
    return None if not replace else "" if errors == "ignore" else chr(replacement_char)


def unicode_decode(input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None):
    """The code points of strings.

    >>> tf.strings.unicode_decode(["a\\u00e9", "b"], "UTF-8")
    <tf.RaggedTensor [[97, 233], [98]]>
    """
    return unicode_decode_with_offsets(input, input_encoding, errors, replacement_char, replace_control_characters)[0]


def unicode_decode_with_offsets(input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None):
    """The code points of strings, and where each begins."""
    instead, controls = _instead(errors, replacement_char), _controls(errors, replacement_char, replace_control_characters)
    return _pair(input, lambda x: _t.strings_unicode_decode(x, input_encoding, instead, controls))


def unicode_split(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    """The characters of strings, each a string.

    >>> tf.strings.unicode_split("a\\u00e9", "UTF-8").numpy().tolist()
    [b'a', b'\\xc3\\xa9']
    """
    return unicode_split_with_offsets(input, input_encoding, errors, replacement_char)[0]


def unicode_split_with_offsets(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    """The characters of strings, each a string, and where each begins."""
    instead = _instead(errors, replacement_char)
    return _pair(input, lambda x: _t.strings_unicode_split(x, input_encoding, instead))


def _pair(x, cut):
    """Two tensors of rows that an op makes of each string."""
    if isinstance(x, _Ragged):
        made = _pair(x.flat_values, cut)
        return tuple(x.with_flat_values(part) for part in made)
    x = _t.to_tensor(x, "string", None)
    first, second, splits = cut(x)
    return _of_rows(first, splits, x.lengths), _of_rows(second, splits, x.lengths)


def unicode_encode(input, output_encoding, errors="replace", replacement_char=65533, name=None):
    """Rows of code points as strings.

    >>> tf.strings.unicode_encode([[97, 233], [98, 99]], "UTF-8").numpy().tolist()
    [b'a\\xc3\\xa9', b'bc']
    """
    instead = _instead(errors, replacement_char)
    if isinstance(input, _Ragged):
        if isinstance(input.values, _Ragged):
            return input.with_values(unicode_encode(input.values, output_encoding, errors, replacement_char))
        return _t.strings_unicode_encode(input.values, input.row_splits, output_encoding, instead)
    input = _t.to_tensor(input, None, _t.DType("int32"))
    if input.ndim == 0:
        raise ValueError("input_tensor's rank must be at least 1.")
    shape = input.lengths
    rows = 1
    for n in shape[:-1]:
        rows *= n
    splits = _t.count(0, shape[-1], [rows + 1], "int64")
    return _t.reshape(_t.strings_unicode_encode(_t.reshape(input, [-1]), splits, output_encoding, instead), shape[:-1])


def unicode_transcode(input, input_encoding, output_encoding, errors="replace", replacement_char=65533, replace_control_characters=False, name=None):
    """Strings in another encoding.

    >>> tf.strings.unicode_transcode(b"\\xe9", "latin-1", "UTF-8").numpy()
    b'\\xc3\\xa9'
    """
    instead, controls = _instead(errors, replacement_char), _controls(errors, replacement_char, replace_control_characters)
    return _each(input, lambda x: _t.strings_unicode_transcode(x, input_encoding, output_encoding, instead, controls))


def unicode_script(input, name=None):
    """The scripts that code points belong to, by ICU's numbers."""
    return _each(input, lambda x: _t.strings_unicode_script(_t.to_tensor(x, None, _t.DType("int32"))))


def ngrams(data, ngram_width, separator=" ", pad_values=None, padding_width=None, preserve_short_sequences=False, name=None):
    """Runs of strings that follow each other in a row, as one string each.

    >>> tf.strings.ngrams(["a", "b", "c"], 2).numpy().tolist()
    [b'a b', b'b c']
    """
    widths = [int(w) for w in (ngram_width if isinstance(ngram_width, (list, tuple)) else [ngram_width])]
    pads = [pad_values] * 2 if isinstance(pad_values, (str, bytes)) else pad_values or ["", ""]
    if len(pads) != 2 or not all(isinstance(pad, (str, bytes)) for pad in pads):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    if min(widths, default=0) < 1:
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    if padding_width is not None and padding_width < 1:
        raise ValueError("padding_width must be greater than 0.")
    if padding_width is not None and pad_values is None:
        raise ValueError("pad_values must be provided if padding_width is set.")
    padding = 0 if pad_values is None else padding_width
    ragged = isinstance(data, _Ragged)
    data = data if ragged else _t.to_tensor(data, "string", None)
    if not ragged and data.ndim == 0:
        raise ValueError("Data must have rank>0")
    rows = data if ragged else _as_rows(data)
    flat = _innermost(rows)
    pieces, splits = _t.strings_ngrams(flat.values, flat.row_splits, widths, _bytes(separator), [_bytes(pad) for pad in pads], padding,
                                       bool(preserve_short_sequences))
    made = _with_innermost(rows, _Ragged(pieces, splits, True))
    if ragged:
        return made
    return made.values if data.ndim == 1 else made.to_tensor()


def _as_rows(data):
    """A tensor as rows of its last axis."""
    lengths = data.lengths
    flat = data if data.ndim == 1 else _t.reshape(data, [-1])
    rows = 1
    for n in lengths[:-1]:
        rows *= n
    splits = _t.count(0, lengths[-1], [rows + 1], "int64")
    return _of_rows(flat, splits, lengths[:-1] or [1])


def _innermost(rows):
    return _innermost(rows.values) if isinstance(rows.values, _Ragged) else rows


def _with_innermost(rows, inner):
    return rows.with_values(_with_innermost(rows.values, inner)) if isinstance(rows.values, _Ragged) else inner


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
