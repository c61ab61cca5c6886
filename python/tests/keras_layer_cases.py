"""What is asked of activations and layers: see ``keras_cases``. A layer's weights are set by the same formula, masks are those that a
layer before it would have left, and values are its outputs, their masks, and the gradient of a sum of them."""

import itertools

import numpy as np

from keras_cases import case, numbers, plain, wholes

STEPS = numbers(3, 4, 2)
RAGGED = np.array([[1, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]], bool)
PADDED = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]], bool)
MASKS = {"none": None, "ragged": RAGGED, "padded": PADDED}
KINKS = np.array([-100, -3, -1, -0.5, -0.1, 0, 0.1, 0.5, 1, 1.5, 6, 7, 100], "f4")


def asked(keras, tf, layer, inputs, mask=None, gradient=True, **call):
    """Outputs of a layer with weights by formula, their masks, the gradient, and weights after that."""
    several = isinstance(inputs, list)
    given = [tf.constant(x) for x in inputs] if several else tf.constant(inputs)

    def marked():
        for x, m in zip(given if several else [given], mask if several and mask else [mask]):
            if m is not None:
                x._keras_mask = tf.constant(m)
        return given

    layer(marked(), **call)
    layer.set_weights([np.abs(numbers(*w.shape, at=i)) * 0.4 + 0.1 for i, w in enumerate(layer.get_weights())])
    floats = [x for x in (given if several else [given]) if x.dtype in (tf.float32, tf.float64)]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        made = layer(marked(), **call)
        made = list(made) if isinstance(made, (tuple, list)) else [made]
        total = 0.0
        for x in made:
            if x.dtype == tf.float32:
                total = total + tf.reduce_sum(x * tf.constant(np.arange(np.prod(x.shape), dtype="f4").reshape(x.shape) % 7 - 3))
    found = [("output", plain(x)) for x in made]
    found += [("mask", plain(x._keras_mask)) for x in made if getattr(x, "_keras_mask", None) is not None]
    if gradient and floats and not isinstance(total, float):
        found += [("gradient", plain(x)) for x in tape.gradient(total, floats)]
    return found + [("weights", plain(w)) for w in layer.get_weights()]


def labelled(label, pairs):
    return ((f"{label}: {part}", value) for part, value in pairs)


def with_gradient(tf, function, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        made = function(x)
    return [("value", plain(made)), ("gradient", plain(tape.gradient(made, x)))]


def activations():
    @case("activation relu")
    def relu(keras, tf):
        for threshold, slope, most in itertools.product((0.0, 0.5, 1.0, -1.0), (0.0, 0.1), (None, 1.0, 6.0)):
            made = with_gradient(tf, lambda x: keras.activations.relu(x, slope, most, threshold), KINKS)
            yield from labelled(f"{threshold} {slope} {most}", made)
            if threshold >= 0:
                yield f"layer {threshold} {slope} {most}", keras.layers.ReLU(most, slope, threshold)(KINKS)
        yield "integers", keras.activations.relu(np.array([-1, 0, 2], "i4"))

    @case("activations at their kinks")
    def kinks(keras, tf):
        for name in ("elu", "gelu", "hard_sigmoid", "hard_silu", "leaky_relu", "log_sigmoid", "mish", "relu6", "selu", "sigmoid", "silu",
                     "softplus", "softsign", "tanh"):
            yield from labelled(name, with_gradient(tf, getattr(keras.activations, name), KINKS))

    @case("constraints and regularizers")
    def penalties(keras, tf):
        w = tf.constant(numbers(4, 3))
        for made in (keras.regularizers.L1L2(), keras.regularizers.L1L2(0.1, 0.2), keras.regularizers.OrthogonalRegularizer()):
            yield type(made).__name__, made(w)
        for made in (keras.constraints.MaxNorm(1.0), keras.constraints.UnitNorm(1), keras.constraints.MinMaxNorm(0.5, 1.0, 0.5)):
            yield type(made).__name__, made(w)


def recurrent():
    for name in ("SimpleRNN", "GRU", "LSTM"):
        @case(f"layer {name}")
        def along(keras, tf, name=name):
            for sequences, backwards, zeros, (label, mask) in itertools.product((False, True), (False, True), (False, True), MASKS.items()):
                layer = getattr(keras.layers, name)(2, return_sequences=sequences, return_state=True, go_backwards=backwards,
                                                    zero_output_for_mask=zeros, recurrent_initializer="zeros")
                made = asked(keras, tf, layer, STEPS, mask, gradient=False)
                yield from labelled(f"{sequences} {backwards} {zeros} {label}", made[:-3])

        @case(f"layer Bidirectional {name}")
        def both(keras, tf, name=name):
            for mode, sequences, (label, mask) in itertools.product(("concat", "sum", "mul", "ave", None), (False, True), MASKS.items()):
                inner = getattr(keras.layers, name)(2, return_sequences=sequences, recurrent_initializer="zeros")
                made = asked(keras, tf, keras.layers.Bidirectional(inner, merge_mode=mode), STEPS, mask)
                yield from labelled(f"{mode} {sequences} {label}", made[:-6])


def normalizing():
    for axis, training in itertools.product((-1, 1, 2), (False, True)):
        @case(f"layer BatchNormalization axis={axis} training={training}")
        def batches(keras, tf, axis=axis, training=training):
            for (label, mask), options in itertools.product(MASKS.items(), ({}, {"momentum": 0.5, "epsilon": 0.1, "scale": False})):
                layer = keras.layers.BatchNormalization(axis=axis, **options)
                yield from labelled(f"{label} {options}", asked(keras, tf, layer, STEPS, mask, training=training))
            layer = keras.layers.BatchNormalization(axis=axis)
            mask = numbers(2, 4, 3, at=1) > 0
            yield from labelled("images", asked(keras, tf, layer, numbers(2, 4, 3, 2), mask, training=training))

    @case("layer UnitNormalization")
    def unit(keras, tf):
        for axis, size in itertools.product((-1, 1, (1, 2)), (1.0, 1e-4, 1e-8)):
            yield f"{axis} {size}", keras.layers.UnitNormalization(axis=axis)(STEPS * np.float32(size))

    @case("layer Softmax")
    def softmax(keras, tf):
        masks = {"none": None, "some": numbers(3, 4, 2, at=2) > 0, "all": np.zeros((3, 4, 2), bool),
                 "rows": np.array([0, 1, 1], bool)[:, None, None] & np.ones((3, 4, 2), bool)}
        for axis, size, (label, mask) in itertools.product((-1, 1, (1, 2)), (1.0, 1e5), masks.items()):
            made = asked(keras, tf, keras.layers.Softmax(axis=axis), STEPS * np.float32(size), mask, gradient=size == 1)
            yield from labelled(f"{axis} {size} {label}", made)

    @case("layer Normalization")
    def adapted(keras, tf):
        data = numbers(6, 3)
        forms = {"array": data, "tensor": tf.constant(data), "integers": wholes(6, 3), "batches": [data[:2], data[2:]],
                 "equal batches": [data[:3], data[3:]], "tensors": (tf.constant(data[:4]), tf.constant(data[4:])),
                 "dataset": tf.data.Dataset.from_tensor_slices(data).batch(4), "generator": (part for part in (data[:1], data[1:]))}
        for axis, invert, (label, given) in itertools.product((-1, None), (False, True), forms.items()):
            if label == "generator" and (axis, invert) != (-1, False):
                continue
            layer = keras.layers.Normalization(axis=axis, invert=invert)
            layer.adapt(given)
            yield f"{label} {axis} {invert}", layer(data)
        layer = keras.layers.Normalization(axis=None)
        layer.adapt(data[:, 0])
        yield "vector", layer(data[:2, 0])


def moving():
    @case("layer ZeroPadding1D")
    def padding(keras, tf):
        for padding, form in itertools.product((1, (1, 2), (0, 3)), (None, "channels_last", "channels_first")):
            made = asked(keras, tf, keras.layers.ZeroPadding1D(padding, data_format=form), STEPS)
            yield from labelled(f"{padding} {form}", made)

    for name in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"):
        @case(f"layer {name}")
        def merged(keras, tf, name=name):
            pairs = {"floats": [STEPS, numbers(3, 4, 2, at=1)], "broadcast": [STEPS, numbers(3, 1, 2, at=1)],
                     "ranks": [STEPS, numbers(3, 2, at=1)], "mixed": [wholes(2, 3), numbers(2, 3)]}
            pairs.update({d: [wholes(2, 3, dtype=d), wholes(2, 3, at=1, dtype=d)] for d in ("i4", "i8", "u1")})
            for label, inputs in pairs.items():
                if name == "Concatenate" and label in ("broadcast", "ranks") or name == "Average" and label in ("i4", "i8", "u1"):
                    continue
                layer = getattr(keras.layers, name)()
                yield f"{label} arrays", layer(inputs)
                yield from labelled(label, asked(keras, tf, layer, inputs))
            for masks in ([RAGGED, PADDED], *(() if name == "Concatenate" else ([RAGGED, None], [None, PADDED]))):
                made = asked(keras, tf, getattr(keras.layers, name)(), pairs["floats"], masks)
                yield from labelled(f"masks {[m is None for m in masks]}", made)

    @case("layers that keep integers")
    def kept(keras, tf):
        rows, steps, layers = wholes(2, 3), wholes(2, 3, 2), keras.layers
        for layer in (layers.Flatten(), layers.Reshape((3, 1)), layers.Activation("relu"), layers.ReLU(), layers.RepeatVector(2),
                      layers.Dropout(0.5), layers.GaussianNoise(1.0)):
            yield type(layer).__name__, layer(rows)
        for layer in (layers.ZeroPadding1D(), layers.Cropping1D(), layers.UpSampling1D(), layers.Permute((2, 1)),
                      layers.GlobalMaxPooling1D(), layers.GlobalAveragePooling1D(), layers.Masking()):
            yield type(layer).__name__, layer(steps)
        for layer in (layers.Dense(2), layers.EinsumDense("ab,bc->ac", 2), layers.BatchNormalization(), layers.LeakyReLU()):
            yield from labelled(type(layer).__name__, asked(keras, tf, layer, rows))

    @case("layers of preprocessing")
    def prepared(keras, tf):
        x = np.array([[-1, 0, 0.5], [1, 2.5, 10]])
        for given, dtype in itertools.product(("f4", "f8", "i4", "i8"), (None, "int32", "int64", "float32")):
            layer = keras.layers.Discretization([0.0, 0.5, 2.0], **({} if dtype is None else {"dtype": dtype}))
            yield f"Discretization {given} {dtype}", layer(x.astype(given))
        for mode, given in itertools.product(("multi_hot", "one_hot", "count"), ([0, 2, 1], [[0, 1], [2, 2]], [[1], [2]])):
            yield f"CategoryEncoding {mode}", keras.layers.CategoryEncoding(4, output_mode=mode)(np.array(given))
        for how, given in itertools.product(("bilinear", "nearest"), ("f4", "u1")):
            images = wholes(1, 4, 4, 2, dtype=given, most=90)
            yield f"Resizing {how} {given}", keras.layers.Resizing(3, 5, interpolation=how)(images)
        for given in ("i4", "u1", "f4"):
            yield f"Rescaling {given}", keras.layers.Rescaling(1 / 255, offset=-1.0)(wholes(2, 3, dtype=given))


def attending():
    for name, scaled in itertools.product(("Attention", "AdditiveAttention"), (False, True)):
        @case(f"layer {name} use_scale={scaled}")
        def attended(keras, tf, name=name, scaled=scaled):
            query = np.array([[1, 1, 0], [1, 0, 0]], bool)
            values = {"none": None, "some": np.array([[1, 1, 0, 1, 0], [1, 0, 0, 1, 1]], bool),
                      "a whole row": np.array([[0, 0, 0, 0, 0], [1, 0, 0, 1, 1]], bool)}
            for causal, scores, first, (label, second) in itertools.product((False, True), (False, True), (None, query), values.items()):
                layer = getattr(keras.layers, name)(use_scale=scaled)
                mask = None if first is second is None else [first, second]
                made = asked(keras, tf, layer, [numbers(2, 3, 4), numbers(2, 5, 4, at=1)], mask, gradient=False,
                             use_causal_mask=causal, return_attention_scores=scores)
                yield from labelled(f"{causal} {scores} {first is None} {label}", made)

    @case("layer MultiHeadAttention")
    def heads(keras, tf):
        masks = {"none": {}, "value": {"value_mask": np.array([[1, 1, 0, 1, 0], [0, 0, 0, 1, 1]], bool)},
                 "nothing": {"attention_mask": np.zeros((2, 3, 5), bool)}, "some": {"attention_mask": numbers(2, 3, 5, at=3) > -1}}
        for causal, scores, length, (label, mask) in itertools.product((False, True), (False, True), (3, 5), masks.items()):
            if label in ("nothing", "some") and length != 3:
                continue
            layer = keras.layers.MultiHeadAttention(2, 2)
            query, value = tf.constant(numbers(2, length, 4)), tf.constant(numbers(2, 5, 4, at=1))
            layer(query, value)
            layer.set_weights([numbers(*w.shape, at=i) for i, w in enumerate(layer.get_weights())])
            made = layer(query, value, use_causal_mask=causal, return_attention_scores=scores,
                         **{k: tf.constant(v) for k, v in mask.items()})
            yield from ((f"{causal} {scores} {length} {label}", v) for v in (made if scores else [made]))


activations()
recurrent()
normalizing()
moving()
attending()
