"""``tf.train``: checkpoints of objects, what is restored later, and managers."""

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


def test_a_manager_keeps_the_last_ones(tmp_path):
    step = tf.Variable(0, dtype="int64")
    checkpoint = tf.train.Checkpoint(step=step)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path / "run", max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.restore_or_initialize() is None
    for _ in range(4):
        step.assign_add(10)
        manager.save()
    assert [p.rpartition("-")[2] for p in manager.checkpoints] == ["3", "4"]
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["checkpoint", "ckpt-3.safetensors", "ckpt-4.safetensors"]
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
