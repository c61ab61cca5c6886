"""Tensors of strings: like TensorFlow's where they are made, moved, compared and shown; in functions, loops and datasets; and every byte in the ledger."""

import json
import pathlib
import pickle
import sys
import warnings

import numpy as np
import pytest

import tonnage as tf

HERE = pathlib.Path(__file__).parent
# At the end: the package that was installed comes before the sources beside it.
sys.path.append(str(HERE.parent))

from fuzz import text  # noqa: E402

EXPECTED = json.loads((HERE / "strings_expected.json").read_text(encoding="utf-8"))


def values(x):
    return x.numpy().tolist() if x.ndim else x.numpy()


@pytest.mark.parametrize("number", EXPECTED, ids=lambda number: f"{number}-{text.draw(int(number))[0]}")
def test_values_and_errors_of_tensorflow(number):
    found = json.loads(json.dumps(text.shown(tf, text.draw(int(number))[1])))
    assert not text.differ(EXPECTED[number], found), found


def test_a_tensor_of_strings_is_a_tensor():
    x = tf.constant(["tonnage", "é"])
    assert isinstance(x, tf.Tensor) and tf.is_tensor(x) and x.dtype == tf.string and x.shape == [2] and x.ndim == 1 and len(x) == 2
    assert x.numpy().dtype == object and values(x) == [b"tonnage", "é".encode()]
    assert repr(x) == "<tf.Tensor: shape=(2,), dtype=string, numpy=array([b'tonnage', b'\\xc3\\xa9'], dtype=object)>"
    assert str(tf.constant("a")) == "tf.Tensor(b'a', shape=(), dtype=string)" and f"{tf.constant('a')}" == "b'a'"
    assert [row.numpy() for row in x] == values(x) and values(pickle.loads(pickle.dumps(x))) == values(x)
    assert bool(tf.constant("a")) and not bool(tf.constant("")) and int(tf.constant("12")) == 12 and float(tf.constant("1.5")) == 1.5
    assert tf.string.name == "string" and tf.as_dtype("string") is tf.string and tf.as_dtype(np.str_) == tf.string and not tf.string.is_numeric
    assert pickle.loads(pickle.dumps(tf.string)) == tf.string


def test_what_becomes_strings():
    for given in (["a", "bc"], ("a", b"bc"), np.array(["a", "bc"]), np.array([b"a", b"bc"]), np.array(["a", b"bc"], object), [tf.constant("a"), "bc"], [np.str_("a"), np.bytes_(b"bc")]):
        assert values(tf.constant(given) if not isinstance(given, list) else tf.convert_to_tensor(given)) == [b"a", b"bc"]
    assert values(tf.constant("a", shape=[2, 1])) == [[b"a"], [b"a"]] and tf.constant([], tf.string).shape == [0]
    assert values(tf.zeros([2], tf.string)) == [b"", b""] and values(tf.fill([2], "x")) == [b"x", b"x"]


@pytest.mark.parametrize("call, error", [
    (lambda: tf.constant(["a", 1]), ValueError), (lambda: tf.constant([["a"], ["b", "c"]]), ValueError), (lambda: tf.constant("a", tf.int32), TypeError),
    (lambda: tf.constant(1, tf.string), TypeError), (lambda: tf.constant(np.array(["a", None], object)), ValueError), (lambda: tf.constant("a") == 1, TypeError),
    (lambda: tf.sin("a"), tf.errors.InvalidArgumentError), (lambda: tf.constant("a") < "b", tf.errors.InvalidArgumentError), (lambda: tf.constant("a") + 1, tf.errors.InvalidArgumentError),
    (lambda: tf.reduce_max(["a"]), tf.errors.InvalidArgumentError), (lambda: tf.cast("1", tf.int32), tf.errors.UnimplementedError), (lambda: tf.cast(1, tf.string), tf.errors.UnimplementedError),
    (lambda: tf.ones([1], tf.string), TypeError), (lambda: tf.strings.lower(5), TypeError), (lambda: tf.concat([["a"], [1]], 0), ValueError), (lambda: list(tf.constant("a")), TypeError),
    (lambda: hash(tf.constant("a")), TypeError), (lambda: tf.constant(["a"])[1], IndexError), (lambda: tf.Variable("a"), NotImplementedError), (lambda: tf.string.max, TypeError),
    (lambda: tf.strings.regex_replace("a", "(", ""), tf.errors.InvalidArgumentError), (lambda: tf.strings.format("{} {}", 1), ValueError), (lambda: tf.one_hot("a", 2), tf.errors.InvalidArgumentError),
    (lambda: tf.compat.as_bytes(5), TypeError), (lambda: tf.RaggedTensor([1], [0, 1]), ValueError),
], ids=str)
def test_mistakes_are_errors_of_tensorflow(call, error):
    with pytest.raises(error):
        call()


def planned(function, *args):
    """What a function makes of arguments by a plan."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*op by op.*")
        return tf.function(function)(*args)


def test_functions_plan_what_moves_and_reads_strings():
    def f(x, y, i):
        return {"equal": x == y, "rows": tf.gather(x, i), "length": tf.strings.length(x), "joined": tf.concat([x, y], 0), "chosen": tf.where(x == y, x, "none"),
                "stripped": tf.strings.strip(x), "part": tf.strings.substr(x, 0, 1), "hash": tf.strings.to_hash_bucket_fast(x, 10), "match": tf.strings.regex_full_match(x, "a.*")}

    x, y, i = tf.constant([" a", "ab", ""]), tf.constant(["ab", "ab", "c"]), tf.constant([2, 0])
    eager, made = f(x, y, i), planned(f, x, y, i)
    for key in eager:
        np.testing.assert_array_equal(made[key].numpy(), eager[key].numpy())


def test_one_trace_serves_all_texts():
    traces = []

    @tf.function
    def f(x):
        traces.append(1)
        return tf.strings.length(x), x == "a"

    for word in ("a", "bcd", "", "tonnage" * 100):
        assert int(f(tf.constant(word))[0]) == len(word)
    assert len(traces) == 1
    f.get_concrete_function(tf.TensorSpec([], tf.string))


def test_a_plan_knows_every_byte_of_a_call_with_strings():
    f = tf.function(lambda x: tf.strings.length(tf.gather(x, [1, 0])) * 2)
    x = tf.constant(["a" * 1000, "b" * 3000])
    predicted = f.plan(x)
    f(x)
    last = f.last_run()
    assert last["predicted"] == last["used"] == predicted.peak > 4000 and last["obtained"] == predicted.obtains


def test_functions_that_make_new_strings_run_op_by_op_and_say_so():
    f = tf.function(lambda x: tf.strings.upper(x))
    with pytest.warns(UserWarning, match="how many bytes strings have"):
        assert values(f(tf.constant(["a"]))) == [b"A"]
    assert values(planned(lambda: tf.strings.join(["a", tf.constant("b")], "-"))) == b"a-b"  # constants alone


def test_branches_and_loops():
    pick = tf.function(lambda p, x: tf.cond(p, lambda: x, lambda: tf.reverse(x, [0])))
    assert values(pick(tf.constant(False), tf.constant(["a", "b"]))) == [b"b", b"a"]

    @tf.function
    def total(words):
        n = tf.constant(0)
        for word in words:
            if word != "skip":
                n += tf.strings.length(word)
        return n

    assert int(total(tf.constant(["ab", "skip", "cde"]))) == 5
    with pytest.warns(UserWarning, match="how many bytes strings have"):
        assert values(tf.function(lambda p: tf.cond(p, lambda: tf.constant("a"), lambda: tf.constant("bcd")))(tf.constant(False))) == b"bcd"
    assert values(tf.map_fn(tf.strings.upper, tf.constant(["a", "bb"]))) == [b"A", b"BB"]
    assert values(tf.foldl(lambda s, x: tf.strings.join([s, x]), tf.constant(["a", "b", "c"]))) == b"abc"
    assert values(tf.scan(lambda s, x: tf.strings.join([s, x]), tf.constant(["a", "b"]), "-")) == [b"-a", b"-ab"]


def test_python_callbacks_get_and_give_strings():
    assert int(tf.py_function(lambda x: len(x.numpy()), [tf.constant("abc")], tf.int32)) == 3
    assert values(tf.numpy_function(lambda x: x + b"!", [tf.constant("abc")], tf.string)) == b"abc!"
    assert int(planned(lambda x: tf.py_function(lambda t: len(t.numpy()), [x], tf.TensorSpec([], tf.int32)), tf.constant("abc"))) == 3


def test_print_and_format_quote_strings(capsys):
    tf.print("x", tf.constant(["a", 'b"\n']), tf.constant(1 / 3), output_stream=sys.stdout)
    tf.function(lambda x: tf.print(x, output_stream=sys.stdout))(tf.constant("q"))
    assert capsys.readouterr().out == 'x ["a" "b\\"\\n"] 0.333333343\n"q"\n'


def test_datasets_of_strings(tmp_path):
    dataset = tf.data.Dataset.from_tensor_slices(["a b", "c", "d e f"])
    assert dataset.element_spec == tf.TensorSpec([], tf.string)
    assert [values(x) for x in dataset.batch(2)] == [[b"a b", b"c"], [b"d e f"]]
    assert [values(x) for x in dataset.map(tf.strings.length).batch(3)] == [[3, 1, 5]]
    assert [values(x) for x in dataset.filter(lambda x: tf.strings.length(x) > 1)] == [b"a b", b"d e f"]
    assert sorted(values(x) for x in dataset.shuffle(3, seed=1)) == [b"a b", b"c", b"d e f"]
    words = dataset.map(tf.strings.split)
    assert [values(x) for x in words.padded_batch(3)] == [[[b"a", b"b", b""], [b"c", b"", b""], [b"d", b"e", b"f"]]]
    assert [values(x) for x in words.unbatch()] == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert values(dataset.reduce(tf.constant(""), lambda s, x: tf.strings.join([s, x]))) == b"a bcd e f"
    assert [values(x) for x in dataset.concatenate(dataset).unique()] == [b"a b", b"c", b"d e f"]
    (tmp_path / "b.txt").write_bytes(b"x\ny\r\n\nlast")
    (tmp_path / "a.txt").write_bytes(b"")
    files = tf.data.Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    assert [values(x) for x in files] == [str(tmp_path / "a.txt").encode(), str(tmp_path / "b.txt").encode()]
    assert [values(x) for x in files.interleave(tf.data.TextLineDataset)] == [b"x", b"y", b"", b"last"]
    kept = dataset.cache(str(tmp_path / "kept"))
    assert [values(x) for x in kept] == [values(x) for x in kept] == [b"a b", b"c", b"d e f"]


def test_rows_of_splits():
    rows = tf.strings.split(["a b", "", "c d e"])
    assert repr(rows) == "<tf.RaggedTensor [[b'a', b'b'], [], [b'c', b'd', b'e']]>" and isinstance(rows, tf.RaggedTensor) and tf.is_tensor(rows)
    assert rows.shape == [3, None] and len(rows) == 3 and values(rows.row_lengths()) == [2, 0, 3] and values(rows.value_rowids()) == [0, 0, 2, 2, 2]
    assert values(rows[0]) == [b"a", b"b"] and values(rows[2, 1]) == b"d" and rows[1:].to_list() == [[], [b"c", b"d", b"e"]] and values(rows[-1]) == [b"c", b"d", b"e"]
    assert values(rows.to_tensor("-")) == [[b"a", b"b", b"-"], [b"-"] * 3, [b"c", b"d", b"e"]] and values(rows.to_tensor(shape=[2, 1])) == [[b"a"], [b""]]
    assert values(tf.strings.reduce_join(tf.strings.upper(rows), axis=-1, separator="+")) == [b"A+B", b"", b"C+D+E"]
    assert tf.strings.ngrams(rows, 2).to_list() == [[b"a b"], [], [b"c d", b"d e"]]
    assert values(tf.strings.unicode_encode(tf.strings.unicode_decode(["aé", "b"], "UTF-8"), "UTF-8")) == ["aé".encode(), b"b"]
    assert tf.RaggedTensor.from_row_lengths([1, 2, 3], [2, 1]).to_list() == [[1, 2], [3]]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2])


def test_the_ledger_has_offsets_sizes_and_bytes():
    def in_use():
        return tf.memory.info("cpu:0")["current"]

    before = in_use()
    x = tf.constant(["tonnage"] * 1000)
    assert in_use() - before == 7040 + 2 * 8000  # 7000 bytes are 110 lines of 64
    part = x[10:20]
    assert in_use() - before == 7040 + 2 * 8000 and values(part) == [b"tonnage"] * 10
    del x, part
    assert in_use() == before


def test_texts_and_bytes_by_their_names():
    assert tf.compat.as_bytes("é") == "é".encode() and tf.compat.as_str(b"a") == tf.compat.as_text("a") == "a" and tf.compat.as_str_any(5) == "5"
    assert tf.compat.path_to_str(pathlib.Path("/a")) == "/a"


def test_a_specification_of_strings():
    f = tf.function(lambda x: x[::-1], input_signature=[tf.TensorSpec([None], tf.string)])
    assert values(f(tf.constant(["a", "b"]))) == [b"b", b"a"] and values(f(["x"])) == [b"x"]
    with pytest.raises((TypeError, ValueError)):
        f(tf.constant([1, 2]))
