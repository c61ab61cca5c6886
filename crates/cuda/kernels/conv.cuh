// Convolutions, their transposes and the gradients of their filters, as products whose left side is read where the windows say: nothing is
// laid out before. crates/cuda/src/emit/conv.rs has the words.
//
//   KIND                           0: rows are windows; 1: rows are pixels, of which a window gives back; 2: rows are taps with their channels,
//                                  and the windows are what is added up
//   CUT                            whether what is added up is cut into parts, each of which has sums of its own
//
// Words: rows, columns of a group, what is added up, parts, how much each has; the addresses of both sides, of the result and of the sums of
// parts; channels of a group on the left, groups; the lengths of where rows (or windows) are, and of what is read on the left; its steps along
// images, depth, height, width, channels; those of the right side: of filters along depth, height, width, channels that are added up and
// columns, of values along images, depth, height, width and channels; of the windows along depth, height and width: taps, from one window to
// the next, padding before the image, from one tap to the next.

// As many registers as it takes: to hold more blocks, some would be spilled.
#undef TN_BLOCKS
#define TN_BLOCKS 1

constexpr u32 BLOCK = 256;
constexpr u32 TILE = 64, DEPTH = 16, OWN = 4, PITCH = TILE + 4;

struct Spot {
  u64 image;
  i64 z, y, x;
};

TN_FN Spot spot_of(const P& p, u64 number) {
  const u64 width = p.w[13], height = p.w[12], depth = p.w[11];
  const u64 x = number % width, rows = number / width, y = rows % height, slabs = rows / height;
  return {slabs / depth, (i64)(slabs % depth), (i64)y, (i64)x};
}

TN_FN void go_on(const P& p, Spot& of) {
  if (++of.x < (i64)p.w[13]) return;
  of.x = 0;
  if (++of.y < (i64)p.w[12]) return;
  of.y = 0;
  if (++of.z < (i64)p.w[11]) return;
  of.z = 0;
  of.image++;
}

// A tap of a window, by its place along each axis.
struct Tap {
  i64 z, y, x;
};

TN_FN Tap tap_of(const P& p, u64 number) {
  const u64 width = p.w[35], height = p.w[31], rows = number / width;
  return {(i64)(rows / height), (i64)(rows % height), (i64)(number % width)};
}

// Where a tap is along an axis: the pixel that it sees, or the window that it belongs to; -1 where there is none.
template <int A>
TN_FN i64 seen(const P& p, i64 at, i64 tap) {
  const i64 stride = (i64)p.w[28 + 4 * A], padding = (i64)p.w[29 + 4 * A], step = (i64)p.w[30 + 4 * A], length = (i64)p.w[14 + A];
  if (KIND == 1) {
    const i64 start = at + padding - tap * step;
    if (start < 0 || (stride > 1 && start % stride != 0)) return -1;
    const i64 window = stride > 1 ? start / stride : start;
    return window < length ? window : -1;
  }
  const i64 place = at * stride + tap * step - padding;
  return place >= 0 && place < length ? place : -1;
}

// What a tap reads on the left, before its channels.
struct Seen {
  bool there;
  i64 at;
};

TN_FN Seen left_of(const P& p, const Spot& of, const Tap& tap) {
  const i64 z = seen<0>(p, of.z, tap.z), y = seen<1>(p, of.y, tap.y), x = seen<2>(p, of.x, tap.x);
  return {z >= 0 && y >= 0 && x >= 0, (i64)of.image * (i64)p.w[17] + z * (i64)p.w[18] + y * (i64)p.w[19] + x * (i64)p.w[20]};
}

TN_FN C element_at(const P& p, const Seen& of, u64 channel) {
  return of.there ? load_s(((const S*)p.w[5])[of.at + (i64)channel * (i64)p.w[21]]) : (C)0;
}

// Where an element of the right side lies: of filters by tap and channel, of values by window.
TN_FN i64 filter_at(const P& p, const Tap& tap, u64 channel, u64 column) {
  return tap.z * (i64)p.w[22] + tap.y * (i64)p.w[23] + tap.x * (i64)p.w[24] + (i64)channel * (i64)p.w[25] + (i64)column * (i64)p.w[26];
}

TN_FN i64 value_at(const P& p, const Spot& of, u64 column) {
  return (i64)of.image * (i64)p.w[22] + of.z * (i64)p.w[23] + of.y * (i64)p.w[24] + of.x * (i64)p.w[25] + (i64)column * (i64)p.w[26];
}

TN_FN C right_of(const P& p, i64 at) { return load_s(((const S*)p.w[6])[at]); }

TN_FN void put(const P& p, u64 part, u64 row, u64 column, C sum) {
  const u64 all = p.w[1] * p.w[10], at = row * all + column;
  if (CUT) ((C*)p.w[8])[part * p.w[0] * all + at] = sum;
  else ((S*)p.w[7])[at] = store_s(sum);
}

// A tile of a block.
TN_FN void tile_of(const P& p, u64 first_row, u64 first_column, u64 part) {
  __shared__ C lefts[DEPTH * PITCH], rights[DEPTH * PITCH];
  const u64 rows = p.w[0], columns = p.w[1], channels = p.w[9];
  const u64 begin = part * p.w[4], end = begin + p.w[4] < p.w[2] ? begin + p.w[4] : p.w[2];
  const u32 t = threadIdx.x;
  // What a thread brings: of a row some that are neighbours in depth, and of a depth some columns.
  const u64 own_row = first_row + t / OWN, own_column = first_column + t % DEPTH * OWN;
  const u32 own_depth = t % OWN * OWN, other_depth = t / DEPTH;
  const bool has_row = own_row < rows;
  const Spot row_spot = KIND == 2 ? Spot{0, 0, 0, 0} : spot_of(p, has_row ? own_row : 0);
  const Tap row_tap = KIND == 2 ? tap_of(p, own_row / channels) : Tap{0, 0, 0};
  const u64 row_channel = KIND == 2 ? own_row % channels : 0;
  C sums[OWN][OWN];
#pragma unroll
  for (u32 i = 0; i < OWN; i++)
#pragma unroll
    for (u32 j = 0; j < OWN; j++) sums[i][j] = 0;
  for (u64 depth = begin; depth < end; depth += DEPTH) {
    C left[OWN], right[OWN];
    const u64 k = depth + own_depth, other = depth + other_depth;
    if constexpr (KIND == 2) {
      Spot of = spot_of(p, k);
#pragma unroll
      for (u32 i = 0; i < OWN; i++) {
        left[i] = has_row && k + i < end ? element_at(p, left_of(p, of, row_tap), row_channel) : (C)0;
        go_on(p, of);
      }
      const i64 at = value_at(p, spot_of(p, other), own_column);
#pragma unroll
      for (u32 j = 0; j < OWN; j++)
        right[j] = other < end && own_column + j < columns ? right_of(p, at + (i64)j * (i64)p.w[26]) : (C)0;
    } else {
      u64 tap = k / channels, channel = k % channels;
      Seen sees = left_of(p, row_spot, tap_of(p, tap));
#pragma unroll
      for (u32 i = 0; i < OWN; i++) {
        left[i] = has_row && k + i < end ? element_at(p, sees, channel) : (C)0;
        if (++channel == channels) {
          channel = 0;
          sees = left_of(p, row_spot, tap_of(p, ++tap));
        }
      }
      const i64 at = filter_at(p, tap_of(p, other / channels), other % channels, own_column);
#pragma unroll
      for (u32 j = 0; j < OWN; j++)
        right[j] = other < end && own_column + j < columns ? right_of(p, at + (i64)j * (i64)p.w[26]) : (C)0;
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < OWN; i++) {
      lefts[(own_depth + i) * PITCH + t / OWN] = left[i];
      rights[other_depth * PITCH + t % DEPTH * OWN + i] = right[i];
    }
    __syncthreads();
#pragma unroll
    for (u32 d = 0; d < DEPTH; d++) {
      C a[OWN], b[OWN];
#pragma unroll
      for (u32 i = 0; i < OWN; i++) {
        a[i] = lefts[d * PITCH + t / DEPTH * OWN + i];
        b[i] = rights[d * PITCH + t % DEPTH * OWN + i];
      }
#pragma unroll
      for (u32 i = 0; i < OWN; i++)
#pragma unroll
        for (u32 j = 0; j < OWN; j++) sums[i][j] = tn::fma(a[i], b[j], sums[i][j]);
    }
  }
#pragma unroll
  for (u32 i = 0; i < OWN; i++)
#pragma unroll
    for (u32 j = 0; j < OWN; j++) {
      const u64 row = first_row + t / DEPTH * OWN + i, column = first_column + t % DEPTH * OWN + j;
      if (row < rows && column < columns) put(p, part, row, column, sums[i][j]);
    }
  __syncthreads();
}

TN_FN void tiles(const P& p) {
  const u64 parts = p.w[3], across = (p.w[1] + TILE - 1) / TILE, down = (p.w[0] + TILE - 1) / TILE;
  for (u64 block = blockIdx.x; block < parts * across * down; block += gridDim.x)
    tile_of(p, block / across % down * TILE, block % across * TILE, block / across / down);
}

// An element, of a group of channels.
TN_FN void element_of(const P& p, u64 t) {
  const u64 each = p.w[1], columns = each * p.w[10], channels = p.w[9];
  const u64 column = t % columns, row = t / columns % p.w[0], part = t / columns / p.w[0], group = column / each;
  const u64 begin = part * p.w[4], end = begin + p.w[4] < p.w[2] ? begin + p.w[4] : p.w[2];
  C sum = 0;
  if constexpr (KIND == 2) {
    const Tap tap = tap_of(p, row / channels);
    const u64 channel = group * channels + row % channels;
    Spot of = spot_of(p, begin);
    for (u64 k = begin; k < end; k++) {
      sum = tn::fma(element_at(p, left_of(p, of, tap), channel), right_of(p, value_at(p, of, column)), sum);
      go_on(p, of);
    }
  } else {
    const Spot of = spot_of(p, row);
    const u64 taps = p.w[27] * p.w[31] * p.w[35];
    for (u64 number = 0; number < taps; number++) {
      const Tap tap = tap_of(p, number);
      const Seen sees = left_of(p, of, tap);
      for (u64 channel = 0; channel < channels; channel++) {
        // Filters count their inputs within a group, and their outputs over all of them.
        const u64 all = group * channels + channel;
        const i64 at = KIND == 1 ? filter_at(p, tap, all, column % each) : filter_at(p, tap, channel, column);
        sum = tn::fma(element_at(p, sees, all), right_of(p, at), sum);
      }
    }
  }
  put(p, part, row, column, sum);
}

TN_FN void elements(const P& p) {
  const u64 total = p.w[0] * p.w[1] * p.w[10] * p.w[3];
  for (u64 t = (u64)blockIdx.x * BLOCK + threadIdx.x; t < total; t += (u64)gridDim.x * BLOCK) element_of(p, t);
}

// The sums of parts, in their order.
TN_FN void join_parts(const P& p) {
  const u64 total = p.w[0] * p.w[1] * p.w[10];
  for (u64 t = (u64)blockIdx.x * BLOCK + threadIdx.x; t < total; t += (u64)gridDim.x * BLOCK) {
    C sum = 0;
    for (u64 part = 0; part < p.w[3]; part++) sum = sum + ((const C*)p.w[8])[part * total + t];
    ((S*)p.w[7])[t] = store_s(sum);
  }
}
