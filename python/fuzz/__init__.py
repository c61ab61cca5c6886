"""Random programs over the public package: no wrong number, no panic, no byte that was not planned.

A program is drawn from a seed (:mod:`fuzz.draw`, with the tables of :mod:`fuzz.ops`, :mod:`fuzz.nn` and
:mod:`fuzz.flow`), run in every way that must agree (:mod:`fuzz.check`), op by op in TensorFlow where that is installed
(:mod:`fuzz.peer`), and made small where something is wrong (:mod:`fuzz.shrink`)::

    python -m fuzz --seed 0 --graphs 1000
"""
