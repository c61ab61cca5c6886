// Pooling, an element of the result a thread: crates/cuda/src/emit/pool.rs has the words. Images end in their channels.
//
//   COUNTS    whether padding counts as elements of a mean
//   AXES      the word from which on the windows are, along depth, height and width: taps, from one window to the next, padding before the
//             image, from one tap to the next
//
// Windows and taps are gone through in the order in which the CPU goes through them, so sums have its bits.

// As many registers as it takes: to hold more blocks, some would be spilled.
#undef TN_BLOCKS
#define TN_BLOCKS 1

// Where a thread's element is: the image, along depth, height and width, the channel.
struct Element {
  idx image, at[3], channel;
};

TN_FN Element place_of(const P& p, idx t) {
  Element of;
  const idx channels = (idx)p.w[1], width = (idx)p.w[4], height = (idx)p.w[3], depth = (idx)p.w[2];
  of.channel = t % channels;
  t /= channels;
  of.at[2] = t % width;
  t /= width;
  of.at[1] = t % height;
  t /= height;
  of.at[0] = t % depth;
  of.image = t / depth;
  return of;
}

// An element of an operand.
TN_FN i64 element_of(const P& p, int operand, idx image, idx z, idx y, idx x, idx channel) {
  const u64* const w = p.w + 11 + 6 * operand;
  return (i64)image * (i64)w[0] + (i64)z * (i64)w[1] + (i64)y * (i64)w[2] + (i64)x * (i64)w[3] + (i64)channel * (i64)w[4];
}

// Windows along an axis.
struct Axis {
  idx size, stride, padding, step;
};

template <int A>
TN_FN Axis axis_of(const P& p) {
  const u64* const w = p.w + AXES + 4 * A;
  return {(idx)w[0], (idx)w[1], (idx)w[2], (idx)w[3]};
}

// The taps of a window that lie on an axis and not in padding.
template <int A>
TN_FN idx first_inside(const P& p, idx window) {
  const Axis of = axis_of<A>(p);
  const idx before = of.padding - window * of.stride;
  return before > 0 ? (before + of.step - 1) / of.step : 0;
}

template <int A>
TN_FN idx end_inside(const P& p, idx window, idx length) {
  const Axis of = axis_of<A>(p);
  const idx left = length + of.padding - window * of.stride;
  const idx end = left > 0 ? (left + of.step - 1) / of.step : 0;
  return end < of.size ? end : of.size;
}

template <int A>
TN_FN idx count_inside(const P& p, idx window, idx length) {
  const idx count = end_inside<A>(p, window, length) - first_inside<A>(p, window);
  return count > 0 ? count : 0;
}

// Where a tap lies.
template <int A>
TN_FN idx tap_at(const P& p, idx window, idx tap) {
  const Axis of = axis_of<A>(p);
  return window * of.stride + tap * of.step - of.padding;
}

// The window, among so many, whose tap of that number lies there; -1 where there is none.
template <int A>
TN_FN idx window_at(const P& p, idx at, idx tap, idx count) {
  const Axis of = axis_of<A>(p);
  const idx start = at + of.padding - tap * of.step;
  if (start < 0 || start % of.stride != 0) return -1;
  return start / of.stride < count ? start / of.stride : -1;
}

TN_FN C share_of(const P& p, idx inside) {
  if (inside == 0) return (C)0;
  return (C)1 / (C)(COUNTS ? axis_of<0>(p).size * axis_of<1>(p).size * axis_of<2>(p).size : inside);
}

// NaN is ahead of everything but itself.
TN_FN bool is_above(C a, C b) { return a > b || (a != a && b == b); }

TN_FN void max_of(const P& p, idx t) {
  const Element of = place_of(p, t);
  const idx depth = (idx)p.w[5], height = (idx)p.w[6], width = (idx)p.w[7];
  C best = lowest();
  idx found = 0;
  bool first = true;
  for (idx i = first_inside<0>(p, of.at[0]); i < end_inside<0>(p, of.at[0], depth); i++)
    for (idx j = first_inside<1>(p, of.at[1]); j < end_inside<1>(p, of.at[1], height); j++)
      for (idx k = first_inside<2>(p, of.at[2]); k < end_inside<2>(p, of.at[2], width); k++) {
        const i64 at = element_of(p, 0, of.image, tap_at<0>(p, of.at[0], i), tap_at<1>(p, of.at[1], j), tap_at<2>(p, of.at[2], k), of.channel);
        const C x = load_s(((const S*)p.w[10])[at]);
        if (first || is_above(x, best)) {
          best = x;
          found = (i * axis_of<1>(p).size + j) * axis_of<2>(p).size + k;
        }
        first = false;
      }
  ((S*)p.w[8])[t] = store_s(best);
  if (p.w[9]) ((N*)p.w[9])[t] = (N)found;
}

TN_FN void mean_of(const P& p, idx t) {
  const Element of = place_of(p, t);
  const idx depth = (idx)p.w[5], height = (idx)p.w[6], width = (idx)p.w[7];
  C sum = 0;
  for (idx i = first_inside<0>(p, of.at[0]); i < end_inside<0>(p, of.at[0], depth); i++)
    for (idx j = first_inside<1>(p, of.at[1]); j < end_inside<1>(p, of.at[1], height); j++)
      for (idx k = first_inside<2>(p, of.at[2]); k < end_inside<2>(p, of.at[2], width); k++) {
        const i64 at = element_of(p, 0, of.image, tap_at<0>(p, of.at[0], i), tap_at<1>(p, of.at[1], j), tap_at<2>(p, of.at[2], k), of.channel);
        sum = sum + load_s(((const S*)p.w[10])[at]);
      }
  const idx inside = count_inside<0>(p, of.at[0], depth) * count_inside<1>(p, of.at[1], height) * count_inside<2>(p, of.at[2], width);
  ((S*)p.w[8])[t] = store_s(sum * share_of(p, inside));
}

TN_FN void mean_grad_of(const P& p, idx t) {
  const Element of = place_of(p, t);
  C sum = 0;
  for (idx i = axis_of<0>(p).size; i-- > 0;) {
    const idx slab = window_at<0>(p, of.at[0], i, (idx)p.w[5]);
    if (slab < 0) continue;
    const idx deep = count_inside<0>(p, slab, (idx)p.w[2]);
    for (idx j = axis_of<1>(p).size; j-- > 0;) {
      const idx row = window_at<1>(p, of.at[1], j, (idx)p.w[6]);
      if (row < 0) continue;
      const idx high = count_inside<1>(p, row, (idx)p.w[3]);
      for (idx k = axis_of<2>(p).size; k-- > 0;) {
        const idx column = window_at<2>(p, of.at[2], k, (idx)p.w[7]);
        if (column < 0) continue;
        const idx inside = deep * high * count_inside<2>(p, column, (idx)p.w[4]);
        const i64 at = element_of(p, 0, of.image, slab, row, column, of.channel);
        sum = p_fma<C>(load_s(((const S*)p.w[10])[at]), share_of(p, inside), sum);
      }
    }
  }
  ((S*)p.w[8])[t] = store_s(sum);
}

TN_FN void max_grad_of(const P& p, idx t) {
  const Element of = place_of(p, t);
  C sum = load_s(((const S*)p.w[10])[element_of(p, 0, of.image, of.at[0], of.at[1], of.at[2], of.channel)]);
  for (idx i = axis_of<0>(p).size; i-- > 0;) {
    const idx slab = window_at<0>(p, of.at[0], i, (idx)p.w[5]);
    if (slab < 0) continue;
    for (idx j = axis_of<1>(p).size; j-- > 0;) {
      const idx row = window_at<1>(p, of.at[1], j, (idx)p.w[6]);
      if (row < 0) continue;
      for (idx k = axis_of<2>(p).size; k-- > 0;) {
        const idx column = window_at<2>(p, of.at[2], k, (idx)p.w[7]);
        if (column < 0) continue;
        const idx number = ((const N*)p.w[16])[element_of(p, 1, of.image, slab, row, column, of.channel)];
        if (number != (i * axis_of<1>(p).size + j) * axis_of<2>(p).size + k) continue;
        sum = plus(sum, load_s(((const S*)p.w[22])[element_of(p, 2, of.image, slab, row, column, of.channel)]));
      }
    }
  }
  ((S*)p.w[8])[t] = store_s(sum);
}

TN_FN void picked_of(const P& p, idx t) {
  const Element of = place_of(p, t);
  const idx number = ((const N*)p.w[16])[element_of(p, 1, of.image, of.at[0], of.at[1], of.at[2], of.channel)];
  const idx i = number / (axis_of<1>(p).size * axis_of<2>(p).size), j = number / axis_of<2>(p).size % axis_of<1>(p).size, k = number % axis_of<2>(p).size;
  const bool inside = i >= first_inside<0>(p, of.at[0]) && i < end_inside<0>(p, of.at[0], (idx)p.w[5])
      && j >= first_inside<1>(p, of.at[1]) && j < end_inside<1>(p, of.at[1], (idx)p.w[6])
      && k >= first_inside<2>(p, of.at[2]) && k < end_inside<2>(p, of.at[2], (idx)p.w[7]);
  S x = 0;
  if (inside) {
    const i64 at = element_of(p, 0, of.image, tap_at<0>(p, of.at[0], i), tap_at<1>(p, of.at[1], j), tap_at<2>(p, of.at[2], k), of.channel);
    x = ((const S*)p.w[10])[at];
  }
  ((S*)p.w[8])[t] = x;
}
