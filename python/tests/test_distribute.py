"""``tf.distribute`` where there is one rank: programs for several run as they are. ``test_ranks.py`` has several."""

import json

import numpy as np
import pytest

import tonnage as tf

STRATEGIES = {"workers": tf.distribute.MultiWorkerMirroredStrategy, "mirrored": tf.distribute.MirroredStrategy,
              "one device": lambda: tf.distribute.OneDeviceStrategy("/cpu:0"), "default": tf.distribute.Strategy}


@pytest.fixture(params=STRATEGIES, name="strategy")
def made(request):
    return STRATEGIES[request.param]()


def test_scopes_and_contexts_nest(strategy):
    assert not tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
    with strategy.scope():
        assert tf.distribute.get_strategy() is strategy and tf.distribute.has_strategy()
        assert tf.distribute.in_cross_replica_context() and tf.distribute.get_replica_context() is None

        def inside():
            context = tf.distribute.get_replica_context()
            assert tf.distribute.get_strategy() is strategy and context.strategy is strategy
            return context.num_replicas_in_sync, context.replica_id_in_sync_group

        assert strategy.run(inside) == (1, 0)
        assert tf.distribute.get_replica_context() is None
    assert not tf.distribute.has_strategy() and tf.distribute.get_replica_context().num_replicas_in_sync == 1
    with pytest.raises(ZeroDivisionError):
        strategy.run(lambda: 1 / 0)
    assert not tf.distribute.has_strategy()


def test_values_of_one_replica_are_the_values(strategy):
    value = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert strategy.reduce("SUM", value, axis=None).numpy().tolist() == value.numpy().tolist()
    assert strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=0).numpy().tolist() == [4.0, 6.0]
    assert strategy.reduce("mean", {"a": value}, axis=1)["a"].numpy().tolist() == [1.5, 3.5]
    assert strategy.gather(value, axis=1).shape == (2, 2) and strategy.experimental_local_results(value)[0] is value
    with pytest.raises(ValueError, match="SUM or MEAN"):
        strategy.reduce("max", value, axis=None)

    def replica(x):
        context = tf.distribute.get_replica_context()
        return context.all_reduce("MEAN", x), context.all_gather(x, 0), context.merge_call(lambda s, x: (s is strategy, x), (x,))

    mean, all_of_it, (is_own, same) = tf.function(lambda x: strategy.run(replica, (x,)))(value)
    assert is_own and all(np.array_equal(one, value) for one in (mean, all_of_it, same))


def test_losses_of_a_replica_are_whole_where_there_is_one(strategy):
    rows = tf.constant([1.0, 2.0, 6.0])

    def replica():
        made = [tf.nn.compute_average_loss(rows), tf.nn.compute_average_loss(rows, sample_weight=[1.0, 0.0, 0.5]),
                tf.nn.compute_average_loss(rows, global_batch_size=6), tf.nn.scale_regularization_loss(rows),
                tf.keras.losses.MeanSquaredError()([[0.0]], [[3.0]])]
        return [float(one) for one in made]

    assert strategy.run(replica) == pytest.approx([3.0, 4.0 / 3.0, 1.5, 9.0, 9.0])
    assert float(tf.nn.compute_average_loss(rows[:0])) == 0.0
    with pytest.raises(ValueError, match="no row"):
        tf.nn.compute_average_loss(1.0)


def test_a_dataset_of_one_replica_is_the_dataset(strategy):
    data = tf.data.Dataset.range(10).batch(4)
    assert [len(batch) for batch in strategy.experimental_distribute_dataset(data)] == [4, 4, 2]
    seen = []

    def make(context):
        seen.append((context.num_input_pipelines, context.input_pipeline_id, context.get_per_replica_batch_size(6)))
        return data.shard(context.num_input_pipelines, context.input_pipeline_id)

    assert len(list(strategy.distribute_datasets_from_function(make))) == 3 and seen == [(1, 0, 6)]
    context = tf.distribute.InputContext(num_replicas_in_sync=4)
    with pytest.raises(ValueError, match="not divisible"):
        context.get_per_replica_batch_size(6)


def test_the_policy_of_a_dataset_stays_with_what_is_made_of_it():
    policy = tf.data.experimental.AutoShardPolicy
    data = tf.data.Dataset.range(8)
    assert data.options().experimental_distribute.auto_shard_policy == policy.AUTO
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy.OFF
    off = data.with_options(options).map(lambda x: x + 1).batch(2)
    assert off.options().experimental_distribute.auto_shard_policy == policy.OFF

    class Two:
        rank, size = 1, 2

    assert [b.numpy().tolist() for b in data.batch(4)._of_rank(Two)] == [[2, 3], [6, 7]]
    assert data.batch(4, drop_remainder=True)._of_rank(Two).element_spec.shape == (2,)
    assert [b.numpy().tolist() for b in off._of_rank(Two)] == [[n] for n in range(1, 9)]
    options.experimental_distribute.auto_shard_policy = policy.FILE
    with pytest.raises(ValueError, match="FILE"):
        data.batch(4).with_options(options)._of_rank(Two)


def test_workers_that_a_variable_names_have_to_be_there(monkeypatch):
    workers = {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(workers))
    with pytest.raises(ValueError, match="TF_CONFIG names 2 workers, and 1 were started: start them with `mpirun -n 2`"):
        tf.distribute.MultiWorkerMirroredStrategy()
    workers["cluster"]["worker"] = ["a:1"]
    monkeypatch.setenv("TF_CONFIG", json.dumps(workers))
    strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(timeout_seconds=30))
    resolver = strategy.cluster_resolver
    assert (resolver.task_type, resolver.task_id, resolver.cluster_spec().num_tasks("worker")) == ("worker", 0, 1)
    assert resolver.cluster_spec().jobs == ["worker"] and len(resolver.cluster_spec().as_dict()["worker"]) == 1
    with pytest.raises(ValueError, match="number of seconds"):
        strategy.world.set_timeout(-1.0)


def test_more_devices_than_one_are_processes():
    with pytest.raises(NotImplementedError, match="mpirun"):
        tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])
    with pytest.raises(Exception, match="nonsense"):
        tf.distribute.OneDeviceStrategy("nonsense")


TRAINED = {}


@pytest.mark.parametrize("name", ["none", *STRATEGIES])
def test_training_under_a_strategy_of_one_replica_is_training(name):
    tf.random.set_seed(3)
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(50, 4)).astype("float32"), rng.integers(0, 3, 50)

    def made():
        model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dropout(0.2),
                                     tf.keras.layers.Dense(3)])
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        return model

    if name == "none":
        model = made()
    else:
        with STRATEGIES[name]().scope():
            model = made()
    model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    TRAINED[name] = [v.numpy().tobytes() for v in model.variables], model.evaluate(x, y, verbose=0)
    assert TRAINED[name] == TRAINED.setdefault("none", TRAINED[name])


def test_the_tutorial_on_custom_training_runs(tmp_path):
    # TensorFlow's "Custom training with tf.distribute.Strategy", with other images.
    rng = np.random.default_rng(2)
    train_images, train_labels = rng.random((96, 12, 12, 1), "float32"), rng.integers(0, 10, 96)
    strategy = tf.distribute.MirroredStrategy()
    global_batch_size = 32 * strategy.num_replicas_in_sync
    train_dataset = tf.data.Dataset.from_tensor_slices((train_images, train_labels)).shuffle(96).batch(global_batch_size)
    train_dist_dataset = strategy.experimental_distribute_dataset(train_dataset)
    test_dist_dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((train_images, train_labels)).batch(32))

    def create_model():
        regularizer = tf.keras.regularizers.L2(1e-5)
        return tf.keras.Sequential([tf.keras.layers.Conv2D(4, 3, activation="relu", kernel_regularizer=regularizer),
                                    tf.keras.layers.MaxPooling2D(), tf.keras.layers.Flatten(),
                                    tf.keras.layers.Dense(10, kernel_regularizer=regularizer)])

    with strategy.scope():
        loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=tf.keras.losses.Reduction.NONE)

        def compute_loss(labels, predictions, model_losses):
            loss = tf.nn.compute_average_loss(loss_object(labels, predictions))
            if model_losses:
                loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
            return loss

    with strategy.scope():
        test_loss = tf.keras.metrics.Mean(name="test_loss")
        train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
    with strategy.scope():
        model, optimizer = create_model(), tf.keras.optimizers.Adam(learning_rate=0.001)
        checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)

    def train_step(inputs):
        images, labels = inputs
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = compute_loss(labels, predictions, model.losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        train_accuracy.update_state(labels, predictions)
        return loss

    def test_step(inputs):
        images, labels = inputs
        test_loss.update_state(loss_object(labels, model(images, training=False)))

    @tf.function
    def distributed_train_step(dataset_inputs):
        per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)

    @tf.function
    def distributed_test_step(dataset_inputs):
        return strategy.run(test_step, args=(dataset_inputs,))

    losses = []
    for _ in range(2):
        total_loss, num_batches = 0.0, 0
        for batch in train_dist_dataset:
            total_loss += distributed_train_step(batch)
            num_batches += 1
        for batch in test_dist_dataset:
            distributed_test_step(batch)
        checkpoint.save(tmp_path / "ckpt")
        losses.append(float(total_loss / num_batches))
        assert 0.0 <= float(train_accuracy.result()) <= 1.0 and float(test_loss.result()) > 0.0
        test_loss.reset_state()
        train_accuracy.reset_state()
    assert losses[1] < losses[0]
    iterator = iter(train_dist_dataset)
    assert float(distributed_train_step(next(iterator))) > 0.0

    @tf.function
    def distributed_train_epoch(dataset):
        total_loss, num_batches = 0.0, 0
        for batch in dataset:
            total_loss += strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(train_step, args=(batch,)), axis=None)
            num_batches += 1
        return total_loss / tf.cast(num_batches, dtype=tf.float32)

    assert 0.0 < float(distributed_train_epoch(train_dist_dataset)) < losses[0]
    assert checkpoint.restore(tf.train.latest_checkpoint(tmp_path)) is not None


def test_files_by_tensorflows_names(tmp_path):
    gfile, folder = tf.io.gfile, tmp_path / "a" / "b"
    gfile.makedirs(folder)
    gfile.makedirs(folder)
    with gfile.GFile(folder / "x", "w") as file:
        file.write("text")
    gfile.copy(folder / "x", folder / "y")
    with pytest.raises(tf.errors.AlreadyExistsError):
        gfile.rename(folder / "x", folder / "y")
    gfile.rename(folder / "x", folder / "y", overwrite=True)
    assert gfile.listdir(folder) == ["y"] and gfile.glob([str(folder / "*")]) == [str(folder / "y")]
    gfile.rmtree(tmp_path / "a")
    assert not gfile.exists(folder) and gfile.isdir(tmp_path)


def test_a_step_is_planned_for_ranks_that_are_not_there():
    weight, adam = tf.Variable(tf.zeros([300, 100])), tf.keras.optimizers.Adam()

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weight))
        adam.apply_gradients([(tape.gradient(loss, weight), weight)])
        return loss

    rows, size = tf.TensorSpec([8, 300]), 300 * 100 * 4
    plans = {plan.sharding: plan for plan in tf.memory.plan_ranks(step, rows, ranks=4)}
    assert list(plans) == ["replicas", "state", "gradients", "weights"]
    # A sum goes around in blocks: each rank sends 3 of 4 of them twice. Blocks of new weights are gathered.
    assert plans["replicas"].sent == 2 * 3 * size // 4 and plans["state"].sent == 3 * 3 * size // 4
    assert plans["gradients"].sent == 2 * 3 * size // 4
    assert plans["weights"].peak < plans["replicas"].peak and plans["replicas"].seconds > 0.0
    assert plans["replicas"].plan.peak == plans["replicas"].peak
    assert [plan.sharding for plan in tf.memory.plan_ranks(step, rows, ranks=1)] == ["replicas"]
    assert [plan.sharding for plan in tf.memory.plan_ranks(lambda x: x + 1.0, rows, ranks=9)] == ["replicas"]
    with pytest.raises(ValueError, match="0 ranks"):
        tf.memory.plan_ranks(step, rows, ranks=0)
    # Nothing has changed by that: one process trains as it did.
    assert not weight.in_blocks and float(step(tf.ones([8, 300]))) == 0.0


def test_one_rank_has_nothing_to_share(strategy):
    weight, sgd = tf.Variable([1.0, 2.0]), tf.keras.optimizers.SGD(0.1)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x * weight)
        sgd.apply_gradients([(tape.gradient(loss, weight), weight)])

    assert strategy.shard(step, tf.TensorSpec([2]), budget="1MiB").sharding == "replicas"
    with pytest.raises(ValueError, match="of one rank"):
        strategy.shard(step, tf.TensorSpec([2]), sharding="weights")
    with pytest.raises(ValueError, match="none of"):
        strategy.shard(step, tf.TensorSpec([2]), sharding="all")
    with pytest.raises(ValueError, match="or a budget"):
        strategy.shard(step, tf.TensorSpec([2]))
    with pytest.raises(tf.errors.ResourceExhaustedError, match="would do"):
        strategy.shard(step, tf.TensorSpec([2]), budget=1)
