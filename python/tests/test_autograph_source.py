"""Where AutoGraph finds the source of a function, and what it says where there is none."""

import linecache

import pytest

import tonnage as tf

PROGRAM = """
import tonnage as tf

def branch(x):
    if tf.reduce_sum(x) > 0:
        return x
    return -x

class Model:
    def branch(self, x):
        if tf.reduce_sum(x) > 0: return x
        return -x

def outer():
    @tf.autograph.experimental.do_not_convert
    def plain(x):
        return x

    def branch(x):
        return plain(x) if tf.reduce_sum(x) > 0 else -x
    return branch

pair = [lambda x: x if tf.reduce_sum(x) > 0 else -x, lambda x: x if tf.reduce_sum(x) > 3 else x * 0]
table = {
    "far": lambda x: (
        x if tf.reduce_sum(x) > 0
        else -x),
    "inner": lambda x: (lambda x: x if tf.reduce_sum(x) > 0 else -x)(x),
}
"""

FUNCTIONS = {
    "a function": "branch",
    "a method": "Model().branch",
    "a closure": "outer()",
    "the first lambda of a line": "pair[0]",
    "the second lambda of a line": "pair[1]",
    "a lambda inside of an expression": "table['far']",
    "a lambda inside of a lambda": "table['inner']",
}

NAMES = ["<cell[1]>", "<ipython-input-3-ab>", "<stdin>", "<string>", "cell 3", "In[7]", "/nowhere/ipykernel_12/345.py", "<doctest a.b[0]>",
         "<unknown>", "notebook:cell", "<>", "ünï.py"]


def defined(name, source):
    made = {"__name__": "defined_here"}
    exec(compile(source, name, "exec"), made)
    return made


@pytest.mark.parametrize("dated", [False, True], ids=["without a time", "with a time"])
@pytest.mark.parametrize("name", NAMES)
def test_what_linecache_knows_is_found_under_every_name(name, dated, monkeypatch):
    entry = (len(PROGRAM), 1.0 if dated else None, PROGRAM.splitlines(True), name)
    monkeypatch.setitem(linecache.cache, name, entry)
    made = defined(name, PROGRAM)
    for what, text in FUNCTIONS.items():
        function = tf.function(eval(text, made))
        for x in ([1.0, 1.0], [-1.0, -1.0]):
            wanted = [abs(v) if text != "pair[1]" else 0.0 for v in x]
            assert function(tf.constant(x)).numpy().tolist() == wanted, what
        assert function.traces == 1, what


@pytest.mark.parametrize("what", FUNCTIONS)
def test_a_function_without_source_says_so_in_the_error(what):
    function = eval(FUNCTIONS[what], defined("<nowhere>", PROGRAM))
    name = function.__qualname__
    with pytest.raises(TypeError) as caught:
        tf.function(function)(tf.constant([1.0]))
    text = str(caught.value)
    assert "AutoGraph could not rewrite" in text and "source is not known (it was defined in <nowhere>)" in text, text
    assert name.partition(".")[0] in text and text.count("AutoGraph") == 1, text


def test_of_a_file_that_changed_the_new_lines_are_read(tmp_path):
    file = tmp_path / "changing.py"
    for sign in "+-":
        file.write_text(f"def f(x):\n    if x > 0:\n        x = {sign}x\n    return x\n" + "#" * len(sign) * (sign == "-"))
        function = tf.function(defined(str(file), file.read_text())["f"])
        assert float(function(tf.constant(2.0))) == float(f"{sign}2")


def test_without_tensors_that_decide_no_source_is_needed():
    made = defined("<nowhere>", "def f(x, n):\n    return x * 2.0 if n > 1 else x\n")
    assert float(tf.function(made["f"])(tf.constant(2.0), 3)) == 4.0
