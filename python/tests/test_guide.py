"""The guide is true: the Python blocks of README.md and of every page of ``docs`` run, and print what the page says.

The blocks of a page run in order in one namespace, in a process of its own. A ``text`` block that follows a Python block is what
that prints; ``...`` in it stands for anything. In a ``text about`` block numbers are those of one machine: they may differ, the
words may not. The programs of ``examples`` are held to the indented lines that
end their docstring in the same way.
"""

import ast
import contextlib
import io
import linecache
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
# A fence: its language, whether it is about so, and what it holds.
BLOCK = re.compile(r"^```([\w,]*)( about)?\n(.*?)^```$", re.S | re.M)


def fits(expected, printed, about=False):
    """Whether it was printed, whatever stands where there are dots; about so, if numbers do not count."""

    def tidy(text):
        lines = [line.rstrip() for line in text.strip().splitlines()]
        if about:
            lines = [re.sub(r"[ \d.,%]*\d[\d.,%]* *", " # ", line) for line in lines]
        return "\n".join(lines)

    # Of four dots the last three: the first is printed.
    pattern = ".*".join(re.escape(part) for part in re.split(r"\.{3}(?!\.)", tidy(expected)))
    return re.fullmatch(pattern, tidy(printed), re.S) is not None


def blocks(text):
    """The Python blocks of a page: at which line, the program, and what it should print, if the page says so."""
    found = list(BLOCK.finditer(text))
    for block, after in zip(found, [*found[1:], None]):
        if block[1] == "python":
            between = after and text[block.end():after.start()]
            told = after and after[1] == "text" and not between.strip()
            yield text[:block.start(3)].count("\n"), block[3], (after[3], bool(after[2])) if told else None


def run_page(path):
    """Runs a page, in this process; the first block that prints something else ends it."""
    name = os.path.relpath(path, ROOT)
    names = {"__name__": "__main__"}
    for line, program, expected in blocks(pathlib.Path(path).read_text(encoding="utf-8")):
        # Lines are those of the page, for tracebacks, for the ledger and for what reads sources.
        program = "\n" * line + program
        linecache.cache[name] = (len(program), None, program.splitlines(True), name)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, name, "exec"), names)
        if expected is not None and not fits(expected[0], printed.getvalue(), expected[1]):
            sys.exit(f"{name}:{line}: expected\n{expected[0]}\nprinted\n{printed.getvalue()}")


def run(*arguments, folder):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=folder,
                          env={**os.environ, "TONNAGE_THREADS": "2"})


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_runs_and_prints_what_it_says(page, tmp_path):
    made = run(__file__, page, folder=tmp_path)
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_prints_what_its_header_says(program, tmp_path):
    header = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8")))
    told = textwrap.dedent("\n".join(re.findall(r"^    .*$", header, re.M)))
    assert told, "a header ends with what the program prints, indented"
    made = run(program, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert fits(told, made.stdout), made.stdout


def test_what_a_page_says_is_compared():
    assert fits("a ... b\nc", "a 1.5 b  \nc\n") and not fits("a\nb", "a\nc") and not fits("a", "a\nb")
    assert fits("a 0.... b", "a 0.5 b") and not fits("a 0.... b", "a 05 b")
    assert fits("1.5 MiB, 10 steps", "22 MiB,   9 steps", True) and not fits("1.5 MiB", "1.5 KiB", True)
    page = "```python\nx\n```\n\n```text about\nout\n```\n```python\ny\n```\nwords\n```text\nother\n```\n"
    assert [(program, told) for _, program, told in blocks(page)] == [("x\n", ("out\n", True)), ("y\n", None)]


if __name__ == "__main__":
    run_page(sys.argv[1])
