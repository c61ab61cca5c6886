"""Sizes that are not known while a function is traced: those that the data decide, and open ones of a signature."""

import inspect
import itertools

import numpy as np
import pytest

import tonnage as tf

ROWS = 6
MASK = np.array([True, False, True, True, False, True])
KEYS = np.array([3, 1, 3, 0, 0, 7])

# Ops whose result has a size that the data decide.
SELECT = {
    "boolean_mask": lambda x: tf.boolean_mask(x, tf.constant(MASK)),
    "boolean_mask of a comparison": lambda x: tf.boolean_mask(x, tf.constant(KEYS) > 0),
    "where and gather": lambda x: tf.gather(x, tf.where(tf.constant(MASK))[:, 0]),
    "unique and gather": lambda x: tf.gather(x, tf.unique(tf.constant(KEYS))[0] % ROWS),
    "dynamic_partition": lambda x: tf.dynamic_partition(x, tf.constant(KEYS) % 2, 2)[1],
    "mask of a mask": lambda x: tf.boolean_mask(tf.boolean_mask(x, tf.constant(MASK)), tf.constant([True, False, True, True])),
}

# What reads one or two of them.
USE = {
    "itself": lambda a, b: a,
    "sum of two": lambda a, b: a + b,
    "product": lambda a, b: tf.exp(a) * b,
    "where": lambda a, b: tf.where(a > 0.0, a, b),
    "relu": lambda a, b: tf.nn.relu(a) * b,
    "reduce_sum": lambda a, b: tf.reduce_sum(a),
    "reduce_mean": lambda a, b: tf.reduce_mean(a * b),
    "reduce_max": lambda a, b: tf.reduce_max(a, axis=0),
    "softmax": lambda a, b: tf.nn.softmax(a, axis=0),
    "cumsum": lambda a, b: tf.cumsum(a),
    "sort": lambda a, b: tf.sort(a, axis=0),
    "matmul": lambda a, b: tf.matmul(tf.reshape(a, [-1, 1]), tf.reshape(b, [-1, 1]), transpose_a=True),
    "outer product": lambda a, b: tf.reshape(a, [-1, 1]) * tf.reshape(b, [1, -1]),
    "tensordot": lambda a, b: tf.tensordot(a, b, axes=[[0], [0]]),
    "einsum": lambda a, b: tf.einsum("i...,i...->", a, b),
    "concat": lambda a, b: tf.concat([a, b * 2.0], 0),
    "stack": lambda a, b: tf.stack([a, b], 1),
    "slice": lambda a, b: (a * 1.5)[1:] * 2.0,
    "reverse": lambda a, b: tf.reverse(a, [0]) * b,
    "reshape of a transpose": lambda a, b: tf.reshape(tf.transpose(tf.stack([a, b], 0)), [-1]),
    "mask": lambda a, b: tf.boolean_mask(a, a > 0.0),
    "zeros_like": lambda a, b: tf.zeros_like(a),
    "ones_like": lambda a, b: tf.ones_like(a) * a,
    "shape": lambda a, b: tf.shape(a),
    "size": lambda a, b: tf.cast(tf.size(a), "float32") * a,
    "range": lambda a, b: tf.range(tf.shape(a)[0]),
    "mean squared error": lambda a, b: tf.keras.losses.MeanSquaredError()(a, b),
    "mean of integers": lambda a, b: tf.reduce_mean(tf.cast(a * 8.0, "int64")),
    "diagonal": lambda a, b: tf.linalg.diag_part(tf.reshape(a, [-1, 1]) * tf.reshape(b, [1, -1])) * tf.reshape(a, [-1]),
    "diagonal of columns": lambda a, b: tf.linalg.diag_part(tf.stack([a, b], -1)) * 2.0,
    "diagonal of two rows": lambda a, b: tf.linalg.diag_part(tf.stack([tf.reshape(a, [-1]), tf.reshape(b, [-1])], 0)),
    "trace": lambda a, b: tf.linalg.trace(tf.reshape(a, [-1, 1]) * tf.reshape(b, [1, -1])),
    "segments": lambda a, b: tf.math.unsorted_segment_sum(a, tf.range(tf.shape(a)[0]) % 2, 3),
}


def numbers(shape, seed):
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def arrays(values):
    return [None if v is None else tf.convert_to_tensor(v).numpy() for v in tf.nest.flatten(values)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("select", SELECT)
@pytest.mark.parametrize("shape", [(ROWS,), (ROWS, 3)])
def test_sizes_that_the_data_decide_work_in_functions_as_eagerly(select, shape):
    """Values and gradients; a function that runs op by op instead warns."""
    for name, use in USE.items():
        def program(x, y):
            with tf.GradientTape() as tape:
                tape.watch([x, y])
                made = use(SELECT[select](x), SELECT[select](y))
            return [made] + (tape.gradient(made, [x, y]) if made.dtype == tf.float32 else [])

        x, y = numbers(shape, 1), numbers(shape, 2)
        expected, got = arrays(program(x, y)), arrays(tf.function(program)(x, y))
        assert [v is None for v in expected] == [v is None for v in got], name
        for want, have in zip(expected, got):
            if want is not None:
                assert want.shape == have.shape, name
                np.testing.assert_allclose(have, want, 1e-5, 1e-6, err_msg=name)


def with_own_gradient(f):
    """A function with a gradient that recomputes it."""

    @tf.custom_gradient
    def wrapped(x):
        def gradient(dy):
            with tf.GradientTape() as tape:
                tape.watch(x)
                made = f(x)
            return tape.gradient(made, x, output_gradients=dy)

        return f(x), gradient

    return wrapped


# What stands between a tape and the op.
WRAPPED = {
    "function": lambda f: tf.function(f),
    "recompute_grad": lambda f: tf.recompute_grad(f),
    "custom_gradient": with_own_gradient,
    "recompute_grad of a function": lambda f: tf.recompute_grad(tf.function(f)),
    "function of recompute_grad": lambda f: tf.function(tf.recompute_grad(f)),
    "recompute_grad twice": lambda f: tf.recompute_grad(tf.recompute_grad(f)),
    "custom_gradient of recompute_grad": lambda f: with_own_gradient(tf.recompute_grad(f)),
    "recompute_grad of custom_gradient": lambda f: tf.recompute_grad(with_own_gradient(f)),
}

# What a wrapped function makes of what was selected; rules read none of it, some of it, or its size.
MADE = {
    "itself": lambda x, a: a * 1.0,
    "square": lambda x, a: tf.square(a),
    "product with a scalar": lambda x, a: tf.exp(a) * tf.reduce_sum(x),
    "mean": lambda x, a: a - tf.reduce_mean(a),
    "indices": lambda x, a: tf.cast(tf.where(tf.reshape(a, [-1]) > -9.0), "float32") * tf.reduce_sum(x),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wrap", WRAPPED)
@pytest.mark.parametrize("select", SELECT)
def test_a_tape_sees_through_what_returns_a_size_that_the_data_decide(wrap, select):
    """First and second gradients, of the result itself and of a number made of it, as without the wrapping."""

    def gradients(f, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                made = f(x)
                number = tf.reduce_sum(made * made)
            first = tf.convert_to_tensor(tape.gradient(number, x))
            squares = tf.reduce_sum(first * first)
        return [tape.gradient(made, x), first, outer.gradient(squares, x)]

    x = numbers([ROWS], 4)
    for name, made in MADE.items():
        f = lambda x: made(x, SELECT[select](x * 1.5))  # noqa: E731
        expected = arrays(gradients(f, x))
        wrapped = WRAPPED[wrap](f)
        for run in (gradients, tf.function(gradients)):
            for want, have in zip(expected, arrays(run(wrapped, x))):
                np.testing.assert_allclose(have, want, 1e-5, 1e-5, err_msg=name)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("other", ["another mask", "a longer mask", "a known size", "an argument's size"])
def test_sizes_that_nothing_proves_equal_are_compared_as_they_run(other):
    first = np.array([True, True, False, True])

    def program(x, y, m, n):
        a = tf.boolean_mask(x, m)
        b = y if n is None else tf.boolean_mask(y, n)
        return a * b + tf.reduce_sum(b) * a

    long = {"another mask": 4, "a longer mask": 9}.get(other)
    for count in (3, 2):
        y = numbers([long or count], 5)
        n = None if long is None else tf.constant(np.arange(long) < count)
        args = [numbers([4], 3), y, tf.constant(first), n]
        f = tf.function(program)
        if other == "an argument's size":
            f = f.get_concrete_function(tf.TensorSpec([4]), tf.TensorSpec([None]), tf.TensorSpec([4], "bool"), None)
        if count == 3:
            np.testing.assert_allclose(f(*args).numpy(), program(*args).numpy(), 1e-6)
            continue
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            f(*args)
        assert "[3]" in str(error.value) and "[2]" in str(error.value), error.value


LOOPS = {
    "map_fn": lambda body, rows: tf.map_fn(body, rows),
    "vectorized_map": lambda body, rows: tf.vectorized_map(body, rows),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("select", ["boolean_mask", "where and gather", "unique and gather"])
@pytest.mark.parametrize("traced", [False, True])
def test_rows_of_a_size_that_the_data_decide_are_refused_with_what_to_do(loop, select, traced):
    def program(rows):
        return LOOPS[loop](SELECT[select], rows)

    run = tf.function(program) if traced else program
    with pytest.raises(tf.errors.InvalidArgumentError, match="the data decide.*pad it to a known size") as error:
        run(numbers([2, ROWS], 0))
    assert "bad graph" not in str(error.value)
    reduced = LOOPS[loop](lambda row: tf.reduce_sum(SELECT[select](row)), numbers([2, ROWS], 0))
    assert reduced.shape == (2,)


@pytest.mark.parametrize("length, step", [(1, 1), (3, 1), (3, 2), (2, 3), (5, 5), (0, 2), (20, 4)])
@pytest.mark.parametrize("pad_end", [False, True])
def test_frames_of_an_open_signal_are_those_of_a_known_one(length, step, pad_end):
    def program(x):
        return tf.signal.frame(x, length, step, pad_end=pad_end, pad_value=7)

    open_ = tf.function(program).get_concrete_function(tf.TensorSpec([None, None]))
    for size in (0, 1, 4, 11, 12):
        x = numbers([2, size], size)
        count = -(-size // step) if pad_end else max(0, 1 + (size - length) // step)
        padded = np.pad(x.numpy(), [(0, 0), (0, length)], constant_values=7)
        expected = [[row[i * step:i * step + length] for i in range(count)] for row in padded]
        expected = np.array(expected, "float32").reshape(2, count, length)
        np.testing.assert_array_equal(program(x).numpy(), expected)
        np.testing.assert_array_equal(open_(x).numpy(), expected)


SIGNALS = {
    "rfft": lambda x: tf.signal.rfft(x),
    "rfft cut": lambda x: tf.signal.rfft(x, [4]),
    "irfft": lambda x: tf.signal.irfft(x, x * 0.0),
    "irfft of a length": lambda x: tf.signal.irfft(x, x, [6]),
    "eye": lambda x: tf.eye(tf.shape(x)[-1], dtype=x.dtype) * x[0],
    "set_diag": lambda x: tf.linalg.set_diag(tf.matmul(x, x, transpose_a=True), x[0]),
    "lstsq": lambda x: tf.linalg.lstsq(x, x[:, :1], 0.5),
    "zero_fraction": lambda x: tf.nn.zero_fraction(tf.nn.relu(x)),
    "weighted_moments": lambda x: tf.nn.weighted_moments(x, 0, 2.0),
    "dropout": lambda x: tf.nn.dropout(tf.nn.relu(x), 0.0, seed=1),
}


@pytest.mark.parametrize("name", SIGNALS)
def test_lengths_that_are_open_are_computed_with(name):
    open_ = tf.function(SIGNALS[name]).get_concrete_function(tf.TensorSpec([None, None]))
    for size in (3, 5, 8):
        x = numbers([4, size], size)
        for have, want in zip(arrays(open_(x)), arrays(SIGNALS[name](x))):
            np.testing.assert_allclose(have, want, 1e-4, 1e-5)


@pytest.mark.parametrize("length", [1, 6, 7, 8])
def test_a_spectrum_is_cut_or_padded_to_the_length_of_the_signal(length):
    for size in (1, 3, 4, 9):
        re, im = numbers([2, size], 1), numbers([2, size], 2)
        expected = np.fft.irfft(re.numpy() + 1j * im.numpy(), length)
        np.testing.assert_allclose(tf.signal.irfft(re, im, [length]).numpy(), expected, 1e-4, 1e-5)


def called(function, x, kind):
    """The calls that most functions take one of."""
    return {
        0: lambda: function(x), 1: lambda: function(x, x), 2: lambda: function(x, x, x), 3: lambda: function(x, 2),
        4: lambda: function(x, 2, 1), 5: lambda: function(x, [1]), 6: lambda: function(x, 0), 7: lambda: function([x, x], 0),
        8: lambda: function([x, x]), 9: lambda: function(2, x), 10: lambda: function(x, x, 2), 11: lambda: function(x, 2, 2, True),
        12: lambda: function(x, [0, 1]), 13: lambda: function(x, x, 0.5),
    }[kind]()


def public(module):
    """Functions of tensors: what takes functions, or changes how programs run, is not one."""
    others = {"function", "py_function", "numpy_function", "custom_gradient", "recompute_grad", "print", "init_scope", "made"}
    for name in sorted(set(dir(module)) - others):
        value = getattr(module, name)
        switch = any(part in name for part in ("enable", "disable", "eager"))
        if callable(value) and not name.startswith("_") and not inspect.isclass(value) and not switch:
            yield name, value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", ["", "nn", "math", "linalg", "signal", "random", "bitwise"])
@pytest.mark.parametrize("shape", [[None], [None, 3], [None, None], [2, None, None, 2]])
def test_no_function_computes_with_a_length_that_it_does_not_know(where, shape):
    module = getattr(tf, where) if where else tf
    wrong = []
    for name, function in public(module):
        for kind in range(14):
            traced = tf.function(lambda x, function=function, kind=kind: called(function, x, kind), autograph=False)
            try:
                traced.get_concrete_function(tf.TensorSpec(shape))
            except Exception as error:
                if "NoneType" in str(error):
                    wrong.append(f"{name} ({kind}): {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("shape", [[None, 2], [None, None], [3, 2]])
def test_the_graph_of_an_open_signature_is_shown(shape):
    f = tf.function(lambda x: tf.reduce_sum(x * 2.0, axis=0))
    assert "sum" in f.get_concrete_function(tf.TensorSpec(shape)).graph.lower()


@pytest.mark.parametrize("shape", list(itertools.product([1, 3], repeat=3)))
@pytest.mark.parametrize("opened", list(itertools.product([False, True], repeat=3)))
def test_squeeze_of_all_axes_with_open_lengths_is_right_or_refused(shape, opened):
    x = tf.reshape(tf.range(float(np.prod(shape))), shape)
    spec = tf.TensorSpec([None if o else n for n, o in zip(shape, opened)])
    f = tf.function(lambda x: tf.squeeze(x), input_signature=[spec])
    if any(n == 1 and o for n, o in zip(shape, opened)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="open while tracing and is now 1"):
            f(x)
    else:
        np.testing.assert_array_equal(f(x), np.squeeze(x.numpy()))


def test_an_axis_that_the_data_decide_is_split_where_the_lengths_make_it_up():
    f = tf.function(lambda x, m: tf.split(tf.boolean_mask(x, m), [2, 1], axis=0))
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    front, rest = f(x, tf.constant([True, False, True, True]))
    np.testing.assert_array_equal(front, [[1, 2], [5, 6]])
    np.testing.assert_array_equal(rest, [[7, 8]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="the data decided these sizes"):
        f(x, tf.constant([True, False, False, True]))


@pytest.mark.parametrize("shape", [[2], [1, 2], [2, 1], [1, 2, 1]])
@pytest.mark.parametrize("inside", [False, True])
def test_gradients_go_through_reshapes_of_sizes_that_the_data_decide(shape, inside):
    def masked(x, m):
        return tf.reshape(tf.boolean_mask(x, m), shape)

    def gradient(f):
        def run(x, m):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x, m)
            return tape.gradient(y, x)

        return run

    f = tf.function(gradient(masked)) if inside else gradient(tf.function(masked))
    made = f(tf.constant([1.0, 2.0, 3.0]), tf.constant([True, False, True]))
    np.testing.assert_array_equal(made, [1, 0, 1])


# Results of functions whose sizes are computed from those that the data decide.
COMPUTED = {
    "a multiple": lambda x, m: tf.reshape(tf.boolean_mask(x, m), [-1]),
    "more than a multiple": lambda x, m: tf.concat([tf.boolean_mask(x, m)] * 2 + [x], 0),
    "with nothing of it differentiated": lambda x, m: tf.concat([tf.cast(tf.where(m), "float32"), x[:, :1]], 0),
    "besides what is": lambda x, m: (x * 2.0, tf.concat([tf.cast(tf.where(m), "float32")] * 2, 0)),
    "less": lambda x, m: tf.boolean_mask(x, m)[1:] * 3.0,
    "the lesser": lambda x, m: tf.boolean_mask(x, m)[:2] ** 2,
    "a product": lambda x, m: tf.reshape(tf.matmul(tf.boolean_mask(x, m), tf.boolean_mask(x, x[:, 0] > 2.0), transpose_b=True), [-1]),
    "a sum of two": lambda x, m: tf.concat([tf.boolean_mask(x, m), tf.boolean_mask(x, x[:, 0] > 2.0)], 0),
    "a sum of two, less": lambda x, m: tf.concat([tf.boolean_mask(x, m), tf.boolean_mask(x, x[:, 0] > 2.0)], 0)[1:],
    "a diagonal": lambda x, m: tf.linalg.diag_part(tf.boolean_mask(x, m)),
    "padded": lambda x, m: tf.pad(tf.boolean_mask(x, m), [[1, 2], [0, 0]]),
    "tiled": lambda x, m: tf.tile(tf.boolean_mask(x, m), [3, 1]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("how", ["tape around a function", "function", "function of a function"])
def test_gradients_go_through_sizes_that_are_computed_from_what_the_data_decide(name, how):
    def gradient(f):
        def run(x, m):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x, m)
            return tape.gradient(y, x)

        return run

    program = COMPUTED[name]
    run = {
        "tape around a function": lambda: gradient(tf.function(program)), "function": lambda: tf.function(gradient(program)),
        "function of a function": lambda: tf.function(gradient(tf.function(program))),
    }[how]()
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for mask in ([True, False, True], [False, True, False], [True, True, True], [False, False, False]):
        m = tf.constant(mask)
        np.testing.assert_allclose(run(x, m), gradient(program)(x, m), 1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("fold", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("which", ["rows", "segments", "both"])
def test_rows_and_segments_of_sizes_that_the_data_decide_are_compared_as_they_run(fold, which):
    def program(x, m, ids, n):
        rows = tf.boolean_mask(x, m) if which != "segments" else x
        ids = tf.boolean_mask(ids, n) if which != "rows" else ids
        return getattr(tf.math, f"unsorted_segment_{fold}")(rows, ids, 4)

    x, ids = numbers([3, 2], 0), tf.constant([0, 1, 1])
    some, all_ = tf.constant([True, False, True]), tf.constant([True, True, True])
    x, ids = x if which != "segments" else x[:2], ids if which != "rows" else ids[:2]
    f = tf.function(program)
    np.testing.assert_allclose(f(x, some, ids, some), program(x, some, ids, some), 1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the data decided these sizes"):
        f(x, some if which == "both" else all_, ids, all_)


@pytest.mark.parametrize("flow", ["cond", "switch_case", "case", "if"])
@pytest.mark.parametrize("other", ["another mask", "the same mask", "a known size"])
def test_branches_of_sizes_that_the_data_decide_are_refused_with_what_to_do(flow, other):
    def program(x, m, n, p):
        def first():
            return tf.boolean_mask(x, m)

        def second():
            return {"another mask": lambda: tf.boolean_mask(x, n), "the same mask": first, "a known size": lambda: x}[other]()

        if flow == "if":
            if p:
                y = first()
            else:
                y = second()
            return y
        return {"cond": lambda: tf.cond(p, first, second), "case": lambda: tf.case([(p, first)], default=second),
                "switch_case": lambda: tf.switch_case(tf.cast(p, "int32"), [first, second])}[flow]()

    args = numbers([3], 0), tf.constant([True, False, True]), tf.constant([True, False, False]), tf.constant(True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="whose sizes the data decide.*before the branches"):
        tf.function(program)(*args)


def test_a_size_of_1_that_the_data_decide_is_not_broadcast_and_the_error_says_what_to_do():
    f = tf.function(lambda x, m: tf.boolean_mask(x, m) + x)
    x = numbers([3], 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="size of 1 is broadcast.*only where it is known.*reshape"):
        f(x, tf.constant([False, True, False]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be equal here$|must be equal here \\(at"):
        f(x, tf.constant([False, True, True]))
    f = tf.function(lambda x, m: tf.reshape(tf.boolean_mask(x, m), [1]) + x)
    np.testing.assert_allclose(f(x, tf.constant([False, True, False])), x.numpy() + x.numpy()[1])
