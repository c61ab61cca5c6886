"""Loops and branches as plain Python over eager tensors: what the package's own are compared with."""


class Unrolled:
    """A namespace whose loops and branches are unrolled; all else is the package's."""

    def __init__(self, tf):
        self._tf = tf

    def __getattr__(self, name):
        return getattr(self._tf, name)

    def function(self, fn):
        return fn

    recompute_grad = function

    def _rows(self, elems):
        if isinstance(elems, tuple):
            return [tuple(e[i] for e in elems) for i in range(int(elems[0].shape[0]))]
        return [elems[i] for i in range(int(elems.shape[0]))]

    def _stacked(self, rows):
        if isinstance(rows[0], tuple):
            return tuple(self._tf.stack(list(parts)) for parts in zip(*rows))
        return self._tf.stack(rows)

    def map_fn(self, fn, elems, fn_output_signature=None):
        return self._stacked([fn(row) for row in self._rows(elems)])

    def vectorized_map(self, fn, elems):
        return self._stacked([fn(row) for row in self._rows(elems)])

    def scan(self, fn, elems, initializer=None, reverse=False):
        rows = self._rows(elems)
        if reverse:
            rows = rows[::-1]
        state, states = initializer, []
        for row in rows:
            state = row if state is None else fn(state, row)
            states.append(state)
        return self._stacked(states[::-1] if reverse else states)

    def foldl(self, fn, elems, initializer=None):
        return self._folded(fn, self._rows(elems), initializer)

    def foldr(self, fn, elems, initializer=None):
        return self._folded(fn, self._rows(elems)[::-1], initializer)

    def _folded(self, fn, rows, state):
        for row in rows:
            state = row if state is None else fn(state, row)
        return state

    def while_loop(self, cond, body, loop_vars, maximum_iterations=None):
        state, done = tuple(loop_vars), 0
        while bool(cond(*state)) and done != maximum_iterations:
            state, done = tuple(body(*state)), done + 1
        return state

    def cond(self, pred, true_fn, false_fn):
        return true_fn() if bool(pred) else false_fn()

    def switch_case(self, branch_index, branch_fns):
        at = int(branch_index)
        return branch_fns[at if 0 <= at < len(branch_fns) else -1]()

    def case(self, pred_fn_pairs, default):
        for pred, fn in pred_fn_pairs:
            if bool(pred):
                return fn()
        return default()
