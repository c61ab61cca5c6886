// A stable radix sort, pass by pass: crates/cuda/src/emit/index/order.rs launches it. A thread takes 16 keys that are neighbours, a block
// 256 threads; a pass looks at four bits of the keys, or of the numbers of the rows that they are of, where `row` is not 0: so long is each.

template <int D>
TN_FN u32 order_digit(const u64* keys, const u32* places, u64 row, u64 i) {
  const u64 number = row ? places[i] / row : keys[i];
  return (u32)(number >> (4 * D)) & 15;
}

// How often each digit occurs among the keys of each thread; digit-major, so that 16 neighbours are those of 16 threads.
#define TN_ORDER_OWN                                                                  \
  __shared__ u32 own[16 * 256], part[256];                                            \
  const u32 t = threadIdx.x;                                                          \
  for (u32 d = 0; d < 16; d++) own[d * 256 + t] = 0;                                  \
  const u64 first = ((u64)blockIdx.x * 256 + t) * 16, blocks = (n + 4095) / 4096;     \
  for (u64 i = first; i < first + 16 && i < n; i++)                                   \
    own[order_digit<D>(keys, places, row, i) * 256 + t]++;                            \
  __syncthreads();                                                                    \
  u32 sum = 0;                                                                        \
  for (u32 i = 0; i < 16; i++) sum += own[t * 16 + i];                                \
  part[t] = sum;                                                                      \
  __syncthreads();

// The counts of a block: all blocks of digit 0, then all of digit 1.
template <int D>
TN_FN void order_count(u64 n, const u64* keys, const u32* places, u32* counts, u64 row = 0) {
  TN_ORDER_OWN
  if (t < 16) {
    u32 all = 0;
    for (u32 i = 0; i < 16; i++) all += part[t * 16 + i];
    counts[(u64)t * blocks + blockIdx.x] = all;
  }
}

// Each count becomes the sum of those before it. One block.
TN_FN void order_scan(u64 n, u32* counts) {
  const u64 length = (n + 4095) / 4096 * 16, each = (length + 255) / 256;
  const u64 first = threadIdx.x * each, last = first + each < length ? first + each : length;
  u32 own = 0, all;
  for (u64 i = first; i < last; i++) own += counts[i];
  u32 run = counts_before_thread(own, all);
  for (u64 i = first; i < last; i++) {
    const u32 count = counts[i];
    counts[i] = run;
    run += count;
  }
}

// Each key to its place.
template <int D>
TN_FN void order_move(u64 n, const u64* keys, const u32* places, u64* to, u32* places_to, const u32* counts, u64 row = 0) {
  TN_ORDER_OWN
  // A count becomes the sum of those of earlier threads.
  if (t < 16) {
    u32 run = 0;
    for (u32 i = 0; i < 16; i++) {
      const u32 count = part[t * 16 + i];
      part[t * 16 + i] = run;
      run += count;
    }
  }
  __syncthreads();
  u32 run = part[t];
  for (u32 i = 0; i < 16; i++) {
    const u32 count = own[t * 16 + i];
    own[t * 16 + i] = run;
    run += count;
  }
  __syncthreads();
  for (u64 i = first; i < first + 16 && i < n; i++) {
    const u32 d = order_digit<D>(keys, places, row, i);
    const u64 at = (u64)counts[(u64)d * blocks + blockIdx.x] + own[d * 256 + t]++;
    to[at] = keys[i];
    places_to[at] = places[i];
  }
}
