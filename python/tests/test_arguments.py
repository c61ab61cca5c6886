"""Every parameter of a public function does something: it is read, or asking for it warns, or what it asks for is so
anyway, as the table here says."""

import ast
import pathlib
import warnings

import pytest

import tonnage as tf

ROOT = pathlib.Path(tf.__file__).parent

# Methods whose parameters are what their caller hands over, wanted or not.
PROTOCOLS = ("on_", "__exit__", "__get__", "__deepcopy__", "build", "compute_mask", "call", "compute_loss",
             "compute_metrics", "__call__", "find_spec")

# What is asked for is so anyway.
SO_ANYWAY = {
    "use_locking": "updates of variables never lose one another",
    "conjugate": "there are no complex numbers",
    "validate_indices": "indices are always checked",
    "stable": "sorting is stable",
    "sorted": "the largest come first",
    "num": "lengths of splits are known",
    "stateful": "what runs Python is run each time, and never merged",
    "expand_composites": "tensors are leaves",
    "experimental_enable_variable_lifting": "variables made while tracing belong to the function",
    "use_resource": "every variable is one",
    "values": "names are scopes of their own",
    "safe_mode": "a config names classes, and holds no code",
    "synchronized": "there is one device",
    "force": "functions are made anew where shapes change",
    "tensor_array_name": "a name",
    "rebuild": "shapes follow from what a model is called with",
    "options": "there is nothing to tune",
    "shape": "it follows from the inputs",
    "tensor_dtype": "it follows from the inputs",
    "output_shape": "it follows from the call",
    "stream": "there is one queue of work: the caller's",
    "max_queue_size": "rows are taken as they are needed",
    "alsologtostdout": "what is told is a warning",
    "args": "taken by __new__, or by a base class",
    "kwargs": "taken by __new__, or by a base class",
    "num_parallel_calls": "batches are joined where they are read",
    "deterministic": "batches are in order",
    "dtype": "initializers are told it when they are called",
    "dict_outputs": "found by the outputs themselves",
    "training": "handed on by the layers",
    "summarize": "told by the function around it",
    "partial": "values are known in full or not at all",
    "unique": "an index that makes TensorFlow's loop shorter",
    "allow_fast_lookup": "indices are always checked",
    "synchronization": "there is one replica",
    "aggregation": "there is one replica",
    "reduce_op": "there is one replica",
    "destinations": "there is one replica",
    "group": "there is one replica",
    "colocate_with_variable": "variables are where tensors of the thread go",
}


def _unread():
    for path in sorted(ROOT.rglob("*.py")):
        yield from _of(ast.parse(path.read_text()), path.relative_to(ROOT), ())


def _of(node, path, outside):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _of(child, path, (*outside, child.name))
        elif isinstance(child, ast.FunctionDef):
            names = (*outside, child.name)
            hidden = any(name.startswith("_") and not name.startswith("__") for name in names)
            if not hidden and not child.name.startswith(PROTOCOLS) and not _is_abstract(child):
                yield from ((str(path), ".".join(names), unread) for unread in _unread_of(child))


def _is_abstract(function):
    body = [b for b in function.body if not (isinstance(b, ast.Expr) and isinstance(b.value, ast.Constant))]
    return all(isinstance(b, (ast.Pass, ast.Raise)) for b in body)


def _unread_of(function):
    read = {n.id for part in function.body for n in ast.walk(part) if isinstance(n, ast.Name)}
    warned = {c.value for d in function.decorator_list if getattr(getattr(d, "func", None), "id", None) in ("ignores", "_ignores")
              for c in d.args if isinstance(c, ast.Constant)}
    given = function.args
    every = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if a]
    return [name for name in every if name not in read | warned | {"self", "cls", "name"} and name not in SO_ANYWAY]


def test_no_parameter_is_silently_ignored():
    assert list(_unread()) == []


def test_an_argument_without_effect_warns_once():
    with pytest.warns(UserWarning, match="GradientTape.jacobian: parallel_iterations has no effect here"):
        _jacobian(parallel_iterations=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _jacobian(parallel_iterations=3)
        _jacobian(experimental_use_pfor=True)


def _jacobian(**options):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.jacobian(y, x, **options)


def test_unknown_keywords_are_refused():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(TypeError, match="budgett"):
        model.evaluate(tf.ones([2, 2]), tf.ones([2, 1]), verbose=0, budgett="1MiB")
    with pytest.raises(ValueError, match="check_type"):
        tf.nest.map_structure(lambda x: x, [1], check_type=True)
