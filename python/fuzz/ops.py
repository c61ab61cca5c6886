"""The table of ops outside of networks and control flow, family by family."""

from . import algebra, elementwise, indexing, shapes

# A program is its seed and this order.
TABLE = [*elementwise.TABLE, *shapes.TABLE, *indexing.TABLE, *algebra.TABLE]
