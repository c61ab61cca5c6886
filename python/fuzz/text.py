"""Random calls over ``tf.strings``, with what TensorFlow makes of them: ``python -m fuzz.text --seed 0 --calls 2000`` where it is installed.

A call is drawn from its number alone. What both make of it is compared as dtypes, shapes and values; where TensorFlow raises an error, ours has to have its name.
The first of them are recorded in ``python/tests/strings_expected.json`` (``--record FILE``), for tests where TensorFlow is not installed.
"""

import argparse
import json
import random

PIECES = ["a", "b", "abc", " ", "  ", "\t", "\n", "x y", "é", "ß", "İ", "日本", "\U0001f600", "1", "-2", "3.5", "1e3", ",", ",,", "a,b", "Hello", "WORLD", "\u00a0", "_", "0x1f",
          "inf", "nan", "+", ".", "(", "aaa", "\\", "\x00", "\x01", "Σ", "tensor", "flow"]
# Without the surrogates that RE2 takes for characters.
BROKEN = [b"\xff", b"\xc3", b"a\xe6\x97", b"\xf0\x9f\x98", b"\x80\x80", b"\xf5\x80", b"\xc0\xaf"]
PATTERNS = ["a", "a+", "(a)(b)?", "[a-c]+", "[^a-z]", r"\d+", r"\s+", r"\w", r"\W+", r"\bx", "^a", "a$", "(?i)hello", ".", ".*", "a|b", "", "a{2}", "a{1,}?", "[[:alpha:]]+", r"\pL",
            r"\p{Han}", r"\p{^Latin}", r"[\d,]+", r"\x61", r"\Qa,b\E", "(?P<n>l+)", r"[]a]", "[a-]", r"[\w.]+", "(", "a**", "[", "a{1001}", "(?=a)", r"\1", "(?x)a", r"x*", "(?s).", r"\.",
            "[[a]", "&&|a", r"\C", r"\z", r"\AHello", "é|ß", "[é-ü]", r"\D\D", "(a*)*", "(?U)a+", "a{,2}", "a{2,1}", r"[^\s]+", r"\_"]
REWRITES = ["", "-", r"<\1>", r"\0\0", r"\\", r"\2", r"\9", r"\q", "x\\", r"é\1"]
ENCODINGS = ["UTF-8", "UTF-16-BE", "UTF-32-BE", "UTF-16-LE", "latin-1", "US-ASCII", "utf8", "nonsense"]
# What TensorFlow writes; ours splits text in the others too.
WRITTEN = ["UTF-8", "UTF-16-BE", "UTF-32-BE", "nonsense"]


class Dice(random.Random):
    """What calls are drawn with."""

    def text(self, broken=0.05):
        """A string, as text or as bytes."""
        if self.random() < broken:
            return b"".join(self.choice([*BROKEN, b"a", b"b "]) for _ in range(self.randrange(1, 4)))
        return "".join(self.choice(PIECES) for _ in range(self.choice([0, 1, 1, 2, 3, 6, 25])))

    def shape(self, most=2):
        """Lengths of axes."""
        return [self.choice([0, 1, 2, 3]) if self.random() < 0.9 else 5 for _ in range(self.randrange(most + 1))]

    def filled(self, shape, draw):
        """Nested lists of what is drawn."""
        return draw() if not shape else [self.filled(shape[1:], draw) for _ in range(shape[0])]

    def texts(self, shape=None, broken=0.05, without=None):
        """A tensor of strings, from a function of the package."""
        shape = self.shape() if shape is None else shape
        values = self.filled(shape, lambda: self.text(broken))
        if without is not None:
            values = self.filled(shape, lambda: self.text(0).replace(without, ""))
        return lambda tf: tf.reshape(tf.constant(values, tf.string), shape)

    def number(self):
        """A number as text."""
        form = self.choice(["{}", " {}", "{} ", "+{}", "{}x", "\t{}\n", "{}"])
        value = self.choice([self.randrange(-5, 300), self.uniform(-10, 10), self.uniform(-1, 1) * 10.0 ** self.randrange(-40, 40), 2**31, 2**63, -(2**31), 0x1F, "1e5", "inf", "-Inf", "nan",
                             "infinity", "", ".5", "5.", "1e", "0x1F", "-0X10", "1_0", "1e400", "-0", "00012", "1,5", "e5", "--1", "NaN"])
        return form.format(value)

    def numbers(self):
        """A tensor of numbers."""
        dtype = self.choice(["float32", "float64", "int32", "int64", "uint8", "int8", "bool", "float16", "uint32", "int16"])
        shape = self.shape()

        def draw():
            if dtype == "bool":
                return self.random() < 0.5
            if "float" in dtype:
                return self.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 1e-7, 123456.789, self.uniform(-10, 10), self.uniform(-1, 1) * 10.0 ** self.randrange(-4, 5)])
            return self.randrange(0, 120)

        values = self.filled(shape, draw)
        return lambda tf: tf.reshape(tf.constant(values, dtype), shape)


def draw(seed):
    """The call of that number: its name, and a function of the package."""
    dice = Dice(f"strings {seed}")
    name = dice.choice([*CALLS])
    return name, CALLS[name](dice)


def _of(name, *arguments, **named):
    """A call of a name of ``tf.strings``; arguments that can be called make tensors of a package."""
    def given(value, tf):
        return value(tf) if callable(value) else value

    def call(tf):
        module = tf
        *path, last = name.split(".")
        for part in path:
            module = getattr(module, part)
        return getattr(module, last)(*(given(a, tf) for a in arguments), **{k: given(v, tf) for k, v in named.items()})

    return call


def _substr(d):
    shape = d.shape()
    other = shape if d.random() < 0.7 else d.shape()
    pos = d.filled(other, lambda: d.randrange(-4, 5)) if d.random() < 0.6 else d.randrange(-3, 4)
    length = d.filled(other, lambda: d.randrange(-1, 5)) if isinstance(pos, list) and d.random() < 0.9 else d.randrange(-1, 5)
    # How many characters broken text has is told differently.
    unit = d.choice(["BYTE", "UTF8_CHAR", "CHAR"] if d.random() < 0.1 else ["BYTE", "UTF8_CHAR"])
    return _of("strings.substr", d.texts(shape, 0 if unit != "BYTE" else 0.05), pos, length, unit=unit)


def _join(d):
    shape = d.shape()
    parts = [d.texts(shape if d.random() < 0.8 else [] if d.random() < 0.8 else d.shape()) for _ in range(d.randrange(1, 4))]
    separator = d.choice(["", "-", ", "])
    return lambda tf: tf.strings.join([part(tf) for part in parts], separator)


def _reduce_join(d):
    shape = d.shape(3)
    axis = d.choice([None, *range(-len(shape), len(shape)), 7]) if d.random() < 0.7 else d.sample([*range(len(shape))], d.randrange(len(shape) + 1))
    return _of("strings.reduce_join", d.texts(shape), axis=axis, keepdims=d.random() < 0.3, separator=d.choice(["", "|"]))


def _segments(d):
    shape = d.shape(2) or [2]
    ids = d.filled(shape[: d.randrange(1, len(shape) + 1)], lambda: d.randrange(0, 3) if d.random() < 0.97 else -1)
    return _of("strings.unsorted_segment_join", d.texts(shape), lambda tf: tf.constant(ids, "int32"), 3, d.choice(["", "-"]))


def _decode(name):
    def drawn(d):
        named = {"errors": d.choice(["replace", "ignore", "strict"])}
        if d.random() < 0.3:
            named["replacement_char"] = d.choice([63, 65533, 97])
        if name != "strings.unicode_split" and d.random() < 0.2:
            named["replace_control_characters"] = True
        encoding = d.choice(WRITTEN if name == "strings.unicode_split" else ENCODINGS) if d.random() < 0.4 else "UTF-8"
        return _of(name, d.texts(d.shape(1), 0.2), encoding, **named)

    return drawn


def _transcode(d):
    return _of("strings.unicode_transcode", d.texts(None, 0.2), d.choice(ENCODINGS), d.choice(["UTF-8", "UTF-16-BE", "UTF-32-BE"]), errors=d.choice(["replace", "ignore", "strict"]))


def _encode(d):
    shape = d.shape(2) or [3]
    codes = d.filled(shape, lambda: d.choice([97, 233, 0x65E5, 0x1F600, 65, 10]) if d.random() < 0.95 else d.choice([0xD800, 0x110000, -1]))
    return _of("strings.unicode_encode", lambda tf: tf.reshape(tf.constant(codes, "int32"), shape), d.choice(["UTF-8", "UTF-16-BE", "UTF-32-BE"]), errors=d.choice(["replace", "ignore", "strict"]))


def _ngrams(d):
    shape = [d.randrange(0, 6)] if d.random() < 0.6 else [2, d.randrange(0, 5)]
    named = {"separator": d.choice([" ", "", "--"])}
    if d.random() < 0.5:
        named["pad_values"] = d.choice(["_", ("<", ">")])
        if d.random() < 0.5:
            named["padding_width"] = d.randrange(1, 4)
    if d.random() < 0.4:
        named["preserve_short_sequences"] = True
    return _of("strings.ngrams", d.texts(shape), d.choice([1, 2, 3, (1, 2), (2, 4)]), **named)


def _as_string(d):
    named = {}
    if d.random() < 0.4:
        named["width"] = d.randrange(0, 14)
    if d.random() < 0.4:
        named["fill"] = d.choice(["", " ", "0", "-", "+", "x", "00"])
    if d.random() < 0.1:
        return _of("strings.as_string", d.texts(), **named)
    if d.random() < 0.4:
        named["precision"] = d.randrange(0, 9)
    if d.random() < 0.4:
        named[d.choice(["scientific", "shortest"])] = True
    return _of("strings.as_string", d.numbers(), **named)


def _equal(d):
    shape = d.shape()
    return _of(d.choice(["equal", "not_equal", "add"]), d.texts(shape), d.texts(shape if d.random() < 0.7 else []))


def _moved(d):
    shape = [d.randrange(1, 4), d.randrange(1, 4)]
    x, y, i = d.texts(shape), d.texts(shape), d.randrange(shape[0])
    return d.choice([
        lambda tf: tf.gather(x(tf), [i, 0, i]), lambda tf: tf.concat([x(tf), y(tf)], 0), lambda tf: tf.stack([x(tf), y(tf)], 1), lambda tf: tf.where(x(tf) == y(tf), x(tf), y(tf)),
        lambda tf: x(tf)[i], lambda tf: x(tf)[:, ::-1], lambda tf: tf.tile(x(tf), [2, 1]), lambda tf: tf.transpose(x(tf)), lambda tf: tf.reverse(x(tf), [0]),
        lambda tf: tf.boolean_mask(x(tf), tf.strings.length(x(tf)) > 1), lambda tf: tf.pad(x(tf), [[1, 0], [0, 2]], constant_values="pad"), lambda tf: tf.unique(tf.reshape(x(tf), [-1])).y,
        lambda tf: tf.unique_with_counts(tf.reshape(x(tf), [-1])).count, lambda tf: tf.repeat(x(tf), 2, axis=1), lambda tf: tf.roll(x(tf), 1, 0), lambda tf: tf.gather_nd(x(tf), [[i, 0]]),
        lambda tf: tf.tensor_scatter_nd_update(x(tf), [[i]], y(tf)[:1]), lambda tf: tf.scatter_nd([[i]], x(tf)[:1], shape), lambda tf: tf.math.count_nonzero(x(tf)),
        lambda tf: tf.expand_dims(x(tf), 1), lambda tf: tf.broadcast_to(x(tf)[:1], shape), lambda tf: tf.strings.format("{}", x(tf)), lambda tf: tf.slice(x(tf), [i, 0], [1, -1]),
    ])


CALLS = {
    "length": lambda d: _of("strings.length", d.texts(), unit=d.choice(["BYTE", "UTF8_CHAR"])),
    # With an encoding TensorFlow drops what is behind a character of zeros.
    "lower": lambda d: _of("strings.lower", d.texts(without="\0"), encoding=d.choice(["", "utf-8"])),
    "upper": lambda d: _of("strings.upper", d.texts(without="\0"), encoding=d.choice(["", "utf-8"])),
    "strip": lambda d: _of("strings.strip", d.texts()),
    "substr": _substr,
    "join": _join,
    "reduce_join": _reduce_join,
    "unsorted_segment_join": _segments,
    "split": lambda d: _of("strings.split", d.texts(), sep=d.choice([None, ",", " ", "a", "", "é", "a,"]), maxsplit=d.choice([-1, -1, 0, 1, 2])),
    "bytes_split": lambda d: _of("strings.bytes_split", d.texts()),
    "regex_replace": lambda d: _of("strings.regex_replace", d.texts(None, 0.1), d.choice(PATTERNS), d.choice(REWRITES), replace_global=d.random() < 0.7),
    "regex_full_match": lambda d: _of("strings.regex_full_match", d.texts(None, 0.1), d.choice(PATTERNS)),
    "to_number": lambda d: _of("strings.to_number", (lambda v: lambda tf: tf.constant(v))([d.number()]), d.choice(["float32", "float64", "int32", "int64", "uint32", "uint64", "uint8"])),
    "as_string": _as_string,
    "to_hash_bucket": lambda d: _of("strings.to_hash_bucket", d.texts(), d.choice([1, 10, 2**40, 0])),
    "to_hash_bucket_fast": lambda d: _of("strings.to_hash_bucket_fast", d.texts(), d.choice([1, 10, 2**62, -1])),
    "to_hash_bucket_strong": lambda d: _of("strings.to_hash_bucket_strong", d.texts(), d.choice([1, 10, 2**62]), [d.randrange(2**62), d.randrange(100)]),
    "unicode_decode": _decode("strings.unicode_decode"),
    "unicode_decode_with_offsets": _decode("strings.unicode_decode_with_offsets"),
    "unicode_split": _decode("strings.unicode_split"),
    "unicode_transcode": _transcode,
    "unicode_encode": _encode,
    "unicode_script": lambda d: _of("strings.unicode_script", (lambda v: lambda tf: tf.constant(v, "int32"))([d.choice([d.randrange(0x220), d.randrange(0x4E00, 0x9F00), 0x0431, 0x03B1, 0x1F600, -1, 0x110000]) for _ in range(4)])),
    "ngrams": _ngrams,
    "encode_base64": lambda d: _of("io.encode_base64", d.texts(), pad=d.random() < 0.5),
    "decode_base64": lambda d: _of("io.decode_base64", (lambda v: lambda tf: tf.constant(v))("".join(d.choice("aZ09-_=+A") for _ in range(d.randrange(9))))),
    "decode_raw": lambda d: _of("io.decode_raw", (lambda v: lambda tf: tf.constant(v))([d.choice(["abcdefgh", "01234567", "ab"]) for _ in range(d.randrange(1, 3))]),
                                d.choice(["uint8", "int16", "float32", "int64"]), little_endian=d.random() < 0.6, fixed_length=d.choice([None, None, 8, 16, 3])),
    "equal": _equal,
    "moved": _moved,
}


def shown(tf, call):
    """What a call makes, as JSON can hold it: dtypes, shapes and values, or the names of an error's classes."""
    try:
        return _shown(tf, call(tf))
    except Exception as error:  # noqa: BLE001
        return {"error": [c.__name__ for c in type(error).__mro__ if issubclass(c, Exception) and c not in (Exception, RuntimeError)]}


def _shown(tf, value):
    if isinstance(value, (list, tuple)):
        return [_shown(tf, part) for part in value]
    if isinstance(value, tf.RaggedTensor):
        return {"splits": [splits.numpy().tolist() for splits in value.nested_row_splits], "values": _shown(tf, value.flat_values)}
    array = value.numpy()
    flat = array.reshape(-1).tolist() if hasattr(array, "reshape") else [array]
    return {"dtype": value.dtype.name, "shape": list(value.shape), "values": [_plain(v) for v in flat]}


def _plain(value):
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value.hex() if isinstance(value, float) else value


def differ(expected, found):
    """Whether they are not the same. Of an error, ours has to have the name of theirs."""
    if "error" in expected:
        return "error" not in found or expected["error"][0] not in found["error"]
    return expected != found


def main():
    """Compares calls with TensorFlow, or records what it makes of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--record")
    given = parser.parse_args()
    import tensorflow

    calls = {number: draw(number) for number in range(given.seed, given.seed + given.calls)}
    theirs = {number: shown(tensorflow, call) for number, (_, call) in calls.items()}
    if given.record:
        with open(given.record, "w", encoding="utf-8") as file:
            rows = ",\n".join(f'"{number}": {json.dumps(made)}' for number, made in theirs.items())
            file.write("{\n" + rows + "\n}\n")
        return
    import tonnage

    wrong = 0
    for number, (name, call) in calls.items():
        ours = json.loads(json.dumps(shown(tonnage, call)))
        expected = json.loads(json.dumps(theirs[number]))
        if differ(expected, ours):
            wrong += 1
            print(f"{number} {name}\n  TensorFlow: {json.dumps(expected)[:400]}\n  Tonnage:    {json.dumps(ours)[:400]}")
    print(f"{len(calls)} calls, {wrong} differ")


if __name__ == "__main__":
    main()
