"""Connectionist temporal classification: its loss, and sequences decoded from logits."""

import math

from . import _tonnage as _t
from .errors import DataDecideError
from .sparse import SparseTensor

# The logarithm of a probability that is as good as 0: with infinities gradients would be NaN.
_NEVER = -1e30


def ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True, unique=None, blank_index=None, name=None):
    """The negative logarithm of the probability that logits spell labels, for each row of a batch.

    One pass over the steps, in the memory of one of them; its gradient is that of the loop.
    """
    logits = _t.to_tensor(logits, None, None)
    logits = logits if logits_time_major else _t.transpose(logits, [1, 0, 2])
    labels = _t.cast(_t.to_tensor(labels, None, None), "int32")
    label_length, logit_length = (_t.cast(_t.to_tensor(n, None, None), "int32") for n in (label_length, logit_length))
    count = logits.lengths[2]
    blank = int(blank_index or 0) % count
    probabilities = _t.log_softmax(logits, -1)
    # Blanks between all labels, before and after.
    blanks = _t.fill(labels.shape, blank, "int32")
    pairs = _t.reshape(_t.stack([blanks, labels], 2), [labels.lengths[0], 2 * labels.lengths[1]])
    symbols = _t.concat([pairs, blanks[:, :1]], 1)
    places = symbols.lengths[1]
    numbers = _t.count(0, 1, [places], "int32")
    never = _t.fill([labels.lengths[0], places], _NEVER, logits.dtype)
    # Over the blank between them one may go from a label to the next, if that is another.
    before = _t.concat([symbols[:, :2] * 0 - 1, symbols[:, :-2]], 1)
    both = _t.Op("logical_and", "logical_and", ["x", "y"])
    skips = both(_t.expand_dims(numbers % 2 == 1, 0), symbols != before)

    def emitted(step):
        return _t.take_along_axis(step, symbols, 1)

    def moved(state, by):
        return _t.concat([never[:, :by], state[:, :-by]], 1)

    def step(state, row):
        probability, at = row
        made = _added(_added(state, moved(state, 1)), _t.where_(skips, moved(state, 2), never)) + emitted(probability)
        return _t.where_(_t.expand_dims(at < logit_length, 1), made, state), []

    start = _t.where_(_t.expand_dims(numbers < 2, 0), emitted(probabilities[0]), never)
    steps = _t.count(1, 1, [logits.lengths[0] - 1], "int32")
    last = _t.scan(step, start, (probabilities[1:], steps), False, False)[0]
    end = _t.expand_dims(2 * label_length, 1)
    whole = _t.take_along_axis(last, end, 1)
    label = _t.take_along_axis(last, _t.where_(end > 0, end - 1, end), 1)
    label = _t.where_(end > 0, label, _t.fill([1, 1], _NEVER, logits.dtype))
    return -_t.squeeze(_added(whole, label), 1)


def _added(a, b):
    """The logarithm of the sum of two numbers, by their logarithms."""
    exp, log1p = _t.Op("exp", "exp", ["x"]), _t.Op("log1p", "log1p", ["x"])
    larger = _t.where_(a > b, a, b)
    return larger + log1p(exp(-abs(a - b)))


def _values(inputs, sequence_length):
    inputs, lengths = _t.to_tensor(inputs, None, None), _t.to_tensor(sequence_length, None, None)
    if inputs.is_symbolic or lengths.is_symbolic:
        raise DataDecideError("how long decoded sequences are")
    return inputs.numpy(), lengths.numpy(), inputs.dtype


def _sparse(sequences):
    """Sequences as the rows of a sparse tensor."""
    indices = [[row, at] for row, sequence in enumerate(sequences) for at in range(len(sequence))]
    values = [value for sequence in sequences for value in sequence]
    longest = max(map(len, sequences), default=0)
    if not values:
        return SparseTensor(_t.fill([0, 2], 0, "int64"), _t.fill([0], 0, "int64"), [len(sequences), longest])
    return SparseTensor(_t.to_tensor(indices, "int64", None), _t.to_tensor(values, "int64", None), [len(sequences), longest])


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True, blank_index=None):
    """The most likely symbol of each step, without blanks; and the negative sum of their logits. Steps come first."""
    logits, lengths, dtype = _values(inputs, sequence_length)
    blank = (-1 if blank_index is None else int(blank_index)) % logits.shape[2]
    sequences, scores = [], []
    for row, length in enumerate(lengths):
        best = logits[:length, row].argmax(-1)
        scores.append([float(-logits[:length, row].max(-1).sum())])
        kept = [int(s) for i, s in enumerate(best) if s != blank and not (merge_repeated and i and best[i - 1] == s)]
        sequences.append(kept)
    return [_sparse(sequences)], _t.to_tensor(scores, dtype, None)


def ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1):
    """The most likely sequences, of those that a search keeps, and the logarithms of their probabilities. Steps come first, and the last
    symbol is the blank."""
    logits, lengths, dtype = _values(inputs, sequence_length)
    found = [_beams(logits[:length, row].astype("float64"), beam_width)[:top_paths] for row, length in enumerate(lengths)]
    if any(len(beams) < top_paths for beams in found):
        raise ValueError(f"ctc_beam_search_decoder: fewer than {top_paths} paths were found; take fewer, or a wider beam")
    decoded = [_sparse([list(beams[path][0]) for beams in found]) for path in range(top_paths)]
    return decoded, _t.to_tensor([[score for _, score in beams] for beams in found], dtype, None)


def _log_add(a, b):
    larger, smaller = max(a, b), min(a, b)
    return larger if larger == -math.inf else larger + math.log1p(math.exp(smaller - larger))


def _beams(logits, width):
    """Sequences by how likely they are. Of each: the logarithm of its probability as it ends with a blank, and with a symbol."""
    beams = {(): (0.0, -math.inf)}
    for step in logits:
        shifted = step - step.max()
        log = (shifted - math.log(sum(math.exp(x) for x in shifted))).tolist()
        blank, following = log.pop(), {}

        def put(sequence, with_blank, with_symbol):
            b, s = following.get(sequence, (-math.inf, -math.inf))
            following[sequence] = _log_add(b, with_blank), _log_add(s, with_symbol)

        for sequence, (b, s) in beams.items():
            whole = _log_add(b, s)
            put(sequence, whole + blank, s + log[sequence[-1]] if sequence else -math.inf)
            for symbol, probability in enumerate(log):
                # The same symbol again is another one only after a blank.
                put((*sequence, symbol), -math.inf, (b if sequence and sequence[-1] == symbol else whole) + probability)
        best = sorted(following.items(), key=lambda item: -_log_add(*item[1]))[:width]
        beams = dict(best)
    return sorted(((sequence, _log_add(*both)) for sequence, both in beams.items()), key=lambda item: -item[1])
