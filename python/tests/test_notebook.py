"""What shows itself: in a notebook as HTML, in a terminal as a table, to programs as what it is."""

import html.parser
import json
import os

import numpy as np
import pytest

import tonnage as tf


class Tags(html.parser.HTMLParser):
    """The tags of a page, and whether each is closed; its text."""

    def __init__(self, page):
        super().__init__()
        self.seen, self.open, self.text, self.frames = [], [], "", []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.frames += [value for name, value in attrs if name == "srcdoc"]
        if tag not in ("br", "meta", "link", "input", "hr", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_data(self, data):
        self.text += data


def checked(page):
    tags = Tags(page)
    assert tags.open == []
    return tags


@tf.function
def step(x):
    return tf.tanh(x @ x)


SPEC = tf.TensorSpec([64, 64])


@pytest.mark.parametrize("arguments", [(), (step, SPEC)], ids=["now", "a plan"])
@pytest.mark.parametrize("name", [None, "r.html", "r.json", "r.txt", "r.csv", "r.trace.json"])
def test_a_report_shows_itself(name, arguments, tmp_path):
    held = tf.Variable(np.ones([100, 100], "f4"), name="held & <shown>")
    path = None if name is None else tmp_path / name
    step.get_concrete_function(SPEC)  # traced here, for both plans
    report = tf.memory.report(path, *arguments)
    (page,) = checked(report._repr_html_()).frames
    assert page.startswith("<!doctype html>") and "Tonnage" in page
    text = str(tf.memory.plan(*arguments)).rstrip() if arguments else str(tf.memory.info())
    assert repr(report) == str(report) == text
    assert ("matmul" if arguments else "test_notebook.py") in text
    if path is None:
        with pytest.raises(TypeError, match="path"):
            os.fspath(report)
    else:
        assert os.fspath(report) == str(path) and path.stat().st_size > 0
        if name == "r.txt":
            assert path.read_text() == text + "\n"
    del held


def test_what_is_held_prints_as_a_table_and_is_a_dictionary():
    held = tf.Variable(np.ones([1024, 256], "f4"), name="held")
    info = tf.memory.info()
    lines = repr(info).splitlines()
    assert str(info) == repr(info) and lines[0].startswith("in use") and not lines[0].startswith("{")
    heads = [line for line in lines if line.startswith("holder")]
    assert len(heads) == 1 and any("`held`" in line and "notebook.py:" in line and "1.00 MiB" in line for line in lines)
    # The columns are under one another.
    rows = lines[lines.index(heads[0]):]
    assert len({len(row.rstrip()) for row in rows if row.strip()}) == 1
    tags = checked(info._repr_html_())
    assert tags.seen.count("tr") == 1 + len(info["holders"]) and "1,048,576" in tags.text
    # For programs.
    assert isinstance(info, dict) and json.loads(json.dumps(info))["current"] == info["current"] >= 1 << 20
    assert dict(info).keys() >= {"current", "peak", "cached", "limit", "holders"}
    del held


def test_what_users_wrote_is_escaped():
    made = {}
    exec(compile("def f(tf, x):\n    return tf.exp(x) * 2.0\n", "<b>&\"'.py", "exec"), made)
    plan = tf.memory.plan(lambda x: made["f"](tf, x), SPEC)
    text = checked(plan._repr_html_())
    assert "b" not in text.seen[1:]
    held = eval(compile("tf.constant(np.arange(100.0))", "<i>.py", "eval"))
    assert "i" not in checked(tf.memory.info()._repr_html_()).seen
    del held
