"""Optimizers, schedules, losses and metrics against plain NumPy."""

import math

import numpy as np
import pytest

import tonnage as tf

K = tf.keras
O, S, M = K.optimizers, K.optimizers.schedules, K.metrics
RNG = np.random.default_rng(0)
START = RNG.normal(size=(4, 3))
GRADIENTS = [RNG.normal(size=(4, 3)) for _ in range(6)]


def sgd(w, g, t, s):
    return w - 0.1 * g


def momentum(w, g, t, s):
    s["v"] = 0.9 * s.get("v", 0.0) - 0.1 * g
    return w + s["v"]


def nesterov(w, g, t, s):
    s["v"] = 0.9 * s.get("v", 0.0) - 0.1 * g
    return w + 0.9 * s["v"] - 0.1 * g


def _moments(g, s, b1=0.9, b2=0.999):
    s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0.0) + (1 - b2) * g * g
    return s["m"], s["v"]


def adam(w, g, t, s):
    m, v = _moments(g, s)
    return w - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-7)


def amsgrad(w, g, t, s):
    m, v = _moments(g, s)
    s["most"] = np.maximum(s.get("most", 0.0), v)
    return w - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(s["most"] / (1 - 0.999**t)) + 1e-7)


def adamw(w, g, t, s):
    return adam(w * (1 - 0.01 * 0.1), g, t, s)


def adamax(w, g, t, s):
    s["m"] = 0.9 * s.get("m", 0.0) + 0.1 * g
    s["u"] = np.maximum(0.999 * s.get("u", 0.0), abs(g))
    return w - 0.01 / (1 - 0.9**t) * s["m"] / (s["u"] + 1e-7)


def nadam(w, g, t, s):
    m, v = _moments(g, s)
    now, after = (0.9 * (1 - 0.5 * 0.96**n) for n in (t, t + 1))
    s["u"] = s.get("u", 1.0) * now
    ahead = after * m / (1 - s["u"] * after) + (1 - now) * g / (1 - s["u"])
    return w - 0.01 * ahead / (np.sqrt(v / (1 - 0.999**t)) + 1e-7)


def rmsprop(w, g, t, s):
    s["v"] = 0.9 * s.get("v", 0.0) + 0.1 * g * g
    return w - 0.01 * g / np.sqrt(s["v"] + 1e-7)


def adagrad(w, g, t, s):
    s["a"] = s.get("a", 0.1) + g * g
    return w - 0.1 * g / np.sqrt(s["a"] + 1e-7)


def adadelta(w, g, t, s):
    s["a"] = 0.95 * s.get("a", 0.0) + 0.05 * g * g
    step = g * np.sqrt(s.get("d", 0.0) + 1e-7) / np.sqrt(s["a"] + 1e-7)
    s["d"] = 0.95 * s.get("d", 0.0) + 0.05 * step * step
    return w - step


def ftrl(w, g, t, s):
    old = s.get("n", 0.1)
    s["n"] = old + g * g
    s["z"] = s.get("z", 0.0) + g - (np.sqrt(s["n"]) - np.sqrt(old)) / 0.1 * w
    return (np.clip(s["z"], -0.05, 0.05) - s["z"]) / ((np.sqrt(s["n"]) + 0.2) / 0.1 + 2 * 0.03)


def lion(w, g, t, s):
    step = np.sign(0.9 * s.get("m", 0.0) + 0.1 * g)
    s["m"] = 0.99 * s.get("m", 0.0) + 0.01 * g
    return w - 0.01 * step


def clipped(w, g, t, s):
    return w - 0.1 * g * min(1.0, 0.5 / np.linalg.norm(g))


RULES = [
    (lambda: O.SGD(0.1), sgd), (lambda: O.SGD(0.1, momentum=0.9), momentum), (lambda: O.SGD(0.1, 0.9, True), nesterov),
    (lambda: O.Adam(0.01), adam), (lambda: O.Adam(0.01, amsgrad=True), amsgrad), (lambda: O.AdamW(0.01, 0.1), adamw),
    (lambda: O.Adamax(0.01), adamax), (lambda: O.Nadam(0.01), nadam), (lambda: O.RMSprop(0.01), rmsprop),
    (lambda: O.Adagrad(0.1), adagrad), (lambda: O.Adadelta(1.0), adadelta), (lambda: O.Lion(0.01), lion),
    (lambda: O.Ftrl(0.1, l1_regularization_strength=0.05, l2_regularization_strength=0.03, beta=0.2), ftrl),
    (lambda: O.SGD(0.1, clipnorm=0.5), clipped), (lambda: O.SGD(0.1, global_clipnorm=0.5), clipped),
]


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("made, rule", RULES, ids=lambda v: getattr(v, "__name__", ""))
def test_rules_agree_with_numpy(made, rule, planned):
    w, optimizer = tf.Variable(START.astype("f4")), made()

    def step(g):
        optimizer.apply_gradients([(g, w)])

    run = tf.function(step) if planned else step
    expected, state = START, {}
    for t, g in enumerate(GRADIENTS, 1):
        run(tf.constant(g.astype("f4")))
        expected = rule(expected, g, t, state)
    np.testing.assert_allclose(w.numpy(), expected, rtol=2e-4, atol=2e-5)
    assert int(optimizer.iterations) == len(GRADIENTS)
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()


SCHEDULES = [
    (S.ExponentialDecay(0.1, 3, 0.5), lambda t: 0.1 * 0.5 ** (t / 3)),
    (S.ExponentialDecay(0.1, 3, 0.5, staircase=True), lambda t: 0.1 * 0.5 ** (t // 3)),
    (S.InverseTimeDecay(0.1, 3, 0.5), lambda t: 0.1 / (1 + 0.5 * t / 3)),
    (S.PiecewiseConstantDecay([3, 6], [0.1, 0.05, 0.01]), lambda t: 0.1 if t <= 3 else 0.05 if t <= 6 else 0.01),
    (S.PolynomialDecay(0.1, 5, 0.01, power=2), lambda t: 0.09 * (1 - min(t, 5) / 5) ** 2 + 0.01),
    (S.CosineDecay(0.1, 5, alpha=0.1), lambda t: 0.1 * (0.9 * 0.5 * (1 + math.cos(math.pi * min(t, 5) / 5)) + 0.1)),
    (S.CosineDecayRestarts(0.1, 4, t_mul=1.0), lambda t: 0.05 * (1 + math.cos(math.pi * (t % 4) / 4))),
]


@pytest.mark.parametrize("schedule, expected", SCHEDULES, ids=lambda v: getattr(v, "name", ""))
def test_schedules_give_the_rate_of_each_step(schedule, expected):
    w, optimizer = tf.Variable(0.0), O.SGD(schedule)
    step = tf.function(lambda: optimizer.apply_gradients([(tf.constant(-1.0), w)]))
    for t in range(9):
        before = float(w)
        step()
        np.testing.assert_allclose(float(w) - before, expected(t), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(float(schedule(t)), expected(t), rtol=1e-4, atol=1e-7)
    with pytest.raises(TypeError, match="not settable"):
        optimizer.learning_rate = 0.1
    assert type(schedule).from_config(schedule.get_config()).get_config() == schedule.get_config()


def test_rules_of_ones_own():
    class Signs(O.Optimizer):
        def build(self, variables):
            super().build(variables)
            self.counts = [self.add_variable_from_reference(v, "count") for v in variables]

        def update_step(self, gradient, variable, learning_rate):
            self.counts[self._get_variable_index(variable)].assign_add(tf.ones_like(gradient))
            variable.assign_sub(learning_rate * tf.sign(gradient))

    a, b = tf.Variable([1.0, 1.0]), tf.Variable(2.0)
    optimizer = Signs(0.25, clipvalue=1.0)
    step = tf.function(lambda: optimizer.apply_gradients([(tf.constant([3.0, -0.1]), a), (tf.constant(1.0), b)]))
    step()
    step()
    assert a.numpy().tolist() == [0.5, 1.5] and float(b) == 1.5 and optimizer.counts[0].numpy().tolist() == [2.0, 2.0]


def test_constraints_averages_and_what_is_kept_from_decay():
    w = tf.Variable([[3.0, -4.0]], constraint=K.constraints.NonNeg())
    O.SGD(1.0).apply_gradients([(tf.constant([[1.0, 1.0]]), w)])
    assert w.numpy().tolist() == [[2.0, 0.0]]
    np.testing.assert_allclose(K.constraints.MaxNorm(1.0)(tf.constant([[3.0], [4.0]])).numpy(), [[0.6], [0.8]], rtol=1e-5)
    v, bias = tf.Variable(1.0, name="kernel"), tf.Variable(1.0, name="bias")
    decays = O.SGD(0.1, weight_decay=0.5)
    decays.exclude_from_weight_decay(var_names=["bias"])
    decays.apply_gradients([(tf.constant(0.0), v), (tf.constant(0.0), bias)])
    assert math.isclose(float(v), 0.95, rel_tol=1e-6) and float(bias) == 1.0
    u, mean = tf.Variable(1.0), O.SGD(1.0, use_ema=True, ema_momentum=0.5)
    for _ in range(2):
        mean.apply_gradients([(tf.constant(1.0), u)])
    mean.finalize_variable_values([u])
    assert float(u) == -0.5  # of 0, the first step's value, and -1


def test_a_step_that_is_not_finite_is_left_out_under_a_loss_scale():
    w, optimizer = tf.Variable(1.0), O.LossScaleOptimizer(O.SGD(0.5), initial_scale=8.0)
    step = tf.function(lambda g: optimizer.apply_gradients([(g * optimizer.dynamic_scale, w)]))
    step(tf.constant(1.0))
    assert float(w) == 0.5
    step(tf.constant(np.inf))
    assert float(w) == 0.5 and float(optimizer.dynamic_scale) == 4.0 and int(optimizer.iterations) == 1


def test_bad_gradients_and_numbers_are_said():
    w = tf.Variable([1.0, 2.0], name="w")
    with pytest.raises(ValueError, match="No gradients"):
        O.SGD().apply_gradients([(None, w)])
    with pytest.raises(ValueError, match=r"w.*\(3,\).*\(2,\)"):
        O.SGD().apply_gradients([(tf.zeros([3]), w)])
    with pytest.raises(ValueError, match="Only one"):
        O.SGD(clipnorm=1.0, clipvalue=1.0)
    with pytest.raises(ValueError, match="not recognized"):
        O.Adam(learning_rat=0.1)
    with pytest.warns(UserWarning, match="other"):
        O.SGD().apply_gradients([(tf.zeros([2]), w), (None, tf.Variable(1.0, name="other"))])


def entropy(p, q):
    return -(p * np.log(q)).sum(-1)


P = RNG.uniform(0.05, 0.95, size=(6, 4))
Q = RNG.uniform(0.05, 0.95, size=(6, 4))
YES = (RNG.random((6, 4)) > 0.5).astype("f8")
CLASSES = np.array([0, 1, 2, 3, 1, 2])
HOT = np.eye(4)[CLASSES]
SOFT = np.exp(Q) / np.exp(Q).sum(-1, keepdims=True)
LOSSES = [
    (K.losses.MeanSquaredError(), P, Q, ((P - Q) ** 2).mean(-1)), (K.losses.MeanAbsoluteError(), P, Q, abs(P - Q).mean(-1)),
    (K.losses.MeanAbsolutePercentageError(), P, Q, 100 * abs((P - Q) / P).mean(-1)),
    (K.losses.MeanSquaredLogarithmicError(), P, Q, ((np.log1p(P) - np.log1p(Q)) ** 2).mean(-1)),
    (K.losses.Huber(0.3), P, Q, np.where(abs(P - Q) < 0.3, (P - Q) ** 2 / 2, 0.3 * abs(P - Q) - 0.045).mean(-1)),
    (K.losses.LogCosh(), P, Q, np.log(np.cosh(Q - P)).mean(-1)), (K.losses.Poisson(), P, Q, (Q - P * np.log(Q)).mean(-1)),
    (K.losses.KLDivergence(), P, Q, (P * np.log(P / Q)).sum(-1)),
    (K.losses.Hinge(), YES, Q, np.maximum(1 - (2 * YES - 1) * Q, 0).mean(-1)),
    (K.losses.BinaryCrossentropy(), YES, Q, -(YES * np.log(Q) + (1 - YES) * np.log(1 - Q)).mean(-1)),
    (K.losses.CategoricalCrossentropy(), HOT, Q, entropy(HOT, Q / Q.sum(-1, keepdims=True))),
    (K.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2), HOT, Q, entropy(HOT * 0.8 + 0.05, SOFT)),
    (K.losses.SparseCategoricalCrossentropy(from_logits=True), CLASSES, Q, entropy(HOT, SOFT)),
    (K.losses.CosineSimilarity(), P, Q,
     -(P * Q).sum(-1) / np.linalg.norm(P, axis=-1) / np.linalg.norm(Q, axis=-1)),
]


@pytest.mark.parametrize("loss, y, p, rows", LOSSES, ids=lambda v: getattr(v, "name", ""))
def test_losses_agree_with_numpy(loss, y, p, rows):
    y = y if y.dtype.kind == "i" else y.astype("f4")
    p, weight = p.astype("f4"), np.linspace(0, 1, 6)
    np.testing.assert_allclose(float(loss(y, p)), rows.mean(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(float(loss(y, p, sample_weight=weight)), (rows * weight).mean(), rtol=1e-4, atol=1e-5)
    again = type(loss).from_config({**loss.get_config(), "reduction": "sum"})
    np.testing.assert_allclose(float(again(y, p)), rows.sum(), rtol=1e-4, atol=1e-5)


def test_a_class_that_is_left_out_does_not_count():
    loss = K.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=1)
    kept = CLASSES != 1
    np.testing.assert_allclose(float(loss(CLASSES, Q.astype("f4"))), entropy(HOT, SOFT)[kept].mean(), rtol=1e-4)
    with pytest.raises(ValueError, match=r"\(6, 3\).*\(6, 4\)"):
        K.losses.CategoricalCrossentropy()(HOT[:, :3], Q)


def area(y, p):
    yes, no = p[y > 0], p[y == 0]
    return np.mean([(a > b) + 0.5 * (a == b) for a in yes for b in no])


def test_metrics_agree_with_numpy_over_several_batches():
    y, p = RNG.integers(0, 2, 300).astype("f4"), RNG.random(300).astype("f4")
    over = p > 0.5
    expected = {
        M.BinaryAccuracy: ((p > 0.5) == y).mean(), M.Precision: y[over].mean(), M.Recall: over[y > 0].mean(),
        M.TruePositives: (over & (y > 0)).sum(), M.FalseNegatives: (~over & (y > 0)).sum(), M.MeanSquaredError: ((y - p) ** 2).mean(),
        M.RootMeanSquaredError: np.sqrt(((y - p) ** 2).mean()), M.MeanAbsoluteError: abs(y - p).mean(), M.AUC: area(y, p),
        M.R2Score: 1 - ((y - p) ** 2).sum() / ((y - y.mean()) ** 2).sum(),
    }
    for kind, value in expected.items():
        metric = kind()
        add = tf.function(lambda a, b, m=metric: m.update_state(a, b))
        for at in range(0, 300, 100):
            add(y[at:at + 100, None], p[at:at + 100, None])
        np.testing.assert_allclose(float(metric.result()), value, rtol=5e-3 if kind is M.AUC else 1e-4, err_msg=kind.__name__)
        metric.reset_state()
        assert all((v.numpy() == 0).all() for v in metric.variables)


def test_metrics_of_classes_and_means():
    q = Q.astype("f4")
    right = q.argmax(-1) == CLASSES
    assert math.isclose(float(M.SparseCategoricalAccuracy()(CLASSES, q)), right.mean(), rel_tol=1e-6)
    assert math.isclose(float(M.CategoricalAccuracy()(HOT, q)), right.mean(), rel_tol=1e-6)
    ranks = (-q).argsort(-1)[:, :2]
    assert math.isclose(float(M.SparseTopKCategoricalAccuracy(2)(CLASSES, q)), (ranks == CLASSES[:, None]).any(-1).mean(), rel_tol=1e-6)
    mean = M.Mean()
    mean.update_state([1.0, 3.0])
    mean.update_state(7.0, sample_weight=2.0)
    assert float(mean.result()) == 4.5
    guess = q.argmax(-1)
    ious = [(both := ((guess == c) & (CLASSES == c)).sum()) / (((guess == c) | (CLASSES == c)).sum() or 1) for c in range(4)]
    assert both >= 0 and math.isclose(float(M.MeanIoU(4)(CLASSES, guess)), np.mean(ious), rel_tol=1e-5)
    assert M.get("mae").name == "mean_absolute_error" and isinstance(M.get("AUC"), M.AUC)


def test_initializers_have_the_variance_that_they_say():
    for name, variance in (("glorot_uniform", 2 / 500), ("he_normal", 2 / 200), ("lecun_normal", 1 / 200)):
        value = K.initializers.get(name)((200, 300)).numpy()
        np.testing.assert_allclose(value.var(), variance, rtol=0.05)
    q = K.initializers.Orthogonal()((20, 30)).numpy()
    np.testing.assert_allclose(q @ q.T, np.eye(20), atol=1e-5)
    assert K.initializers.Constant(3.0)((2,)).numpy().tolist() == [3.0, 3.0]
    assert (K.initializers.RandomNormal(seed=1)((5,)).numpy() == K.initializers.RandomNormal(seed=1)((5,)).numpy()).all()
