"""Checkpoints: the state of objects in a file, and back; also into objects whose variables are made later."""

import json
import os

from .. import _replicas
from .. import _tonnage as _t
from .._variable import Variable
from .folder import hold
from .objects import children, graph_of, paths_of
from .._notices import ignores

_ENDING, _RANGES, _GRAPH = ".safetensors", ".ranges.json", "object_graph"
_DEFERRED = "_tonnage_deferred"


def _files_of(path):
    stem = os.fspath(path).removesuffix(_ENDING)
    return stem + _ENDING, stem + _RANGES


def file_of(path):
    """The file of a checkpoint, which one process wrote, or the index of what each rank wrote: the later, where both are there."""
    there = [file for file in _files_of(path) if os.path.exists(file)]
    return max(there, key=os.path.getmtime) if there else _files_of(path)[0]


def remove(path):
    """Removes a checkpoint."""
    whole, ranges = _files_of(path)
    if os.path.exists(ranges):
        _t.remove_saved(ranges)
    if os.path.exists(whole):
        os.remove(whole)


class Checkpoint:
    """The state of objects: ``Checkpoint(model=model, optimizer=optimizer)``.

    >>> step = tf.Variable(3)
    >>> path = tf.train.Checkpoint(step=step).save("run/ckpt")
    >>> status = tf.train.Checkpoint(step=step.assign(0)).restore(path).assert_consumed()
    >>> int(step)
    3
    """

    def __init__(self, root=None, **kwargs):
        if root is not None:
            object.__setattr__(self, "root", root)
        for name, value in kwargs.items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        resume(self)

    @property
    def save_counter(self):
        """How many times it was saved."""
        if "_save_counter" not in vars(self):
            counter = _t.call_eagerly(lambda: Variable(0, trainable=False, dtype="int64", name="save_counter"))
            object.__setattr__(self, "_save_counter", counter)
            resume(self)
        return self._save_counter

    @ignores("Checkpoint.write", "options")
    def write(self, file_prefix, options=None):
        """Writes the state to a file of that name; it appears whole or not at all, a tensor at a time. All ranks of a job call this; of those that name
        the same file one writes it. Of what ranks hold in blocks each writes its own, to a file beside an index of that name."""
        nodes = graph_of(self)
        variables = [value for value, _ in nodes if isinstance(value, _t.Variable)]
        for variable in variables:
            if not variable.initialized:
                raise ValueError(f"the variable {variable.plain_name!r} has no value yet that could be saved")
        whole, ranges = _files_of(file_prefix)
        world = _replicas.holders(variables, whole)
        values = _replicas.gathered(variables) if world is None else variables
        writes = _replicas.writes(whole)
        if writes or world is not None:
            self._write(nodes, iter(values), world, ranges if world is not None else whole)
        if writes:
            # What stood there before in the other form is older.
            other = whole if world is not None else ranges
            if os.path.exists(other):
                os.remove(other) if other is whole else _t.remove_saved(other)
        _replicas.wait()
        return os.fspath(file_prefix)

    @staticmethod
    def _write(nodes, values, world, path):
        names = paths_of(nodes)
        tensors, graph = [], []
        for i, (value, held) in enumerate(nodes):
            entry = {"children": held}
            if isinstance(value, _t.Variable):
                entry["tensor"] = names[i]
                tensors.append((names[i], next(values)))
            graph.append(entry)
        folder, notes = os.path.dirname(path), [(_GRAPH, json.dumps(graph))]
        if folder:
            os.makedirs(folder, exist_ok=True)
        if world is None:
            _t.save_tensors(path, tensors, notes)
        else:
            _t.save_across(world, path, tensors, notes)

    @ignores("Checkpoint.save", "options")
    def save(self, file_prefix, options=None):
        """Writes the state to a file of that name and a number, one more each time."""
        from .manager import update_checkpoint_state

        writes = _replicas.writes(file_prefix)
        if writes:
            hold(self, os.path.dirname(os.fspath(file_prefix)))
        self.save_counter.assign_add(1)
        path = self.write(f"{os.fspath(file_prefix)}-{int(self.save_counter)}")
        if writes:
            update_checkpoint_state(os.path.dirname(path), path, [path])
        _replicas.wait()
        return path

    @ignores("Checkpoint.read", "options")
    def read(self, save_path, options=None):
        """Gives objects the state of a file. What is made later gets its state then."""
        return _restore(self, save_path)

    @ignores("Checkpoint.restore", "options")
    def restore(self, save_path, options=None):
        """The same; nothing for ``None``."""
        if save_path is None:
            return Status(None, None, self)
        status = self.read(save_path)
        self.save_counter  # noqa: B018: it goes on from what the file says
        return status

    sync = property(lambda self: lambda: None)


def _restore(root, path):
    file = file_of(path)
    if not os.path.exists(file):
        from ..errors import NotFoundError

        raise NotFoundError(None, None, f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {path}")
    opened = _t.TensorFile(file)
    text = opened.note(_GRAPH)
    if text is None:
        raise ValueError(f"{file} holds tensors, not a checkpoint of objects")
    restoration = _Restoration(opened, json.loads(text), file)
    restoration.match(root, 0)
    return Status(restoration, path, root)


class _Restoration:
    """A file that is being restored: which of its nodes found their objects."""

    def __init__(self, file, graph, path):
        self.file, self.graph, self.path = file, graph, path
        self.found, self.variables = set(), set()

    def match(self, value, number):
        """An object and the node that is its."""
        work = [(value, number)]
        while work:
            value, number = work.pop()
            if number in self.found:
                continue
            node = self.graph[number]
            if isinstance(value, _t.Variable):
                self._load(value, number, node)
                continue
            self.found.add(number)
            held = children(value)
            missing = {}
            for name, child in node["children"].items():
                if name in held:
                    work.append((held[name], child))
                else:
                    missing[name] = child
            if missing and hasattr(value, "__dict__"):
                vars(value).setdefault(_DEFERRED, []).append((self, number))

    def _load(self, variable, number, node):
        if "tensor" not in node:
            return
        saved, own = tuple(self.file.lengths(node["tensor"])), tuple(variable.shape)
        if saved != own:
            raise ValueError(f"Tensor's shape {saved} is not compatible with supplied shape {own}: {node['tensor']!r} of {self.path} and "
                             f"the variable {variable.plain_name!r}")
        self.file.load(node["tensor"], variable)
        self.found.add(number)
        self.variables.add(variable.number)

    def tried_again(self, value, number):
        """Looks for children that were not there; whether all are there now."""
        held, missing = children(value), False
        for name, child in self.graph[number]["children"].items():
            if name in held:
                if child not in self.found:
                    self.match(held[name], child)
            else:
                missing = True
        return not missing


def resume(value):
    """Gives an object what a checkpoint holds for children that it has by now."""
    waiting = vars(value).get(_DEFERRED)
    if not waiting:
        return
    del vars(value)[_DEFERRED]
    still = [(r, n) for r, n in waiting if not _t.call_eagerly(lambda r=r, n=n: r.tried_again(value, n))]
    if still:
        vars(value)[_DEFERRED] = still + vars(value).get(_DEFERRED, [])


class Status:
    """What a restoration found."""

    def __init__(self, restoration, path, root):
        self._restoration, self._path, self._root = restoration, path, root

    def _unread(self):
        graph = self._restoration.graph
        return [node["tensor"] for i, node in enumerate(graph)
                if "tensor" in node and i not in self._restoration.found and node["tensor"] != "_save_counter"]

    def _unmatched(self):
        nodes = graph_of(self._root)
        names = paths_of(nodes)
        return [names[i] for i, (value, _) in enumerate(nodes) if isinstance(value, _t.Variable)
                and value.number not in self._restoration.variables and names[i] != "_save_counter"]

    def assert_consumed(self):
        """Raises unless every value of the file has found its object, and every object its value."""
        self.assert_existing_objects_matched()
        unread = self._unread() if self._restoration else []
        if unread:
            raise AssertionError(f"Unresolved object in checkpoint: {unread} of {self._path} have no object")
        return self

    def assert_existing_objects_matched(self):
        """Raises unless every variable has found its value."""
        unmatched = self._unmatched() if self._restoration else []
        if unmatched:
            raise AssertionError(f"Found {len(unmatched)} Python objects that were not bound to checkpointed values, likely due to changes "
                                 f"in the Python program: {unmatched} are not in {self._path}")
        return self

    def assert_nontrivial_match(self):
        """Raises unless something was found."""
        if self._restoration is not None and len(self._restoration.found) <= 1:
            raise AssertionError(f"Nothing except the root object matched a checkpointed value: {self._path}")
        return self

    def expect_partial(self):
        """Says that some of it will not be used."""
        return self

    def initialize_or_restore(self, session=None):
        """It is restored already."""

    run_restore_ops = initialize_or_restore


class Reader:
    """The tensors of a checkpoint by their names."""

    def __init__(self, path):
        self._file = _t.TensorFile(file_of(path))

    def get_tensor(self, name):
        """A tensor as an array."""
        return self._file.read(name).numpy()

    def get_variable_to_shape_map(self):
        """The shapes by name."""
        return {name: self._file.lengths(name) for name in self._file.names()}

    def get_variable_to_dtype_map(self):
        """The dtypes by name."""
        return {name: self._file.dtype(name) for name in self._file.names()}

    def has_tensor(self, name):
        """Whether there is one of that name."""
        return name in self._file.names()


def _path(path):
    from .manager import latest_checkpoint

    return latest_checkpoint(path) if os.path.isdir(path) else path


def load_checkpoint(ckpt_dir_or_file):
    """Reads a checkpoint, or the latest of a folder."""
    return Reader(_path(ckpt_dir_or_file))


def list_variables(ckpt_dir_or_file):
    """The names and shapes of what a checkpoint holds."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file, name):
    """One of its tensors, as an array."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)
