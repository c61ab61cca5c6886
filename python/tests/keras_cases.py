"""What is asked of losses, metrics, optimizers, activations and layers, with the numbers that Keras gives.

Each case takes a Keras and a TensorFlow and gives pairs of a label and a value. Inputs come from a formula, so any Keras can be
asked the same: ``keras_expected.json`` holds the answers of Keras 3.15 on TensorFlow 2.21.
"""

import itertools

import numpy as np

CASES = {}


def case(name):
    """Registers a case."""
    def register(function):
        CASES[name] = function
        return function

    return register


def numbers(*shape, at=0.0, dtype="f4"):
    """Numbers between -2 and 2 that repeat nowhere."""
    return np.round(2 * np.sin(np.arange(np.prod(shape, dtype=int)) * 1.7 + at), 3).reshape(shape).astype(dtype)


def shares(*shape, at=0.0):
    """Numbers between 0.05 and 0.95."""
    return np.round(0.5 + 0.225 * numbers(*shape, at=at), 3).astype("f4")


def wholes(*shape, at=0.0, dtype="i4", most=5):
    """Whole numbers."""
    return (np.abs(numbers(*shape, at=at) * 50).astype(int) % most).astype(dtype)


def plain(value):
    """A value as a NumPy array."""
    return np.array(value.numpy() if hasattr(value, "numpy") else value)


def weights(shape):
    """Weights for values of a shape: none, one of all, of rows, of rows with an axis of length 1, of steps."""
    found = {"none": None, "one": 2.5, "rows": shares(shape[0], at=3), "rows of 1": shares(shape[0], 1, at=4),
             "zeros": np.zeros(shape[0], "f4")}
    if len(shape) == 3:
        del found["rows"], found["zeros"]  # Keras takes none for losses of steps
        found["rows of 1"] = None
        found["steps"] = shares(*shape[:-1], at=5)
    return found


SHAPES = (4,), (3, 2), (2, 3, 2)
LOSSES = ("MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredLogarithmicError", "Huber", "LogCosh",
          "KLDivergence", "Poisson", "Hinge", "SquaredHinge", "CategoricalHinge", "CosineSimilarity", "BinaryCrossentropy",
          "BinaryFocalCrossentropy")
PROBABLE = ("KLDivergence", "Poisson", "BinaryCrossentropy", "BinaryFocalCrossentropy", "MeanSquaredLogarithmicError")
REDUCTIONS = "sum_over_batch_size", "sum", "none", "mean", "mean_with_sample_weight"
DTYPES = (("f4", "f4"), ("i4", "f4"), ("f4", "i4"), ("i4", "i4"), ("i8", "i8"), ("u1", "u1"), ("?", "f4"), ("f8", "f8"), ("f2", "f2"))


def labelled(shape, dtype, probable, at):
    if dtype[0] in "iu":
        return wholes(*shape, at=at, dtype=dtype, most=2 if probable else 5)
    if dtype == "?":
        return numbers(*shape, at=at) > 0
    return (shares if probable else numbers)(*shape, at=at).astype(dtype)


def losses():
    for name, shape in itertools.product(LOSSES, SHAPES):
        @case(f"loss {name} {shape}")
        def weighted(keras, tf, name=name, shape=shape):
            y, p = (labelled(shape, "f4", name in PROBABLE, at) for at in (1, 2))
            for reduction, (label, weight) in itertools.product(REDUCTIONS, weights(shape).items()):
                yield f"{reduction}, {label}", getattr(keras.losses, name)(reduction=reduction)(y, p, sample_weight=weight)

    for name in LOSSES:
        @case(f"loss {name} dtypes")
        def of_dtypes(keras, tf, name=name):
            for (a, b), shape in itertools.product(DTYPES, SHAPES):
                y, p = labelled(shape, a, name in PROBABLE, 1), labelled(shape, b, name in PROBABLE, 2)
                yield f"{a} {b} {shape}", getattr(keras.losses, name)()(y, p)

    for first, second in (((3,), (3, 1)), ((3, 1), (3,)), ((3, 2, 1), (3, 2)), ((3, 2), (3, 2, 1))):
        @case(f"loss of {first} and {second}")
        def ranks(keras, tf, first=first, second=second):
            for name, weight in itertools.product(("MeanSquaredError", "Huber", "BinaryCrossentropy"), (None, shares(3))):
                loss = getattr(keras.losses, name)(reduction="none")
                yield f"{name}, {weight is None}", loss(shares(*first), shares(*second, at=1), sample_weight=weight)
            model = keras.Sequential([keras.layers.Flatten()])
            model.compile(loss=lambda t, p: tf.reduce_mean(tf.square(t - p), axis=-1))
            yield "function", model.evaluate(shares(3, 1), shares(3, at=1), verbose=0)

    for name, logits in itertools.product(("BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy"), (False, True)):
        @case(f"loss {name}, from_logits={logits}")
        def entropy(keras, tf, name=name, logits=logits):
            for smoothing, (a, b) in itertools.product((0.0, 0.1), (("f4", "f4"), ("i4", "f4"), ("?", "f4"))):
                y = np.eye(3)[[2, 0, 1, 1]].astype(a)
                p = (2 * numbers(4, 3) if logits else shares(4, 3)).astype(b)
                loss = getattr(keras.losses, name)(from_logits=logits, label_smoothing=smoothing, reduction="none")
                yield f"{smoothing} {a}", loss(y, p)

    for logits, ignored in itertools.product((False, True), (None, 0, 1, -1)):
        @case(f"loss SparseCategoricalCrossentropy, from_logits={logits}, ignore_class={ignored}")
        def sparse(keras, tf, logits=logits, ignored=ignored):
            for reduction, shape, weight in itertools.product((*REDUCTIONS, None), ((4,), (2, 3), (4, 1)), (None, 2.0)):
                y = wholes(*shape, most=3)
                y = y if ignored != -1 else np.where(numbers(*shape, at=2) > 0.5, -1, y)
                places = shape[:-1] if shape == (4, 1) else shape
                p = numbers(*places, 3) if logits else shares(*places, 3)
                loss = keras.losses.SparseCategoricalCrossentropy(from_logits=logits, ignore_class=ignored, reduction=reduction)
                yield f"{reduction} {shape} {weight}", loss(y, p, sample_weight=weight)

    @case("loss of masked predictions")
    def masked(keras, tf):
        for reduction, weight in itertools.product(REDUCTIONS, (None, shares(2, 3))):
            p = tf.constant(numbers(2, 3, 2))
            p._keras_mask = tf.constant([[True, False, True], [True, False, False]])
            yield f"{reduction} {weight is None}", keras.losses.MeanSquaredError(reduction=reduction)(
                numbers(2, 3, 2, at=1), p, sample_weight=weight)

    @case("loss of small vectors")
    def small(keras, tf):
        for size in (0.0, 1e-9, 1e-6, 1e-3):
            yield str(size), keras.losses.CosineSimilarity(reduction="none")(numbers(2, 3), size * numbers(2, 3, at=1))


METRICS = ("MeanSquaredError", "RootMeanSquaredError", "MeanAbsoluteError", "MeanSquaredLogarithmicError", "LogCoshError",
           "KLDivergence", "Poisson", "Hinge", "CategoricalHinge", "CosineSimilarity", "BinaryCrossentropy", "CategoricalCrossentropy",
           "Accuracy", "BinaryAccuracy", "CategoricalAccuracy")
PATTERNS = "nn", "wn", "nw", "sn", "en", "1n", "zn"


def updated(metric, updates):
    """The results after each update."""
    for update in updates:
        metric.update_state(*update)
        yield plain(metric.result())


def weight_of(kind, shape):
    return {"n": None, "w": shares(shape[0], at=3), "s": 2.0, "e": shares(*shape, at=5), "1": shares(shape[0], 1, at=4),
            "z": np.zeros(shape[0], "f4"), "i": shares(*shape[:-1], at=6)}[kind]


def metrics():
    for name in METRICS:
        @case(f"metric {name}")
        def successive(keras, tf, name=name):
            for shape, pattern in itertools.product(SHAPES, PATTERNS):
                one_a_row = name not in ("RootMeanSquaredError", "Accuracy", "BinaryAccuracy")
                if one_a_row and (len(shape) == 1 and pattern not in ("nn", "sn") or len(shape) == 2 and pattern == "en"):
                    continue
                shapes = [(shape[0] + i, *shape[1:]) for i in range(len(pattern))]
                made = [(shares(*s, at=1), shares(*s, at=2), weight_of("i" if c == "e" and one_a_row else c, s))
                        for c, s in zip(pattern, shapes)]
                yield from ((f"{shape} {pattern}", v) for v in updated(getattr(keras.metrics, name)(), made))
            for dtype in ("i4", "?"):
                y, p = wholes(4, 3, most=2).astype(dtype), wholes(4, 3, at=1, most=2)
                if name not in ("MeanSquaredLogarithmicError", "LogCoshError", "KLDivergence", "Poisson", "Hinge", "CategoricalHinge",
                                "CosineSimilarity", "BinaryCrossentropy", "CategoricalCrossentropy"):
                    yield from ((dtype, v) for v in updated(getattr(keras.metrics, name)(), [(y, p), (y, p, weight_of("w", (4,)))]))

    for name in ("Mean", "Sum"):
        @case(f"metric {name}")
        def folded(keras, tf, name=name):
            for shape, dtype, pattern in itertools.product(SHAPES, ("f4", "i4"), (*PATTERNS, "wn", "in")):
                if pattern == "in" and len(shape) == 1:
                    continue
                made = [(labelled(shape, dtype, False, i), weight_of(c, shape)) for i, c in enumerate(pattern)]
                yield from ((f"{shape} {dtype} {pattern}", v) for v in updated(getattr(keras.metrics, name)(), made))
            yield "number", next(updated(getattr(keras.metrics, name)(), [(3.5, 2.0)]))

    for name in ("TruePositives", "FalsePositives", "TrueNegatives", "FalseNegatives", "Precision", "Recall", "AUC"):
        @case(f"metric {name}")
        def counted(keras, tf, name=name):
            for shape, pattern in itertools.product(SHAPES[:2], ("nn", "wn", "sn", "en")):
                made = [(wholes(*shape, at=i, most=3), shares(*shape, at=i + 2), weight_of(c, shape)) for i, c in enumerate(pattern)]
                yield from ((f"{shape} {pattern}", v) for v in updated(getattr(keras.metrics, name)(), made))
            for thresholds in () if name == "AUC" else (0.3, [0.2, 0.5, 0.9]):
                made = [(wholes(5, 2, most=2), np.round(shares(5, 2), 1), w) for w in (None, shares(5))]
                yield from ((f"{thresholds}", v) for v in updated(getattr(keras.metrics, name)(thresholds=thresholds), made))

    @case("metrics of predictions out of range")
    def beyond(keras, tf):
        y, p = np.array([0, 1, 1, 0], "f4"), np.array([-0.5, 0.2, 1.5, 0.7], "f4")
        for name, thresholds in itertools.product(("TruePositives", "FalsePositives", "Precision", "Recall"),
                                                  (0.5, [0.0, 0.5, 1.0], [0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.4, 1.0], [0.1, 0.5])):
            yield f"{name} {thresholds}", next(updated(getattr(keras.metrics, name)(thresholds=thresholds), [(y, p)]))
        for count, curve in itertools.product((2, 3, 5, 200), ("ROC", "PR")):
            yield f"AUC {count} {curve}", next(updated(keras.metrics.AUC(num_thresholds=count, curve=curve), [(y, p)]))

    for name in ("SensitivityAtSpecificity", "SpecificityAtSensitivity", "PrecisionAtRecall", "RecallAtPrecision"):
        @case(f"metric {name}")
        def best(keras, tf, name=name):
            for value, count in itertools.product((0.0, 0.4, 0.8), (1, 3, 20)):
                made = [(wholes(12, most=2), shares(12, at=1), w) for w in (None, shares(12))]
                yield from ((f"{value} {count}", v) for v in updated(getattr(keras.metrics, name)(value, num_thresholds=count), made))

    @case("metric top k")
    def top(keras, tf):
        ties = np.array([[0.5, 0.5, 0.5, 0.1], [0.3, 0.3, 0.2, 0.2], [0.1, np.nan, 0.2, 0.3]], "f4")
        for k, label in itertools.product((1, 2, 3, 5), range(4)):
            made = [(np.array([label] * 3), ties)]
            yield f"{k} {label}", next(updated(keras.metrics.SparseTopKCategoricalAccuracy(k=k), made))
            made = [(np.eye(4)[[label] * 3], ties, weight_of("w", (3,)))]
            yield f"{k} {label}", next(updated(keras.metrics.TopKCategoricalAccuracy(k=k), made))

    for name, average in itertools.product(("F1Score", "FBetaScore"), (None, "micro", "macro", "weighted")):
        @case(f"metric {name}, average={average}")
        def harmonic(keras, tf, name=name, average=average):
            p = np.array([[0.5, 0.5, 0.1], [0, 0, 0], [0.2, 0.1, 0.6], [0.3, 0.3, 0.3]], "f4")
            for threshold in (None, 0.25):
                made = [(np.eye(3)[[0, 1, 2, 2]], p), (np.eye(3)[[0, 0, 2, 1]], p, weight_of("w", (4,)))]
                yield from ((f"{threshold}", v) for v in updated(getattr(keras.metrics, name)(average, threshold=threshold), made))

    for aggregation in (None, "uniform_average", "variance_weighted_average"):
        @case(f"metric R2Score, {aggregation}")
        def explained(keras, tf, aggregation=aggregation):
            y, p = numbers(4, 2), numbers(4, 2, at=1)
            same = np.stack([np.full(4, 2.0, "f4"), y[:, 1]], 1)
            for label, labels in (("any", y), ("constant column", same)):
                yield from ((label, v) for v in updated(keras.metrics.R2Score(class_aggregation=aggregation), [
                    (labels, p), (labels, p, np.array([1, 2, 1, 0.5], "f4")), (labels, p, 2.0)]))

    @case("metric IoU")
    def overlaps(keras, tf):
        y, p = np.array([0, 1, 2, 2, 7, -1]), np.array([0, 2, 2, 5, 1, 1])
        for ignored, weight in itertools.product((None, 1, 7), (None, np.array([1, 2, 3, 1, 2, 1]))):
            made = [(y, p, weight), (p, y, None)]
            yield from ((f"{ignored}", v) for v in updated(keras.metrics.MeanIoU(num_classes=3, ignore_class=ignored), made))
        yield from (("binary", v) for v in updated(keras.metrics.BinaryIoU([0, 1], 0.5), [
            (np.array([0, 1, 0, 1]), np.array([0.1, 0.2, 0.5, 0.7], "f4"), 2)]))

    @case("metric of masked predictions")
    def masked(keras, tf):
        for name, weight in itertools.product(("MeanSquaredError", "RootMeanSquaredError", "CategoricalAccuracy"), (None, shares(2, 3))):
            p = tf.constant(numbers(2, 3, 2))
            p._keras_mask = tf.constant([[True, False, True], [True, False, False]])
            made = [(numbers(2, 3, 2, at=1), p, weight), (numbers(2, 3, 2, at=1), numbers(2, 3, 2))]
            yield from ((f"{name} {weight is None}", v) for v in updated(getattr(keras.metrics, name)(), made))


RULES = {
    "SGD": ({"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}),
    "Adam": ({"epsilon": 1.0}, {"amsgrad": True, "epsilon": 0.1}, {"beta_1": 0.5, "beta_2": 0.6, "epsilon": 0.01}),
    "AdamW": ({"epsilon": 1.0}, {"weight_decay": 0.1}, {"amsgrad": True}),
    "Adamax": ({"epsilon": 1.0}, {"beta_1": 0.5, "beta_2": 0.6}), "Nadam": ({"epsilon": 1.0}, {"beta_1": 0.5, "beta_2": 0.6}),
    "RMSprop": ({"epsilon": 1.0}, {"momentum": 0.5}, {"centered": True, "momentum": 0.5, "epsilon": 0.1}),
    "Adagrad": ({"epsilon": 1.0}, {"initial_accumulator_value": 1.0}), "Adadelta": ({"epsilon": 1.0}, {"rho": 0.5}),
    "Ftrl": ({"l1_regularization_strength": 0.1}, {"beta": 0.5, "learning_rate_power": -0.3}), "Lion": ({"beta_1": 0.5},),
    "Adafactor": ({"relative_step": False}, {"clip_threshold": 0.1})}
OPTIONS = ({}, {"weight_decay": 0.1}, {"clipnorm": 0.5}, {"global_clipnorm": 0.5}, {"use_ema": True, "ema_momentum": 0.5},
           {"gradient_accumulation_steps": 2}, {"schedule": True}, {"schedule": True, "gradient_accumulation_steps": 2})


def optimizers():
    for name, rules in RULES.items():
        @case(f"optimizer {name}")
        def steps(keras, tf, name=name, rules=rules):
            for options, rate in [*itertools.product(rules, (0.1, 1.0)), *((o, 0.1) for o in OPTIONS)]:
                label, options = f"{options} {rate}", dict(options)
                if options.pop("schedule", False):
                    rate = keras.optimizers.schedules.ExponentialDecay(rate, 2, 0.5)
                optimizer = getattr(keras.optimizers, name)(learning_rate=rate, **options)
                variables = [tf.Variable(numbers(3, 2)), tf.Variable(numbers(4, at=1)), tf.Variable(np.float32(0.7))]
                for i in range(4):
                    gradients = [numbers(3, 2, at=i + 2), numbers(4, at=i) * (0.1 if i % 2 else 3), np.float32(0.1 * i)]
                    optimizer.apply_gradients(zip(map(tf.constant, gradients), variables))
                if options.get("use_ema"):
                    optimizer.finalize_variable_values(variables)
                yield label, np.concatenate([plain(v).ravel() for v in variables])


def callbacks():
    @case("callback EarlyStopping")
    def stopped(keras, tf):
        class Model:
            stop_training = False

        values = [3.0, 2.9, 2.5, 2.6, 2.45, 2.7, 2.2, 2.3, 2.4, 1.0]
        for patience, delta, baseline, start in itertools.product((0, 1, 2), (0, 0.2), (None, 2.55), (0, 3)):
            made = keras.callbacks.EarlyStopping("val_loss", min_delta=delta, patience=patience, mode="min", baseline=baseline,
                                                 start_from_epoch=start)
            model = Model()
            made.set_model(model)
            made.on_train_begin()
            epochs = 0
            while epochs < len(values) and not model.stop_training:
                made.on_epoch_end(epochs, {"val_loss": values[epochs]})
                epochs += 1
            yield f"{patience} {delta} {baseline} {start}", np.array([epochs, made.best_epoch])


losses()
metrics()
optimizers()
callbacks()
