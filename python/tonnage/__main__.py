"""``python -m tonnage program.py [args]``: runs a program for which ``import tensorflow`` is Tonnage.

``-m module`` and ``-c command`` are Python's own.
"""

import runpy
import sys

_USAGE = "usage: python -m tonnage [-m module | -c command | program.py] [arguments]"


def main(arguments):
    """Runs what the arguments say, as Python would."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments[0] in ("-m", "-c") and len(arguments) == 1:
        print(_USAGE, file=sys.stdout if arguments[:1] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    from ._as_tensorflow import install

    install()
    first, *rest = arguments
    if first == "-m":
        sys.argv = rest
        sys.path[0] = ""  # as with Python's own -m; there it stood for this module
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        import __main__

        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __main__.__builtins__})
    else:
        import os

        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
