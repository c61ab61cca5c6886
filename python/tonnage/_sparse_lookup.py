"""Rows of a table that sparse tensors of numbers name, joined for each row of them."""

from . import _tonnage as _t
from ._segments import unsorted_segment_sum
from .math import sqrt
from .sparse import SparseTensor, fill_empty_rows, reorder, reshape


def embedding_lookup_sparse(params, sp_ids, sp_weights, combiner=None, max_norm=None, name=None, allow_fast_lookup=False):
    """For each row of ``sp_ids`` the rows of a table that it names, added up: by weights, and as a sum, a mean, or a sum over the root of the
    squares (``sqrtn``)."""
    from .nn import embedding_lookup

    combiner = combiner or "mean"
    if combiner not in ("sum", "mean", "sqrtn"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    rows = embedding_lookup(params, sp_ids.values, max_norm)
    weights = _t.fill([rows.lengths[0]], 1, rows.dtype) if sp_weights is None else _t.cast(sp_weights.values, rows.dtype)
    which, count = sp_ids.indices[:, 0], sp_ids.shape[0]
    wide = _t.reshape(weights, [-1] + [1] * (rows.ndim - 1))
    total = unsorted_segment_sum(rows * wide, which, count)
    if combiner == "sum":
        return total
    whole = unsorted_segment_sum(wide if combiner == "mean" else wide * wide, which, count)
    return total / (whole if combiner == "mean" else sqrt(whole))


def safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights=None, combiner="mean", default_id=None, max_norm=None, name=None,
                                 allow_fast_lookup=False):
    """The same along the last axis of numbers with any axes before it; where nothing is named, the row of ``default_id``, or zeros."""
    lengths = sparse_ids.shape.as_list()
    flat = reorder(reshape(sparse_ids, [-1, lengths[-1]]))
    weights = None if sparse_weights is None else reorder(reshape(sparse_weights, [-1, lengths[-1]]))
    filled, empty = fill_empty_rows(flat, default_id or 0)
    if weights is not None:
        weights = fill_empty_rows(weights, 1.0)[0]
    made = embedding_lookup_sparse(embedding_weights, SparseTensor(filled.indices, filled.values, filled.shape), weights, combiner, max_norm)
    if default_id is None:
        made = _t.where_(_t.reshape(empty, [-1] + [1] * (made.ndim - 1)), _t.zeros_like(made), made)
    return _t.reshape(made, lengths[:-1] + made.lengths[1:])
