"""What rewritten functions call: each decides between Python and control flow by what it is given."""

import builtins
import types

from .. import _nest
from .. import _tonnage as _t
from ..errors import DataDecideError


class Undefined:
    """A variable that has no value yet; to use it is Python's own error."""

    __slots__ = ("name",)

    def __init__(self, name):
        object.__setattr__(self, "name", name)

    def _fail(self, *args, **kwargs):
        raise UnboundLocalError(f"cannot access local variable {self.name!r} where it is not associated with a value: "
                                "it must be set before a loop, or in all branches, that tensors decide on")

    __getattr__ = _fail

    def __repr__(self):
        return f"<undefined {self.name}>"


for _name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "radd", "rsub", "rmul", "neg", "lt",
              "le", "gt", "ge", "call", "getitem", "iter", "len", "bool", "int", "float"]:
    setattr(Undefined, f"__{_name}__", Undefined._fail)


def undefined(name):
    """The start of a variable that control flow assigns."""
    return Undefined(name)


def returned(value):
    """What a function returns, which must have a value."""
    if isinstance(value, Undefined):
        value._fail()
    return value


def _symbolic(value):
    return isinstance(value, (_t.Tensor, _t.Variable)) and _t.is_tracing() and _t.to_tensor(value, None, None).is_symbolic


def _convertible(value):
    if isinstance(value, Undefined):
        return False
    if hasattr(value, "_tonnage_flatten"):
        return not _shapeless(value)
    if isinstance(value, (_t.Tensor, _t.Variable, bool, int, float)):
        return True
    if isinstance(value, (list, tuple, dict)):
        return builtins.all(_convertible(leaf) for leaf in _nest.flatten(value))
    return hasattr(value, "__array__")


def part(read, text):
    """An attribute or an element that control flow assigns, as far as it is there."""
    try:
        return read()
    except (AttributeError, LookupError, TypeError):
        return Undefined(text)


def is_defined(value):
    """Whether a variable has a value."""
    return not isinstance(value, Undefined)


class _Seen(Exception):
    """Ends a trace that was made to see which values it leaves; what was traced is gone then."""


# What traces that are made to see something saw: values of returns inside of loops, by name.
_looking = []


def _seen_in(run):
    """What a trace that ends by ``_Seen`` saw."""
    _looking.append({})
    try:
        run()
    except _Seen:
        pass
    finally:
        seen = _looking.pop()
    return {name: _blank(name, value) for name, value in seen.items()}


def _blank(name, value):
    """Zeros of the type of what a variable will be: they stand until it is."""
    if value is None or not _convertible(value):
        return value

    def leaf(value):
        value = _t.to_tensor(value, None, None)
        if None in value.lengths:
            raise DataDecideError(f"the shape of {name!r}")
        return _t.fill(value.lengths, 0, value.dtype)

    return value.blank() if hasattr(value, "is_shaped") else _nest.map_structure(leaf, value)


def _is_return(name):
    return name.startswith("__tonnage_value")


def if_stmt(test, yes, no, get, put, names, exported):
    """An ``if`` whose branches assign variables."""
    if not _symbolic(test):
        yes() if test else no()
        return
    start = dict(zip(names, get()))
    returns = [n for n in exported if _is_return(n) and isinstance(start[n], Undefined)]
    if returns and not _looking:
        # A return in one branch: what it returns has to be something in the other as well.
        def look():
            branches(True)
            raise _Seen

        start.update(_seen_in(look))
        returns = []
    seen = []

    def branches(looking):
        return _t.cond(test, branch(yes, looking), branch(no, looking))

    def branch(body, looking):
        def run():
            put([start[n] for n in names])
            body()
            values = dict(zip(names, get()))
            kept = {n: values[n] for n in exported if not isinstance(values[n], Undefined)}
            if looking:
                _looking[-1].update({n: kept.pop(n) for n in returns if n in kept})
            seen.append(kept)
            if len(seen) == 2:
                _check_agreement(*seen)
            return kept

        return run

    made = branches(bool(returns))
    put([made.get(n, Undefined(n)) for n in names])


def _check_agreement(first, second):
    for name in sorted(first.keys() ^ second.keys()):
        missing = "else" if name in first else "main"
        raise ValueError(f"{name!r} must also be initialized in the {missing} branch: a tensor decides between them, and "
                         f"{name!r} is used afterwards")
    for name in first:
        pair = [_t.to_tensor(v, None, None) if isinstance(v, (bool, int, float)) else v
                for v in (first[name], second[name])]
        if all(isinstance(v, (_t.Tensor, _t.Variable)) for v in pair) and pair[0].dtype != pair[1].dtype:
            raise TypeError(f"{name!r} has dtype {pair[0].dtype.name} in the main branch, but dtype {pair[1].dtype.name} in "
                            "the else branch")


def if_return(test, yes, no, get, put):
    """An ``if`` whose branches both return: each starts with the variables as they were."""
    if not _symbolic(test):
        return yes() if test else no()
    start, nothing = get(), []

    def branch(body):
        def run():
            put(start)
            made = body()
            nothing.append(made is None)
            if len(nothing) == 2 and nothing[0] != nothing[1]:
                missing = "main" if nothing[0] else "else"
                raise ValueError(f"the {missing} branch must also have a return statement: a tensor decides between them")
            return made

        return run

    return _t.cond(test, branch(yes), branch(no))


def if_exp(test, yes, no):
    """``yes if test else no``."""
    if not _symbolic(test):
        return yes() if test else no()
    return _t.cond(test, yes, no)


def _staged_loop(names, after, get, put, run):
    """Runs a loop over the variables that have values; the others are the body's own, unless they are used afterwards: those
    start as zeros."""
    start = dict(zip(names, get()))
    unknown = [n for n in names if n in after and isinstance(start[n], Undefined)]
    if unknown or builtins.any(_shapeless(v) for v in start.values()):
        def look():
            def leave(now):
                _looking[-1].update((n, now[n]) for n in unknown if not isinstance(now[n], Undefined))
                raise _Seen

            _carried_loop(names, dict(start), get, put, run, leave)

        start.update(_seen_in(look))
    made = _carried_loop(names, start, get, put, run, None)
    put([made[n] for n in names])


# What the loops that are traced were told about the shapes of their variables.
_options = []


def set_options(shape_invariants):
    """Says it of the innermost loop."""
    if _options and shape_invariants:
        _options[-1] = shape_invariants


def _carried_loop(names, start, get, put, run, look):
    carried = [n for n in names if _convertible(start[n])]
    fixed = {n: start[n] for n in names if n not in carried}

    def enter(values):
        state = dict(fixed)
        state.update(zip(carried, values))
        put([state[n] for n in names])

    def leave():
        now = dict(zip(names, get()))
        if look is not None:
            look(now)
        made = [_like(n, now[n], start[n]) for n in carried]
        for name, value in zip(carried, made):
            if _options[-1] and isinstance(value, _t.Tensor) and value.lengths != getattr(start[name], "lengths", []):
                raise DataDecideError(f"the shape of {name!r}")
        return made

    _options.append(None)
    try:
        made = run([start[n] for n in carried], enter, leave)
    finally:
        _options.pop()
    after = {n: (v if isinstance(v, Undefined) or not _changed(n, names, get, v) else Undefined(n))
             for n, v in fixed.items()}
    after.update(zip(carried, made))
    return after


def _shapeless(value):
    return not isinstance(value, Undefined) and getattr(value, "is_shaped", True) is False


def _changed(name, names, get, before):
    return dict(zip(names, get()))[name] is not before


def _like(name, value, start):
    if isinstance(value, Undefined):
        raise ValueError(f"{name!r} has a value before the loop and none after a round of it")
    if isinstance(start, (bool, int, float)) and not isinstance(value, (_t.Tensor, _t.Variable)):
        dtype = _t.to_tensor(start, None, None).dtype
        return _t.to_tensor(value, None, dtype)
    if isinstance(start, _t.Tensor) and isinstance(value, (bool, int, float)):
        return _t.to_tensor(value, None, start.dtype)
    return value


def while_stmt(test, body, get, put, names, after):
    """A ``while``."""
    while True:
        going = test()
        if _symbolic(going):
            break
        if not going:
            return
        body()

    def run(start, enter, leave):
        def condition(values):
            enter(values)
            return test()

        def round_(values):
            enter(values)
            body()
            return leave()

        return _t.while_loop(condition, round_, start)

    _staged_loop(names, after, get, put, run)


class SymbolicRange:
    """Counting up to a number that only the data know: what a ``for`` goes through."""

    def __init__(self, start, limit, delta, dtype=None):
        dtype = dtype or next((x.dtype for x in (limit, start, delta) if isinstance(x, _t.Tensor)), _t.DType("int32"))
        self.start, self.limit, self.delta = (_t.to_tensor(x, None, dtype) for x in (start, limit, delta))

    def __tf_tensor__(self):
        raise DataDecideError("the length of a range")


def for_stmt(iterated, going, body, get, put, names, after):
    """A ``for``."""
    if _t.is_tracing():
        from ..data.iterator import loops_at_run_time

        if loops_at_run_time(iterated):
            _for_iterator(iter_(iterated), going, body, get, put, names, after)
            return
    tensor = isinstance(iterated, (_t.Tensor, _t.Variable)) and _t.is_tracing()
    if not tensor and not isinstance(iterated, SymbolicRange):
        for item in iterated:
            body(item)
            if going is not None:
                on = going()
                if _symbolic(on):
                    raise TypeError("a tensor decides on `break` in a loop over Python values; loop over a tensor, or "
                                    "use tf.range")
                if not on:
                    return
        return
    if isinstance(iterated, SymbolicRange):
        first, limit, delta = iterated.start, iterated.limit, iterated.delta
        item = lambda i: i  # noqa: E731
    else:
        rows = _t.to_tensor(iterated, None, None)
        first, delta = _t.to_tensor(0, "int32", None), _t.to_tensor(1, "int32", None)
        limit = _t.shape_of(rows, "int32")[0]
        item = lambda i: _t.gather(rows, i, 0, 0)  # noqa: E731

    def run(start, enter, leave):
        def condition(values):
            counter, *state = values
            more = counter < limit
            if isinstance(iterated, SymbolicRange):
                more = ((delta > 0) & more) | ((delta < 0) & (counter > limit))
            if going is not None:
                enter(state)
                more = more & _t.to_tensor(going(), "bool", None)
            return more

        def round_(values):
            counter, *state = values
            enter(state)
            body(item(counter))
            return [counter + delta, *leave()]

        return _t.while_loop(condition, round_, [first, *start])[1:]

    _staged_loop(names, after, get, put, run)


def _for_iterator(iterator, going, body, get, put, names, after):
    """A ``for`` over an iterator of a dataset: until its end, which is found when the program runs."""

    def run(start, enter, leave):
        def iteration(values):
            enter(values[1:])
            body(iterator.get_next())
            state = leave()
            more = iterator._planned_has_next()
            if going is not None:
                more = more & _t.to_tensor(going(), "bool", None)
            return [more, *state]

        return _t.while_loop(lambda values: values[0], iteration, [iterator._planned_has_next(), *start])[1:]

    _staged_loop(names, after, get, put, run)


def and_(*parts):
    """``a and b``."""
    value = parts[0]()
    for part in parts[1:]:
        if _symbolic(value):
            value = _t.to_tensor(value, None, None) & _bool(part())
        elif not value:
            return value
        else:
            value = part()
    return value


def or_(*parts):
    """``a or b``."""
    value = parts[0]()
    for part in parts[1:]:
        if _symbolic(value):
            value = _t.to_tensor(value, None, None) | _bool(part())
        elif value:
            return value
        else:
            value = part()
    return value


def _bool(value):
    value = _t.to_tensor(value, None, None)
    return value if value.dtype == _t.DType("bool") else _t.cast(value, "bool")


def not_(value):
    """``not a``."""
    if not _symbolic(value):
        return not value
    return ~_bool(value)


def assert_(test, message):
    """``assert a, b``."""
    if not _symbolic(test):
        assert test, message()
        return
    from ..debugging import Assert

    text = message()
    Assert(test, [] if text is None else [text])


def print_(*values, **kwargs):
    """``print``: of tensors, when the program runs."""
    if builtins.any(_symbolic(v) for v in values):
        from .._print import print as tensor_print

        return tensor_print(*values, **kwargs)
    return builtins.print(*values, **kwargs)


def range_(*args):
    """``range``: of tensors, one that a ``for`` goes through."""
    if not builtins.any(_symbolic(a) for a in args):
        return builtins.range(*args)
    start, limit, delta = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    return SymbolicRange(start, limit, delta)


def len_(value):
    """``len``: of a tensor whose length is open, a tensor."""
    if isinstance(value, _t.Tensor) and value.ndim and value.lengths[0] is None:
        return _t.shape_of(value, "int32")[0]
    return builtins.len(value)


def iter_(value, *rest):
    """``iter``: of a dataset or its iterator, also while a function is traced."""
    if _t.is_tracing() and not rest:
        from ..data.iterator import in_a_trace

        return in_a_trace(value)
    return builtins.iter(value, *rest)


def counting(function):
    """What a ``for`` goes through is made by it: a range of tensors needs no size then."""
    from .._array import range as tensor_range

    if function is not tensor_range:
        return call(function)

    def make(start, limit=None, delta=1, dtype=None, name="range"):
        if builtins.any(_symbolic(a) for a in (start, limit, delta)):
            return SymbolicRange(*((0, start) if limit is None else (start, limit)), delta, dtype)
        return tensor_range(start, limit, delta, dtype)

    return make


_BUILTINS = {builtins.print: print_, builtins.range: range_, builtins.len: len_, builtins.iter: iter_}


def call(function):
    """A function that is called: a user's own is rewritten too."""
    if isinstance(function, types.BuiltinFunctionType) or isinstance(function, type):
        try:
            return _BUILTINS.get(function, function)
        except TypeError:
            return function
    if isinstance(function, (types.FunctionType, types.MethodType)):
        from . import converted

        return converted(function)
    return function
