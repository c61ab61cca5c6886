"""``tf.train``: checkpoints of objects, what is restored later, and managers."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import tonnage as tf


class Pair(tf.Module):
    def __init__(self, value):
        super().__init__()
        self.a = tf.Variable(value)
        self.parts = [tf.Variable([value, value]), {"c": tf.Variable(value * 2)}]


def test_a_module_is_saved_and_restored_by_its_structure(tmp_path):
    first, second = Pair(1.0), Pair(5.0)
    path = tf.train.Checkpoint(pair=first).save(tmp_path / "ckpt")
    assert path.endswith("ckpt-1")
    tf.train.Checkpoint(pair=second).restore(path).assert_consumed()
    assert [v.numpy().tolist() for v in second.variables] == [v.numpy().tolist() for v in first.variables]
    assert dict(tf.train.list_variables(path))["pair/parts/0"] == [2]
    assert tf.train.load_variable(tmp_path, "pair/a") == 1.0


def test_an_object_that_is_held_twice_is_saved_once_and_found_from_either_side(tmp_path):
    shared = tf.Variable([1.0, 2.0])
    path = tf.train.Checkpoint(x=shared, y=shared).write(tmp_path / "c")
    assert len(tf.train.list_variables(path)) == 1
    other = tf.Variable([0.0, 0.0])
    tf.train.Checkpoint(y=other).read(path).assert_consumed()
    assert other.numpy().tolist() == [1.0, 2.0]


def test_what_is_made_after_the_restore_gets_its_value_then(tmp_path):
    layer = tf.keras.layers.Dense(3)
    layer(np.ones((1, 2), "f4"))
    saved = Pair(3.0)
    path = tf.train.Checkpoint(layer=layer, pair=saved).save(tmp_path / "c")
    later = tf.keras.layers.Dense(3)
    empty = tf.Module()
    checkpoint = tf.train.Checkpoint(layer=later, pair=empty)
    status = checkpoint.restore(path)
    with pytest.raises(AssertionError, match="Unresolved"):
        status.assert_consumed()
    later(np.ones((1, 2), "f4"))
    assert (later.kernel.numpy() == layer.kernel.numpy()).all()
    empty.a = tf.Variable(0.0)
    assert empty.a.numpy() == 3.0
    empty.parts = [tf.Variable([0.0, 0.0]), {"c": tf.Variable(0.0)}]
    assert empty.parts[1]["c"].numpy() == 6.0
    status.assert_consumed()


def test_training_goes_on_where_it_was(tmp_path):
    x = np.random.default_rng(0).normal(size=(64, 4)).astype("f4")

    def made():
        model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3, "tanh"), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.Adam(0.01), "mse")
        return model

    def fit(model):
        return model.fit(x, x[:, :1], shuffle=False, verbose=0, epochs=2).history["loss"]

    model, again = made(), made()
    fit(model)
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "c")
    status = tf.train.Checkpoint(model=again, optimizer=again.optimizer).restore(path)
    assert fit(again) == fit(model)
    status.assert_existing_objects_matched()
    assert int(again.optimizer.iterations) == 8


def test_what_does_not_match_is_said_with_both_sides(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable([1.0, 2.0])).write(tmp_path / "c")
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        tf.train.Checkpoint(a=tf.Variable([0.0, 0.0, 0.0])).read(path)
    status = tf.train.Checkpoint(b=tf.Variable(1.0)).read(path)
    with pytest.raises(AssertionError, match="'b'"):
        status.assert_existing_objects_matched()
    with pytest.raises(AssertionError):
        status.assert_nontrivial_match()
    status.expect_partial()
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.Checkpoint().read(tmp_path / "nothing")
    assert tf.train.Checkpoint(b=tf.Variable(1.0)).restore(None).assert_consumed()


@pytest.mark.parametrize("end", ["", "/", "/."])
def test_a_folder_is_the_same_however_it_is_written(tmp_path, end):
    checkpoint = tf.train.Checkpoint(step=tf.Variable(1))
    path = tf.train.CheckpointManager(checkpoint, f"{tmp_path}{end}").save()
    assert os.path.samefile(f"{tf.train.latest_checkpoint(str(tmp_path))}.safetensors", f"{path}.safetensors")


def test_a_manager_keeps_the_last_ones(tmp_path):
    step = tf.Variable(0, dtype="int64")
    checkpoint = tf.train.Checkpoint(step=step)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path / "run", max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.restore_or_initialize() is None
    for _ in range(4):
        step.assign_add(10)
        manager.save()
    assert [p.rpartition("-")[2] for p in manager.checkpoints] == ["3", "4"]
    assert _names(tmp_path / "run") == ["checkpoint", "ckpt-3.safetensors", "ckpt-4.safetensors"]
    assert tf.train.latest_checkpoint(tmp_path / "run") == manager.latest_checkpoint
    fresh = tf.Variable(0, dtype="int64")
    other = tf.train.Checkpoint(step=fresh)
    again = tf.train.CheckpointManager(other, tmp_path / "run", max_to_keep=2)
    assert again.restore_or_initialize() == manager.latest_checkpoint
    assert int(fresh) == 40 and again.save().endswith("ckpt-5") and len(again.checkpoints) == 2
    every = tf.train.CheckpointManager(checkpoint, tmp_path / "few", step_counter=step, checkpoint_interval=15)
    assert every.save() and every.save() is None
    with pytest.raises(ValueError, match="max_to_keep"):
        tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=0)


def test_saving_holds_no_second_copy(tmp_path):
    size = 4 << 20
    module = tf.Module()
    module.parts = [tf.Variable(np.ones(size // 4, "f4")) for _ in range(4)]
    with tf.memory.limit(tf.memory.info()["current"] + size // 2):
        tf.train.Checkpoint(m=module).write(tmp_path / "c")


_CHILD = """
import os, sys
import tonnage as tf
step = tf.Variable(1.0)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), sys.argv[1], max_to_keep=2)
if sys.argv[2] == "dies":  # in the middle of taking old ones away
    os.remove = lambda path: os.kill(os.getpid(), 9)
for _ in range(3 if sys.argv[2] == "dies" else 1):
    manager.save()
print("ready", flush=True)
sys.stdin.read()
"""


def _child(folder, role):
    child = subprocess.Popen([sys.executable, "-c", _CHILD, os.fspath(folder), role], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == (b"ready\n" if role == "holds" else b"")
    return child


def _names(folder):
    return sorted(p.name for p in folder.iterdir() if p.name != "tonnage.lock")


def test_one_process_at_a_time_writes_to_a_folder(tmp_path):
    folder = tmp_path / "run"
    own = tf.train.Checkpoint(step=tf.Variable(5.0))
    backup = tf.keras.callbacks.BackupAndRestore(folder)
    writers = [lambda: own.save(folder / "other"), tf.train.CheckpointManager(own, folder).save, backup.on_train_begin]
    with _child(folder, "holds") as child:
        before = _names(folder)
        for write in writers:
            with pytest.raises(Exception, match=f"process {child.pid}, "):
                write()
        assert _names(folder) == before
        assert tf.train.load_variable(folder, "step") == 1.0, "whoever reads is not held up"
        child.kill()
    for write in writers:
        write()
    backup.on_train_end()


def test_what_a_killed_process_leaves_goes_with_the_next_save(tmp_path):
    with _child(tmp_path, "dies") as child:
        child.wait()
    assert _names(tmp_path) == ["checkpoint", *(f"ckpt-{i}.safetensors" for i in (1, 2, 3))]
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=tf.Variable(0.0)), tmp_path, max_to_keep=2)
    manager.restore_or_initialize()
    manager.save()
    del manager
    gc.collect()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint", "ckpt-3.safetensors", "ckpt-4.safetensors"]


def _with_every_byte_changed(path, look):
    with open(path, "r+b", buffering=0) as file:
        for place, byte in enumerate(path.read_bytes()):
            os.pwrite(file.fileno(), bytes([byte ^ 1 << place % 8]), place)
            look(place, f"byte {place} of {path}")
            os.pwrite(file.fileno(), bytes([byte]), place)


def test_a_bit_that_changes_anywhere_is_an_error_and_changes_nothing(tmp_path):
    saved = {"a": tf.Variable([1.0, 2.0]), "b": [tf.Variable(3, dtype="int32"), tf.Variable([[4.0]])]}
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(**saved), tmp_path)
    manager.save()
    path = manager.save()
    model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(3)])
    weights = tmp_path / "w.safetensors"
    model.save_weights(weights)
    a, b, c = tf.Variable([0.0, 0.0]), tf.Variable(0, dtype="int32"), tf.Variable([[0.0]])
    blank = [np.zeros((2, 3), "f4"), np.zeros(3, "f4")]

    def of_checkpoint():
        found = tf.train.latest_checkpoint(tmp_path)
        tf.train.Checkpoint(a=a, b=[b, c]).restore(found).assert_existing_objects_matched()
        return found

    def check(file, key, load, values, want, clear):
        first = file.read_bytes().index(key)
        clear()
        nothing = values()

        def look(place, what):
            try:
                load()
            except Exception:  # noqa: BLE001: whichever it is
                assert values() == nothing, what
            else:
                assert first <= place < first + len(key), f"{what} loads as if nothing had happened"
                assert values() == want, what
                clear()

        _with_every_byte_changed(file, look)
        load()
        assert values() == want

    numbers = lambda: [v.numpy().tolist() for v in (a, b, c)]  # noqa: E731
    zero = lambda: [v.assign(tf.zeros_like(v)) for v in (a, b, c)]  # noqa: E731
    want = [[1.0, 2.0], 3, [[4.0]]]
    check(tmp_path / f"{os.path.basename(path)}.safetensors", b"tonnage.checksums", of_checkpoint, numbers, want, zero)
    check(weights, b"tonnage.checksums", lambda: model.load_weights(weights), lambda: [w.tolist() for w in model.get_weights()],
          [w.tolist() for w in model.get_weights()], lambda: model.set_weights(blank))
    state = tmp_path / "checkpoint"

    def look(place, what):
        try:
            assert tf.train.latest_checkpoint(tmp_path) == path, what
        except tf.errors.DataLossError:
            pass

    _with_every_byte_changed(state, look)
    lines = state.read_text().splitlines(keepends=True)
    state.write_text("".join(lines[:-1]))
    assert lines[-1].startswith("# crc32") and tf.train.latest_checkpoint(tmp_path) == path, "earlier versions wrote no checksum"
