"""Devices: scopes, copies, limits and mistakes, on ``sim:0``, whose memory host code cannot read and whose queue runs late."""

import pickle
import threading
import warnings

import numpy as np
import pytest

import tonnage as tf
from tonnage import _notices

K, L = tf.keras, tf.keras.layers
CPU, SIM = (f"/job:localhost/replica:0/task:0/device:{kind}:0" for kind in ("CPU", "SIM"))
FORMS = ["sim", "sim:0", "SIM:0", "/sim:0", "/SIM:0", "/device:SIM:0", "/physical_device:SIM:0", SIM,
         tf.config.LogicalDevice("/device:SIM:0", "SIM"), tf.config.PhysicalDevice("/physical_device:SIM:0", "SIM")]
NO_NAMES = ["", "tpu:0", "cpu:", "sim:-1", "gpu:x", "0", "/device:", 3, 1.5, b"cpu:0", ["cpu:0"]]
NOT_THERE = ["/GPU:0", "gpu", "cuda:1", "cpu:1", "sim:7"]


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def there(value):
    with tf.device("sim:0"):
        return tf.constant(value)


@pytest.fixture
def strict():
    tf.config.set_soft_device_placement(False)
    yield
    tf.config.set_soft_device_placement(True)


@pytest.fixture
def quiet():
    """No warning is given."""
    told = []
    tf._t.listen(told.append)
    with warnings.catch_warnings():
        warnings.simplefilter("error", _notices.TonnageWarning)
        yield
    tf._t.listen(_notices.tell)
    assert told == []


# Scopes.


@pytest.mark.parametrize("name", FORMS, ids=str)
def test_a_scope_takes_a_device_by_any_of_its_names(name):
    with tf.device(name) as scope:
        x, v = tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])
        assert isinstance(scope, tf.device)
    assert (x.device, v.device, (x + 1.0).device, tf.constant([1.0]).device) == (SIM, SIM, SIM, CPU)


def test_scopes_nest_and_end_by_errors_too():
    with tf.device("sim:0"):
        with tf.device("/CPU:0"):
            here = tf.constant([1.0, 2.0])
            moved = tf.Variable(there([1.0, 2.0]))
        with tf.device(None):
            plain = tf.constant([1.0, 2.0])
        with pytest.raises(ZeroDivisionError), tf.device("/CPU:0"):
            1 // 0
        assert (here.device, moved.device, plain.device, tf.constant([1.0, 2.0]).device) == (CPU, CPU, CPU, SIM)
    scope = tf.device("sim:0")
    with scope, scope:
        assert tf.constant([1.0, 2.0]).device == SIM
    assert tf.constant([1.0, 2.0]).device == CPU


def test_a_scope_is_its_threads():
    found = []
    with tf.device("sim:0"):
        thread = threading.Thread(target=lambda: found.append(tf.constant([1.0, 2.0]).device))
        thread.start()
        thread.join()
    assert found == [CPU]


@pytest.mark.parametrize("name", NO_NAMES, ids=repr)
def test_what_is_no_name_of_a_device_is_refused_everywhere(name):
    for take in (tf.device, tf.memory.info, lambda name: tf.memory.set_limit("1MiB", device=name),
                 lambda name: tf.memory.limit("1MiB", name).__enter__(), tf.memory.reset_peak, tf.config.experimental.get_memory_info,
                 tf.config.experimental.get_memory_usage, tf.config.experimental.reset_memory_stats,
                 lambda name: tf.config.experimental.set_memory_growth(name, True), tf.config.get_logical_device_configuration):
        with pytest.raises(tf.errors.InvalidArgumentError, match="use one like"):
            take(name)


def test_a_function_is_no_device():
    with pytest.raises(RuntimeError, match="does not support functions"):
        tf.device(lambda op: "/CPU:0")


@pytest.mark.parametrize("name", NOT_THERE)
def test_a_device_that_is_not_there_warns_and_is_the_cpu_or_is_refused(name, strict):
    with pytest.raises(tf.errors.InvalidArgumentError, match="this machine has cpu:0"), tf.device(name):
        pass
    for take in (tf.memory.info, lambda name: tf.memory.set_limit(1 << 20, name), tf.config.experimental.get_memory_info):
        with pytest.raises(tf.errors.InvalidArgumentError, match="there is no device"):
            take(name)
    assert tf.constant([1.0, 2.0]).device == CPU  # the scope was not entered
    tf.config.set_soft_device_placement(True)
    _notices._told.difference_update({key for key in _notices._told if "device" in key})
    with pytest.warns(_notices.TonnageWarning, match=f"{name}.*the CPU is taken instead"), tf.device(name):
        assert tf.constant([1.0, 2.0]).device == CPU


# Values.


def test_values_are_copied_out_wherever_python_reads_them():
    x, here = there([[1.0, 2.0], [3.0, 4.5]]), tf.constant([[1.0, 2.0], [3.0, 4.5]])
    assert x.device == SIM
    assert x.numpy().tolist() == [[1.0, 2.0], [3.0, 4.5]] and np.asarray(x).sum() == 10.5
    assert str(x) == str(here) and repr(x) == repr(here) and f"{x[0, 1]:.2f}" == "2.00"
    assert [row.numpy().tolist() for row in x] == [[1.0, 2.0], [3.0, 4.5]]
    assert x[1, 1].device == SIM and float(x[1, 1]) == 4.5 and int(x[1, 0]) == 3 and bool(x[0, 0])
    assert [10, 20][there(1)] == 20 and len(x) == 2 and x[0].numpy().tolist() == [1.0, 2.0]
    assert (x == x).numpy().all() and (x == [[1.0, 0.0], [3.0, 0.0]]).numpy().tolist() == [[True, False], [True, False]]
    assert (x > 2.0).device == SIM and x[x > 2.0].numpy().tolist() == [3.0, 4.5]
    assert memoryview(x).tolist() == [[1.0, 2.0], [3.0, 4.5]] and pickle.loads(pickle.dumps(x)).numpy().tolist() == x.numpy().tolist()
    assert tf.cast(x, tf.bfloat16).numpy().astype("f4").tolist() == [[1.0, 2.0], [3.0, 4.5]]
    v = tf.Variable(x)
    assert repr(v) == repr(tf.Variable(here)) and v.numpy().tolist() == x.numpy().tolist()
    held = x.numpy()
    del x
    assert held.tolist() == [[1.0, 2.0], [3.0, 4.5]]  # the array's own copy


def test_a_read_of_a_device_takes_host_memory_for_as_long_as_its_array_lives():
    x = there(np.ones([1 << 18], "f4"))
    before = tf.memory.info()["current"]
    array = x.numpy()
    assert tf.memory.info()["current"] >= before + (1 << 20)
    del array
    assert tf.memory.info()["current"] == before


def test_identity_cpu_and_gpu_copy(strict):
    x = tf.constant([1.0, 2.0])
    with tf.device("sim:0"):
        y, zeros = tf.identity(x), tf.identity(tf.zeros([3]))
        assert (y.device, zeros.device, x.device) == (SIM, SIM, CPU)
        with tf.device("/CPU:0"):
            assert tf.identity(y).device == CPU
        with tf.device(None):
            assert tf.identity(y).device == SIM
    assert tf.identity(y).device == SIM and tf.identity(x).device == CPU
    assert y.cpu().device == CPU and y.cpu().numpy().tolist() == [1.0, 2.0] and x.cpu() is not y
    for index in (0, 3):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"cuda:{index}"):
            x.gpu(index)


# Mixes.


def test_mixes_are_copied_with_one_warning_a_line():
    here = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    away = there([[1.0, 2.0], [3.0, 4.0]])
    with pytest.warns(_notices.TonnageWarning, match="matmul: an input on cpu:0 was copied to sim:0") as told:
        for _ in range(3):
            made = here @ away
    assert made.device == SIM and made.numpy().tolist() == [[7.0, 10.0], [15.0, 22.0]]
    assert len(told) == 1 and "test_devices.py" in str(told[0].message)
    with pytest.warns(_notices.TonnageWarning, match="was copied to sim:0"):
        assert tf.concat([here, away], 0).device == SIM
    with pytest.warns(_notices.TonnageWarning, match="was copied to sim:0"):
        assert tf.function(lambda x, y: x + y)(here, away).device == SIM


def test_mixes_are_refused_where_placement_is_not_soft(strict):
    assert not tf.config.get_soft_device_placement()
    here, away = tf.constant([1.0, 2.0]), there([1.0, 2.0])
    for mix in (lambda: here + away, lambda: away * here, lambda: tf.concat([here, away], 0), lambda: tf.function(tf.add)(here, away),
                lambda: tf.Variable(here).assign_add(away)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"`tf.identity` inside of `tf.device\(") as error:
            mix()
        assert "cpu:0" in str(error.value) and "sim:0" in str(error.value)
    assert (away + 1.0 + tf.constant(1.0) + tf.zeros([2])).numpy().tolist() == [3.0, 4.0]  # what follows, follows


def test_an_index_that_is_out_of_range_is_found_and_the_device_works_on():
    away = there([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.gather(away, there([7, 8])).numpy()
    assert (away + away).numpy().tolist() == [2.0, 4.0]


# Functions, tapes, memory.


def test_functions_and_tapes_run_on_the_device_with_the_bits_of_the_cpu(quiet):
    def program():
        w, x = tf.Variable(numbers(5, 3)), tf.constant(numbers(7, 5, seed=2))

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.tanh(x @ w)))
            w.assign_sub(0.1 * tape.gradient(loss, w))
            return loss

        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.nn.softmax(x @ w)[:, 0])
        made = [step(x), step(x), w.read_value(), *tape.gradient(loss, [x, w]), tf.function(lambda: tf.range(5) * 2)()]
        return [(m.device, m.numpy()) for m in made]

    here = program()
    with tf.device("sim:0"):
        away = program()
    for (device, values), (other, others) in zip(here, away, strict=True):
        assert values.tobytes() == others.tobytes() and device == CPU
        assert other == SIM or values.dtype == np.int32  # a description lies nowhere


def test_gradients_go_through_copies():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.device("sim:0"):
            y = tf.identity(x)
        loss = tf.reduce_sum((y * y).cpu() * x)
    assert y.device == SIM and tape.gradient(loss, x).numpy().tolist() == [3.0, 12.0]


def test_a_scope_inside_of_a_function_says_so():
    _notices._told.discard("device in a function")

    @tf.function
    def f(x):
        with tf.device("sim:0"):
            return x * 2.0

    with pytest.warns(_notices.TonnageWarning, match="runs where its arguments and variables are"):
        assert f(tf.constant([1.0, 2.0])).device == CPU
    assert f(there([1.0, 2.0])).device == SIM


def test_a_budget_holds_on_the_device_and_the_plan_is_what_is_measured():
    def program(x):
        for _ in range(6):
            x = tf.tanh(x @ x)
        return tf.reduce_sum(x)

    gradient = lambda x: tf.gradients(program(x), x)[0]  # noqa: E731
    x = there(numbers(64, 64))
    free = tf.memory.plan(gradient, x).peak
    step = tf.function(gradient, budget=free * 9 // 10)
    tf.memory.reset_peak("/SIM:0")
    before = tf.memory.info("sim:0")["current"]
    made = step(x)
    peak = tf.memory.info("sim:0")["peak"]
    assert peak - before + x.shape.num_elements() * 4 <= free * 9 // 10 and made.device == SIM
    assert made.numpy().tobytes() == tf.function(gradient)(tf.constant(numbers(64, 64))).numpy().tobytes()
    with pytest.raises(tf.errors.ResourceExhaustedError):
        tf.function(gradient, budget="4KiB")(x)


def test_a_limit_is_of_one_device_and_by_any_name():
    for name in FORMS:
        tf.memory.set_limit("1MiB", device=name)
        assert tf.memory.info(name)["limit"] == 1 << 20 and tf.memory.info()["limit"] is None
        tf.memory.set_limit(None, device=name)
    with tf.memory.limit("1MiB", "sim:0"):
        with pytest.raises(tf.errors.ResourceExhaustedError, match="sim:0"):
            there(numbers(1 << 19))
        tf.constant(numbers(1 << 19))
        kept = [there(numbers(1 << 16, seed=i)) for i in range(8)]  # 2 MiB: some wait in host memory
        assert tf.memory.info("sim:0")["current"] <= 1 << 20
        assert all(k.numpy().tobytes() == numbers(1 << 16, seed=i).tobytes() for i, k in enumerate(kept))
    device = tf.config.LogicalDevice("/device:SIM:0", "SIM")
    tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration(memory_limit=2)])
    assert tf.config.get_logical_device_configuration(device)[0].memory_limit == 2
    assert tf.config.get_logical_device_configuration("CPU:0")[0].memory_limit is None
    tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()])
    usage = tf.config.experimental.get_memory_usage
    held, before = usage("/SIM:0"), usage("/CPU:0")
    x = there(numbers(1 << 16))
    assert usage(SIM) >= held + (1 << 18) and usage("CPU:0") == before
    del x
    tf.config.experimental.reset_memory_stats("sim:0")
    assert tf.config.experimental.get_memory_info("sim:0")["peak"] == usage("sim:0")


# Keras, datasets, checkpoints.


def trained(data, **fit):
    tf.random.set_seed(3)
    np.random.seed(3)
    model = K.Sequential([L.Input((4,)), L.Dense(8, activation="relu"), L.Dropout(0.2), L.BatchNormalization(), L.Dense(2)])
    model.compile(optimizer="adam", loss=K.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    history = model.fit(*data(), epochs=2, verbose=0, **fit).history
    predicted = model.predict(numbers(6, 4, seed=5), verbose=0)
    return model, history, predicted


def arrays():
    return numbers(40, 4), (numbers(40) > 0).astype("i4")


def tensors():
    with tf.device(None):
        return [tf.constant(part) for part in arrays()]


def dataset():
    return [tf.data.Dataset.from_tensor_slices(arrays()).batch(8).prefetch(2)]  # batches are made by another thread


@pytest.mark.parametrize(("data", "fit"), [(arrays, {"batch_size": 8, "validation_split": 0.2}), (tensors, {"batch_size": 8}),
                                           (dataset, {}), (arrays, {"batch_size": 8, "budget": "1MiB"})],
                         ids=["arrays", "tensors", "dataset", "budget"])
def test_a_model_trains_on_the_device_with_the_bits_of_the_cpu(data, fit, quiet):
    model, history, predicted = trained(data, **fit)
    with tf.device("sim:0"):
        other, others, again = trained(data, **fit)
    assert history == others and predicted.tobytes() == again.tobytes()
    assert {v.device for v in model.weights} == {CPU} and {v.device for v in other.weights} == {SIM}
    for here, away in zip(model.get_weights(), other.get_weights(), strict=True):
        assert here.tobytes() == away.tobytes()


def test_a_model_on_the_device_is_saved_and_loaded(tmp_path):
    with tf.device("sim:0"):
        model, _, predicted = trained(arrays, batch_size=8)
        model.save(tmp_path / "model.keras")
        checkpoint = tf.train.Checkpoint(model=model)
        path = checkpoint.save(str(tmp_path / "ckpt"))
    loaded = K.models.load_model(tmp_path / "model.keras")
    assert {v.device for v in loaded.weights} == {CPU}
    assert loaded.predict(numbers(6, 4, seed=5), verbose=0).tobytes() == predicted.tobytes()
    before = [w.numpy() for w in model.weights]
    for w in model.weights:
        w.assign(tf.zeros(w.shape, w.dtype))
    checkpoint.restore(path).assert_consumed()
    assert [w.numpy().tobytes() for w in model.weights] == [b.tobytes() for b in before]
    assert {w.device for w in model.weights} == {SIM}


def test_batches_of_a_dataset_come_to_the_scope_that_takes_them(quiet):
    made = tf.data.Dataset.from_tensor_slices({"x": numbers(6, 2), "n": np.arange(6)}).batch(2).prefetch(1)
    with tf.device("sim:0"):
        inside = list(made)
        assert iter(made).get_next()["x"].device == SIM
    outside = list(made)
    assert {b["x"].device for b in inside} == {SIM} and {b["x"].device for b in outside} == {CPU}
    for here, away in zip(outside, inside, strict=True):
        assert here["x"].numpy().tobytes() == away["x"].numpy().tobytes()


def test_batches_are_copied_to_a_device_before_they_are_asked_for(quiet):
    made = tf.data.Dataset.from_tensor_slices({"x": numbers(6, 2), "n": np.arange(6)}).batch(2)
    to_device = tf.data.experimental.prefetch_to_device
    for step in (to_device("sim:0", 2), to_device("/device:SIM:0"), tf.data.experimental.copy_to_device("sim:0")):
        batches = list(made.apply(step))
        assert {batch[name].device for batch in batches for name in batch} == {SIM}
        for here, away in zip(made, batches, strict=True):
            assert here["x"].numpy().tobytes() == away["x"].numpy().tobytes()
            assert here["n"].numpy().tobytes() == away["n"].numpy().tobytes()
    with pytest.raises(ValueError, match="must be positive"):
        made.apply(to_device("sim:0", 0))


# What there is.


def test_devices_are_listed_by_their_types():
    everything = tf.config.list_physical_devices()
    assert everything[0].name == "/physical_device:CPU:0" and everything[0] == tf.config.list_physical_devices("CPU")[0]
    assert repr(everything[0]) == "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')"
    logical = tf.config.list_logical_devices("CPU")
    assert [d.name for d in logical] == ["/device:CPU:0"] and logical[0].device_type == "CPU"
    assert "LogicalDevice(" in repr(logical[0])
    assert tf.config.list_physical_devices("SIM") == tf.config.list_physical_devices("TPU") == []
    gpus = tf.config.list_physical_devices("GPU")
    assert tf.test.is_gpu_available() == bool(gpus) and (tf.test.gpu_device_name() == "/device:GPU:0") == bool(gpus)
    for device in (*everything, *logical):
        with tf.device(device):
            pass
    with pytest.warns(_notices.TonnageWarning, match="cuda_only has no effect"):
        _notices._told.discard(("tf.test.is_gpu_available", "cuda_only"))
        tf.test.is_gpu_available(cuda_only=True)


def test_visible_devices_are_those_that_programs_may_use(monkeypatch):
    # A machine with two GPUs, as far as lists go.
    monkeypatch.setattr(tf.config._t, "devices", lambda: ["cpu:0", "cuda:0", "cuda:1"])
    monkeypatch.setitem(tf.config._visible, "names", None)
    cpu, first, second = tf.config.get_visible_devices()
    assert [d.device_type for d in (cpu, first, second)] == ["CPU", "GPU", "GPU"]
    tf.config.set_visible_devices(second, "GPU")
    assert tf.config.get_visible_devices() == [cpu, second] and tf.config.get_visible_devices("GPU") == [second]
    assert [d.name for d in tf.config.list_logical_devices("GPU")] == ["/device:GPU:1"]
    assert tf.config.list_physical_devices("GPU") == [first, second]
    with pytest.raises(tf.errors.InvalidArgumentError, match="hidden"):
        tf.memory.info("/GPU:0")
    tf.config.set_visible_devices([], "GPU")
    assert tf.config.get_visible_devices() == [cpu] and not tf.test.is_gpu_available() and tf.test.gpu_device_name() == ""
    tf.config.set_visible_devices([cpu, first])
    assert tf.config.get_visible_devices() == [cpu, first]
    for bad, kind in (([], "CPU"), ([], None), ([first], None), ([first], "CPU"), ("/GPU:0", "GPU"), ([3], None),
                      (tf.config.PhysicalDevice("/physical_device:GPU:9", "GPU"), None)):
        with pytest.raises(ValueError, match="Unrecognized device|cannot be hidden"):
            tf.config.set_visible_devices(bad, kind)
    assert tf.config.get_visible_devices() == [cpu, first]


def test_memory_growth_is_as_it_always_is_and_says_so():
    device = tf.config.list_physical_devices("CPU")[0]
    for enable in (True, False):
        _notices._told.discard("memory_growth")
        with pytest.warns(_notices.TonnageWarning, match="has no effect"):
            tf.config.experimental.set_memory_growth(device, enable)
        assert tf.config.experimental.get_memory_growth(device) is True
    assert tf.config.experimental.get_device_details(device)["device_name"] == "CPU"


# DLPack.


def test_dlpack_gives_host_memory_away_and_says_to_copy_what_lies_elsewhere():
    here, away = tf.constant([1.0, 2.0]), there([1.0, 2.0])
    assert here.__dlpack_device__() == (1, 0) and away.__dlpack_device__() == (12, 0)
    shared = np.from_dlpack(here)
    assert shared.tolist() == [1.0, 2.0] and shared.ctypes.data == here.numpy().ctypes.data
    for give in (lambda: away.__dlpack__(), lambda: tf.experimental.dlpack.to_dlpack(away), lambda: np.from_dlpack(away),
                 lambda: away.__dlpack__(dl_device=(1, 0), copy=False)):
        with pytest.raises(BufferError, match=r"copy it to the host first, with x.cpu\(\)"):
            give()
    with pytest.raises(BufferError, match="no way to device"):
        here.__dlpack__(dl_device=(2, 0))
    assert np.from_dlpack(away.cpu()).tolist() == [1.0, 2.0]
    assert np.from_dlpack(away, device="cpu").tolist() == [1.0, 2.0]
    back = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(here))
    assert back.numpy().tolist() == [1.0, 2.0] and back.device == CPU
    with tf.device("sim:0"):
        assert tf.experimental.dlpack.from_dlpack(numbers(3)).device == SIM
