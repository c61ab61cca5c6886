"""``tf.distribute`` on several ranks, each a process that ``mpirun`` starts: the bits of one process that goes through the parts of all ranks, no row twice, one end."""

import pytest
from ranks import has_mpi4py, on_ranks, start

# What the programs share: a model with dropout, and what one process makes of the parts of all ranks.
COMMON = """
import os
import numpy as np, tonnage as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
ranks, rank = strategy.num_replicas_in_sync, strategy.cluster_resolver.task_id
rng = np.random.default_rng(0)
x, y = rng.normal(size=(101, 6)).astype("float32"), rng.integers(0, 4, 101)


def parts(rows):
    each, longer = divmod(rows, ranks)
    starts = [r * each + min(r, longer) for r in range(ranks + 1)]
    return list(zip(starts, starts[1:]))


def network():
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Input((6,)), layers.Dense(24, activation="tanh"), layers.Dropout(0.3), layers.Dense(4)])


def bits(variables):
    return [v.numpy().tobytes() for v in variables]


def same_on_all(variables):
    own = np.frombuffer(b"".join(bits(variables)), "uint8")
    every = strategy.gather(tf.constant(own[None]), 0).numpy()
    assert (every == own).all()


def one_process(batch, epochs, share):
    # A part is one call, which draws its random numbers; sums are from 0 on, in the order of the parts.
    tf.random.set_seed(7)
    model, optimizer = network(), tf.keras.optimizers.Adam(0.02)

    @tf.function
    def part(x, y):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True))
            loss = share(losses)
        return tape.gradient(loss, model.trainable_variables)

    for _ in range(epochs):
        for start in range(0, len(x), batch):
            a, b = x[start:start + batch], y[start:start + batch]
            sums = [tf.zeros(v.shape) for v in model.trainable_variables]
            for first, last in parts(len(a)):
                made = part(tf.constant(a[first:last]), tf.constant(b[first:last]))
                sums = [s + g for s, g in zip(sums, made)]
            optimizer.apply_gradients(zip(sums, model.trainable_variables))
    return bits(model.trainable_variables)
"""

CUSTOM = COMMON + """
tf.random.set_seed(7)
with strategy.scope():
    assert tf.distribute.has_strategy() and tf.distribute.in_cross_replica_context() and tf.distribute.get_strategy() is strategy
    model, optimizer = network(), tf.keras.optimizers.Adam(0.02)
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    seen = tf.keras.metrics.Sum()
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(24)


def step(inputs):
    images, labels = inputs
    context = tf.distribute.get_replica_context()
    assert (context.num_replicas_in_sync, context.replica_id_in_sync_group) == (ranks, rank)
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        loss = tf.nn.compute_average_loss(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    accuracy.update_state(labels, logits)
    seen.update_state(tf.ones_like(labels, dtype="float32"))
    return loss


@tf.function
def distributed(inputs):
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(inputs,)), axis=None)


for _ in range(3):
    for batch in strategy.experimental_distribute_dataset(data):
        loss = distributed(batch)
assert float(seen.result()) == 303.0 and 0.0 < float(accuracy.result()) < 1.0
same_on_all([*model.trainable_variables, *optimizer.variables])
same_on_all([tf.Variable(loss), tf.Variable(accuracy.result())])
assert bits(model.trainable_variables) == one_process(24, 3, lambda l: tf.reduce_sum(l) / tf.cast(ranks * l.shape[0], "float32"))

# However much ranks hold in blocks, no bit changes; each holds its share alone, and a checkpoint has the whole.
whole = bits(model.trainable_variables), sum(v.bytes for v in optimizer.variables)
rows_of_batch = tf.TensorSpec([12 if ranks == 2 else 8, 6]), tf.TensorSpec([12 if ranks == 2 else 8], "int64")
for sharding in ("state", "gradients", "weights"):
    tf.random.set_seed(7)
    with strategy.scope():
        model, optimizer = network(), tf.keras.optimizers.Adam(0.02)
    plan = strategy.shard(step, rows_of_batch, sharding=sharding)
    assert plan.sharding == strategy.sharding == sharding and plan.sent > 0
    again = tf.function(lambda inputs: strategy.reduce("SUM", strategy.run(step, args=(inputs,)), axis=None))
    for _ in range(3):
        for batch in strategy.experimental_distribute_dataset(data):
            again(batch)
    assert sum(v.bytes for v in optimizer.variables) < 0.6 * whole[1], sharding
    assert any(v.in_blocks for v in model.trainable_variables) == (sharding == "weights")
    assert bits(model.trainable_variables) == whole[0], sharding
    assert tf.train.Checkpoint(model=model, optimizer=optimizer).write(f"saved-{sharding}") == f"saved-{sharding}"
    other = network()
    tf.train.Checkpoint(model=other).read(f"saved-{sharding}")
    assert bits(other.trainable_variables) == whole[0]
    # Each rank writes what it holds, and reads that back; what is saved again takes the place of what was.
    checkpoint, held = tf.train.Checkpoint(model=model, optimizer=optimizer), [*model.trainable_variables, *optimizer.variables]
    before = bits(held)
    checkpoint.write(f"saved-{sharding}")
    for variable in held:
        variable.assign(tf.zeros_like(variable))
    checkpoint.read(f"saved-{sharding}").assert_consumed()
    assert bits(held) == before
    names = [name for name in os.listdir(".") if name.startswith(f"saved-{sharding}.")]
    assert len(names) == 1 + ranks and f"saved-{sharding}.ranges.json" in names, names
strategy.world.barrier()
manager = tf.train.CheckpointManager(checkpoint, "kept", max_to_keep=1)
saved = [manager.save(), manager.save()]
assert saved == ["kept/ckpt-1", "kept/ckpt-2"] and tf.train.latest_checkpoint("kept") == saved[1]
assert sum(name.endswith(".safetensors") for name in os.listdir("kept")) == ranks, os.listdir("kept")
strategy.world.barrier()
strategy.sharding = "replicas"
try:
    strategy.shard(step, rows_of_batch, budget=100)
    raise SystemExit("nothing fits 100 bytes")
except tf.errors.ResourceExhaustedError as error:
    assert "would do" in str(error) and f"{ranks} ranks" in str(error)

# Ranks may have different numbers of rows of a table's gradient, or none: what all have is added up, and no other row is touched.
def stepper(table, optimizer):
    def step(numbers):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, numbers) * tf.cast(numbers, "float32")[:, None])
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])
    return step

def numbers_of(rank, call):
    return [(3 + rank + i) % 20 for i in range((rank, 3 - rank % 2, 1)[call])]

for wrapped in (lambda f: f, tf.function):
    with strategy.scope():
        table, adam = tf.Variable(tf.ones([20, 2])), tf.keras.optimizers.Adam(0.5)
    one_table, one_adam = tf.Variable(tf.ones([20, 2])), tf.keras.optimizers.Adam(0.5)
    several, one = wrapped(stepper(table, adam)), wrapped(stepper(one_table, one_adam))
    for call in (0, 1, 2, 1):
        strategy.run(several, (tf.constant(numbers_of(rank, call), "int32"),))
        one(tf.constant([n for r in range(ranks) for n in numbers_of(r, call)], "int32"))
    assert bits([table, *adam.variables]) == bits([one_table, *one_adam.variables])

# What goes between replicas.
rows = tf.constant(np.full((rank + 1, 2), rank, "int32"))
assert strategy.gather(rows, 0).numpy()[:, 0].tolist() == [r for r in range(ranks) for _ in range(r + 1)]
assert strategy.gather(tf.transpose(rows), 1).shape == (2, ranks * (ranks + 1) // 2)
assert int(strategy.reduce("SUM", tf.constant(rank), None)) == sum(range(ranks))
mean = strategy.reduce("MEAN", tf.cast(rows, "float32"), 0).numpy()
assert np.allclose(mean, sum(r * (r + 1) for r in range(ranks)) / sum(r + 1 for r in range(ranks)))
def together():
    context = tf.distribute.get_replica_context()
    total = context.all_reduce("SUM", {"a": tf.constant(1.0), "b": tf.constant([rank])})
    return total, context.all_gather(tf.constant([rank]), 0), tf.random.uniform([])
total, all_ranks, number = strategy.run(together)
assert float(total["a"]) == ranks and int(total["b"][0]) == sum(range(ranks)) and all_ranks.numpy().tolist() == list(range(ranks))
assert len(set(strategy.gather(tf.reshape(number, [1]), 0).numpy().tolist())) == ranks, "each replica draws its own numbers"
same_on_all([tf.Variable(tf.random.uniform([3]))])

# A first value is that of rank 0, wherever it comes from.
with strategy.scope():
    made = tf.Variable(np.random.default_rng(rank).normal(size=3)), tf.Variable(tf.fill([9], float(rank)))
same_on_all(made)
try:
    with strategy.scope():
        optimizer.apply_gradients([(tf.zeros(v.shape), v) for v in model.trainable_variables])
    raise SystemExit("applied for all replicas at once")
except RuntimeError as error:
    assert "strategy.run" in str(error)

# Parts of each batch, or all rows in batches as small.
def rows_of(data):
    return [batch.numpy().tolist() for batch in strategy.experimental_distribute_dataset(data)]
numbers = tf.data.Dataset.range(10).shuffle(10).batch(4)
own = rows_of(numbers)
everything = strategy.gather(tf.constant([n for batch in own for n in batch], "int64"), 0).numpy().tolist()
assert sorted(everything) == list(range(10)) and len(own) == 3
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
assert sorted(n for batch in rows_of(numbers.with_options(options)) for n in batch) == list(range(10))
context = strategy.distribute_datasets_from_function(lambda c: tf.data.Dataset.range(10).shard(c.num_input_pipelines, c.input_pipeline_id))
assert [int(n) for n in context] == list(range(rank, 10, ranks))
print("rank", rank, "done")
"""


def test_a_hand_written_loop_has_the_bits_of_one_process(tmp_path):
    assert on_ranks(2, CUSTOM, tmp_path).count("done") == 2


FIT = COMMON + """
tf.random.set_seed(7)
with strategy.scope():
    model = network()
    model.compile(tf.keras.optimizers.Adam(0.02), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
rows = 96  # without a rest, whose parts would have other weights
history = model.fit(x[:rows], y[:rows], batch_size=24, epochs=3, shuffle=False, verbose=0)
x, y = x[:rows], y[:rows]
same_on_all(model.variables)
assert bits(model.trainable_variables) == one_process(24, 3, lambda l: tf.reduce_mean(l) * (1.0 / ranks))
figures = np.array([history.history["loss"][-1], history.history["accuracy"][-1], *model.evaluate(x, y, verbose=0)], "float64")
same_on_all([tf.Variable(figures)])

# As one process judges the same weights.
alone = network()
alone.set_weights(model.get_weights())
alone.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
assert np.allclose(alone.evaluate(x, y, verbose=0), figures[2:], rtol=1e-5)
assert np.array_equal(alone.predict(x), model.predict(x))

# Rests, shuffled rows, rows of a table, means over batches, datasets and generators: all ranks stay the same.
with strategy.scope():
    layers = tf.keras.layers
    inputs = layers.Input((6,))
    table = layers.Flatten()(layers.Embedding(50, 2)(tf.keras.layers.Lambda(lambda t: tf.cast(abs(t[:, :1]) * 20, "int32") % 50)(inputs)))
    made = layers.BatchNormalization()(layers.Dense(8)(inputs))
    other = tf.keras.Model(inputs, layers.Dense(4)(layers.Concatenate()([made, table])))
    other.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
other.fit(x, y, batch_size=24, epochs=2, verbose=0)
same_on_all(other.variables)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(96).repeat().batch(24)
calls = []
class Stop(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        calls.append(batch)
        if rank == ranks - 1 and len(calls) == 6:
            self.model.stop_training = True
other.fit(data, epochs=5, steps_per_epoch=4, verbose=0, callbacks=[Stop()], validation_data=(x, y))
assert len(calls) == 6
same_on_all([*other.variables, *other.optimizer.variables])
for trained in (model, other):
    trained.fit(x[:50], y[:50], batch_size=24, verbose=0)  # a rest of 2 rows, of which one rank has none
    same_on_all(trained.variables)
print("rank", rank, "done")
"""


def test_fit_has_the_bits_of_one_process(tmp_path):
    assert on_ranks(3, FIT, tmp_path).count("done") == 3


TUTORIAL = """
import json, os
import numpy as np, tonnage as tf

os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["localhost:12345", "localhost:23456"]},
                                      "task": {"type": "worker", "index": int(os.environ["OMPI_COMM_WORLD_RANK"])}})
tf_config = json.loads(os.environ["TF_CONFIG"])
num_workers = len(tf_config["cluster"]["worker"])


def mnist_dataset(batch_size):
    rng = np.random.default_rng(1)
    x_train, y_train = (rng.integers(0, 255, (640, 28, 28)) / np.float32(255)).astype(np.float32), rng.integers(0, 10, 640).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(640).repeat().batch(batch_size)


def build_and_compile_cnn_model():
    model = tf.keras.Sequential([
        tf.keras.layers.InputLayer(input_shape=(28, 28)),
        tf.keras.layers.Reshape(target_shape=(28, 28, 1)),
        tf.keras.layers.Conv2D(4, 3, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(16, activation="relu"),
        tf.keras.layers.Dense(10)])
    model.compile(loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  optimizer=tf.keras.optimizers.SGD(learning_rate=0.001), metrics=["accuracy"])
    return model


strategy = tf.distribute.MultiWorkerMirroredStrategy(
    communication_options=tf.distribute.experimental.CommunicationOptions(timeout_seconds=60))
global_batch_size = 16 * num_workers
multi_worker_dataset = mnist_dataset(global_batch_size)
with strategy.scope():
    multi_worker_model = build_and_compile_cnn_model()
multi_worker_model.fit(multi_worker_dataset, epochs=1, steps_per_epoch=3, verbose=0)

model_path = "keras-model/model.keras"


def _is_chief(task_type, task_id):
    return (task_type == "worker" and task_id == 0) or task_type is None


def _get_temp_dir(dirpath, task_id):
    temp_dir = os.path.join(dirpath, "workertemp_" + str(task_id))
    tf.io.gfile.makedirs(temp_dir)
    return temp_dir


def write_filepath(filepath, task_type, task_id):
    dirpath, base = os.path.dirname(filepath), os.path.basename(filepath)
    if not _is_chief(task_type, task_id):
        dirpath = _get_temp_dir(dirpath, task_id)
    tf.io.gfile.makedirs(dirpath)
    return os.path.join(dirpath, base)


task_type, task_id = strategy.cluster_resolver.task_type, strategy.cluster_resolver.task_id
write_model_path = write_filepath(model_path, task_type, task_id)
multi_worker_model.save(write_model_path)
if not _is_chief(task_type, task_id):
    tf.io.gfile.rmtree(os.path.dirname(write_model_path))

checkpoint_dir = os.path.join(os.getcwd(), "ckpt")
checkpoint = tf.train.Checkpoint(model=multi_worker_model)
write_checkpoint_dir = write_filepath(checkpoint_dir, task_type, task_id)
checkpoint_manager = tf.train.CheckpointManager(checkpoint, directory=write_checkpoint_dir, max_to_keep=1)
checkpoint_manager.save()
if not _is_chief(task_type, task_id):
    tf.io.gfile.rmtree(write_checkpoint_dir)
latest_checkpoint = tf.train.latest_checkpoint(checkpoint_dir)
before = multi_worker_model.get_weights()
multi_worker_model.fit(multi_worker_dataset, epochs=1, steps_per_epoch=2, verbose=0)
checkpoint.restore(latest_checkpoint)
assert all(np.array_equal(a, b) for a, b in zip(before, multi_worker_model.get_weights()))

# All ranks save to one place: one of them writes.
together = tf.train.Checkpoint(model=multi_worker_model)
assert together.save("all/ckpt") == "all/ckpt-1" and os.listdir("all")
callbacks = [tf.keras.callbacks.BackupAndRestore(backup_dir="backup"), tf.keras.callbacks.ModelCheckpoint("best.keras", monitor="loss"),
             tf.keras.callbacks.CSVLogger("log.csv")]
multi_worker_model.fit(multi_worker_dataset, epochs=2, steps_per_epoch=2, callbacks=callbacks, verbose=2)
assert len(open("log.csv").read().splitlines()) == 3
loaded_model = tf.keras.models.load_model(model_path)
loaded_model.fit(mnist_dataset(16), epochs=1, steps_per_epoch=2, verbose=0)
print("rank", task_id, "done")
"""


def test_the_tutorial_on_several_workers_with_keras_runs(tmp_path):
    out = on_ranks(2, TUTORIAL, tmp_path)
    assert out.count("done") == 2 and out.count("Epoch 2/2") == 1, "one rank speaks"


def test_an_mpi_that_mpi4py_started_is_shared(tmp_path):
    if not has_mpi4py():
        pytest.skip("SKIPPED: no mpi4py, and none can be installed")
    program = """
from mpi4py import MPI
import numpy as np, tonnage as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
comm = MPI.COMM_WORLD
assert (strategy.world.rank, strategy.world.size) == (comm.rank, comm.size)
assert int(strategy.reduce("SUM", tf.constant(comm.rank), None)) == comm.allreduce(comm.rank) == 1
assert not MPI.Is_finalized()
print("rank", comm.rank, "done")
"""
    assert on_ranks(2, program, tmp_path).count("done") == 2


@pytest.mark.parametrize("program, words", [
    ("if rank == 1: raise ValueError('no more')", "ValueError: no more"),
    ("if rank == 1: tf.random.set_seed(8)\ntf.distribute.MultiWorkerMirroredStrategy()",
     "the random state (`tf.random.set_seed`) of rank 1 is not that of rank 0"),
    ("if rank == 1: import signal; signal.raise_signal(signal.SIGINT)", "KeyboardInterrupt")])
def test_a_rank_that_fails_ends_all(tmp_path, program, words):
    begin = "import tonnage as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\nrank = strategy.world.rank\n"
    made = start(2, begin + program + "\nstrategy.world.barrier()\nstrategy.world.barrier()\n", tmp_path)
    assert made.returncode != 0 and words in made.stderr, made.stderr
