// Gradients for queries, and for keys and values; weights are made again from the logarithms of their sums.
//
//   QUERY_M, QUERY_KEYS, QUERY_STAGES    for those of queries: tiles of 16 queries that a warp has, keys of a tile, how many tiles there are
//   KEY_QUERIES, KEY_STAGES              for those of keys: queries of a tile, how many tiles there are
//   BLOCKS                               blocks of threads that a multiprocessor is to hold
//   PARTS                                whether keys and values have blocks of their own: their sums are too many for one
//
// What comes is taken in parts of at most 32 rows, for scores and their gradients are in registers at once.

#undef TN_BLOCKS
#define TN_BLOCKS BLOCKS

constexpr int QUERY_ROWS = WARPS * 16 * QUERY_M, QUERY_SUB = QUERY_KEYS < 32 || DP > 128 ? 16 : 32;
constexpr bool QUERY_KEPT = DP <= 64 && EP <= 64 && QUERY_M == 1;

TN_KERNEL(of_queries) {
  TN_SHARED(memory, 2 * (QUERY_ROWS + QUERY_STAGES * QUERY_KEYS) * (PD + PE));
  u16* const tile_q = (u16*)memory;
  u16* const tile_g = tile_q + QUERY_ROWS * PD;
  u16* const tiles_k = tile_g + QUERY_ROWS * PE;
  u16* const tiles_v = tiles_k + QUERY_STAGES * QUERY_KEYS * PD;
  const int queries = (int)p.w[2], keys = (int)p.w[3];
  const u32 heads = (u32)p.w[1], group = (u32)p.w[4];
  const f32 scale = (f32)tn::from_bits(p.w[5]), factor = scale * LOG2_E;
  const u32 tiles = (u32)((queries + QUERY_ROWS - 1) / QUERY_ROWS), all = (u32)p.w[0] * heads * tiles;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = warp * 16 * QUERY_M;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    const int first = (int)(tiles - 1 - block % tiles) * QUERY_ROWS;
    const u32 b = block / tiles / heads, h = block / tiles % heads;
    const int last = (first + QUERY_ROWS < queries ? first + QUERY_ROWS : queries) - 1, end = sees(last, queries, keys);
    const Head k = head_of(p, 1, b, h / group), v = head_of(p, 2, b, h / group);
    __syncthreads();
    stage<D, QUERY_ROWS>(tile_q, head_of(p, 0, b, h), first, queries);
    stage<E, QUERY_ROWS>(tile_g, head_of(p, 6, b, h), first, queries);
    stage<D, QUERY_KEYS>(tiles_k, k, 0, end);
    stage<E, QUERY_KEYS>(tiles_v, v, 0, end);
    Numbers numbers[QUERY_M][2];
#pragma unroll
    for (int m = 0; m < QUERY_M; m++)
#pragma unroll
      for (int half = 0; half < 2; half++) numbers[m][half] = numbers_of(p, b, h, first + own + m * 16 + half * 8 + lane / 4, queries);
    wait_for_copies();
    __syncthreads();
    const u16* const q = tile_q + own * PD + left_at(lane, PD);
    const u16* const g = tile_g + own * PE + left_at(lane, PE);
    u32 kept_q[QUERY_M][QUERY_KEPT ? DP / 16 : 1][4], kept_g[QUERY_M][QUERY_KEPT ? EP / 16 : 1][4];
    if constexpr (QUERY_KEPT) {
      keep<QUERY_M, D>(kept_q, q);
      keep<QUERY_M, E>(kept_g, g);
    }
    f32 sums[QUERY_M][DP / 8][4];
    clear(sums);
    const int seen_by_all = sees(first + own, queries, keys);
    int step = 0;
    for (int from = 0; from < end; from += QUERY_KEYS, step++) {
      wait_for_copies();
      __syncthreads();
      const int now = step % QUERY_STAGES, next = (step + 1) % QUERY_STAGES;
      if (QUERY_STAGES > 1 && from + QUERY_KEYS < end) {
        stage<D, QUERY_KEYS>(tiles_k + next * QUERY_KEYS * PD, k, from + QUERY_KEYS, end);
        stage<E, QUERY_KEYS>(tiles_v + next * QUERY_KEYS * PE, v, from + QUERY_KEYS, end);
      }
#pragma unroll 1
      for (int sub = 0; sub < QUERY_KEYS; sub += QUERY_SUB) {
        const u16* const tile_k = tiles_k + (now * QUERY_KEYS + sub) * PD;
        const u16* const tile_v = tiles_v + (now * QUERY_KEYS + sub) * PE;
        f32 slopes[QUERY_M][QUERY_SUB / 8][4], scores[QUERY_M][QUERY_SUB / 8][4];
        clear(scores);
        // What is shared is taken off beforehand.
#pragma unroll
        for (int m = 0; m < QUERY_M; m++)
#pragma unroll
          for (int n = 0; n < QUERY_SUB / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) slopes[m][n][i] = -numbers[m][i / 2].shared;
        add_products<QUERY_M, QUERY_SUB, D, QUERY_KEPT>(scores, kept_q, q, tile_k + right_at(lane, PD));
        add_products<QUERY_M, QUERY_SUB, E, QUERY_KEPT>(slopes, kept_g, g, tile_v + right_at(lane, PE));
        if (MASK != 2) {
#pragma unroll
          for (int m = 0; m < QUERY_M; m++)
#pragma unroll
            for (int n = 0; n < QUERY_SUB / 8; n++)
#pragma unroll
              for (int i = 0; i < 4; i++) scores[m][n][i] = exp2_near(tn::fma(scores[m][n][i], factor, -numbers[m][i / 2].log));
        }
        if (MASK != 0 || from + sub + QUERY_SUB > seen_by_all)
          hide_weights<QUERY_M, QUERY_SUB>(scores, p, numbers, scale, b, h, first + own, from + sub, lane);
#pragma unroll
        for (int m = 0; m < QUERY_M; m++)
#pragma unroll
          for (int n = 0; n < QUERY_SUB / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) slopes[m][n][i] = scores[m][n][i] * slopes[m][n][i];
        add_weighed<QUERY_M, QUERY_SUB, D>(sums, slopes, tile_k + left_at(lane, PD));
      }
      if (QUERY_STAGES == 1 && from + QUERY_KEYS < end) {
        __syncthreads();
        stage<D, QUERY_KEYS>(tiles_k, k, from + QUERY_KEYS, end);
        stage<E, QUERY_KEYS>(tiles_v, v, from + QUERY_KEYS, end);
      }
    }
    const Made<u16> to = made_of<u16>(p, 0, b, h);
#pragma unroll
    for (int m = 0; m < QUERY_M; m++) write<D>(to, sums[m], scale, scale, first + own + m * 16, queries, lane);
  }
}

constexpr int KEY_ROWS = WARPS * 16, KEY_SUB = KEY_QUERIES < 32 || DP + EP > 128 ? 16 : 32;
// Keys stay in registers as long as there are enough; for values, there never are.
constexpr bool KEY_KEPT = DP <= 64 && EP <= 64;

// The numbers of queries lie apart: logarithms, what they lost, what is shared.
constexpr int LOST = KEY_STAGES * KEY_QUERIES, SHARED = 2 * LOST;

TN_FN void put_numbers(f32* log, const Numbers& of) {
  log[0] = of.log;
  log[LOST] = of.lost;
  log[SHARED] = of.shared;
}

// A tile of keys: of them the gradients, of their values, or both.
template <bool OF_KEYS, bool OF_VALUES>
TN_FN void of_tile(const P& p, u8* memory, u32 b, u32 head, int from) {
  u16* const tile_k = (u16*)memory;
  u16* const tile_v = tile_k + KEY_ROWS * PD;
  u16* const tiles_q = tile_v + KEY_ROWS * PE;
  u16* const tiles_g = tiles_q + KEY_STAGES * KEY_QUERIES * PD;
  f32* const logs = (f32*)(tiles_g + KEY_STAGES * KEY_QUERIES * PE);
  const int queries = (int)p.w[2], keys = (int)p.w[3];
  const u32 heads = (u32)p.w[1], group = (u32)p.w[4];
  const f32 scale = (f32)tn::from_bits(p.w[5]), factor = scale * LOG2_E;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = warp * 16;
  // The first query that sees any of them, the tiles of queries from there on, and those of all heads.
  const int first_seen = CAUSAL && from + queries > keys ? from + queries - keys : 0;
  const int begin = first_seen / KEY_QUERIES * KEY_QUERIES;
  const u32 each = begin < queries ? (u32)(queries - begin + KEY_QUERIES - 1) / KEY_QUERIES : 0, steps = each * group;
  __syncthreads();
  stage<D, KEY_ROWS>(tile_k, head_of(p, 1, b, head), from, keys);
  stage<E, KEY_ROWS>(tile_v, head_of(p, 2, b, head), from, keys);
  if (steps > 0) {
    stage<D, KEY_QUERIES>(tiles_q, head_of(p, 0, b, head * group), begin, queries);
    stage<E, KEY_QUERIES>(tiles_g, head_of(p, 6, b, head * group), begin, queries);
    if (threadIdx.x < KEY_QUERIES) put_numbers(logs + threadIdx.x, numbers_of(p, b, head * group, begin + threadIdx.x, queries));
  }
  wait_for_copies();
  __syncthreads();
  const u16* const k = tile_k + own * PD + left_at(lane, PD);
  const u16* const v = tile_v + own * PE + left_at(lane, PE);
  u32 kept_k[1][KEY_KEPT ? DP / 16 : 1][4];
  if constexpr (KEY_KEPT) keep<1, D>(kept_k, k);
  f32 dk[1][OF_KEYS ? DP / 8 : 1][4], dv[1][OF_VALUES ? EP / 8 : 1][4];
  clear(dk);
  clear(dv);
  for (u32 step = 0; step < steps; step++) {
    const u32 now = step % KEY_STAGES, after = step + 1, next = after % KEY_STAGES;
    const int first = begin + (int)(step % each) * KEY_QUERIES, next_first = begin + (int)(after % each) * KEY_QUERIES;
    const u32 h = head * group + step / each, next_h = head * group + after / each;
    wait_for_copies();
    __syncthreads();
    Numbers coming = {0, 0, 0};
    if (after < steps && threadIdx.x < KEY_QUERIES) coming = numbers_of(p, b, next_h, next_first + threadIdx.x, queries);
    if (KEY_STAGES > 1 && after < steps) {
      stage<D, KEY_QUERIES>(tiles_q + next * KEY_QUERIES * PD, head_of(p, 0, b, next_h), next_first, queries);
      stage<E, KEY_QUERIES>(tiles_g + next * KEY_QUERIES * PE, head_of(p, 6, b, next_h), next_first, queries);
    }
    // The last key of the warp is seen by all queries: no look is needed.
    const bool hides = MASK != 0 || CAUSAL && from + own + 15 >= sees(first, queries, keys);
#pragma unroll 1
    for (int sub = 0; sub < KEY_QUERIES; sub += KEY_SUB) {
      const u16* const tile_q = tiles_q + (now * KEY_QUERIES + sub) * PD;
      const u16* const tile_g = tiles_g + (now * KEY_QUERIES + sub) * PE;
      const f32* const log = logs + now * KEY_QUERIES + sub + lane % 4 * 2;
      f32 weights[1][KEY_SUB / 8][4], slopes[1][KEY_SUB / 8][4];
      clear(weights);
      add_products<1, KEY_SUB, D, KEY_KEPT>(weights, kept_k, k, tile_q + right_at(lane, PD));
      if (OF_KEYS) {
        // What is shared is taken off beforehand.
#pragma unroll
        for (int n = 0; n < KEY_SUB / 8; n++) {
          const Vec<f32, 2> shared = *(const Vec<f32, 2>*)(log + SHARED + n * 8);
#pragma unroll
          for (int i = 0; i < 4; i++) slopes[0][n][i] = -shared.v[i % 2];
        }
        add_products<1, KEY_SUB, E, false>(slopes, kept_k, v, tile_g + right_at(lane, PE));
      }
      if (MASK != 2) {
#pragma unroll
        for (int n = 0; n < KEY_SUB / 8; n++) {
          const Vec<f32, 2> of = *(const Vec<f32, 2>*)(log + n * 8);
#pragma unroll
          for (int i = 0; i < 4; i++) weights[0][n][i] = exp2_near(tn::fma(weights[0][n][i], factor, -of.v[i % 2]));
        }
      }
      if (hides) hide_weights_across<KEY_SUB, LOST>(weights[0], p, log, scale, b, h, from + own, first + sub, lane);
      if (OF_KEYS) {
#pragma unroll
        for (int n = 0; n < KEY_SUB / 8; n++)
#pragma unroll
          for (int i = 0; i < 4; i++) slopes[0][n][i] = weights[0][n][i] * slopes[0][n][i];
      }
      if constexpr (OF_VALUES) add_weighed<1, KEY_SUB, E>(dv, weights, tile_g + left_at(lane, PE));
      if constexpr (OF_KEYS) add_weighed<1, KEY_SUB, D>(dk, slopes, tile_q + left_at(lane, PD));
    }
    if (KEY_STAGES == 1) __syncthreads();
    if (KEY_STAGES == 1 && after < steps) {
      stage<D, KEY_QUERIES>(tiles_q, head_of(p, 0, b, next_h), next_first, queries);
      stage<E, KEY_QUERIES>(tiles_g, head_of(p, 6, b, next_h), next_first, queries);
    }
    if (threadIdx.x < KEY_QUERIES) put_numbers(logs + next * KEY_QUERIES + threadIdx.x, coming);
  }
  if constexpr (OF_KEYS) write<D>(made_of<u16>(p, 1, b, head), dk[0], scale, scale, from + own, keys, lane);
  if constexpr (OF_VALUES) write<E>(made_of<u16>(p, 2, b, head), dv[0], 1, 1, from + own, keys, lane);
}

TN_KERNEL(of_keys) {
  TN_SHARED(memory, 2 * (KEY_ROWS + KEY_STAGES * KEY_QUERIES) * (PD + PE) + 12 * KEY_STAGES * KEY_QUERIES);
  const u32 groups = (u32)p.w[1] / (u32)p.w[4], tiles = ((u32)p.w[3] + KEY_ROWS - 1) / KEY_ROWS;
  const u32 all = (u32)p.w[0] * groups * tiles;
  for (u32 block = blockIdx.x; block < all * PARTS; block += gridDim.x) {
    const u32 at = block / PARTS;
    const int from = (int)(at % tiles) * KEY_ROWS;
    const u32 b = at / tiles / groups, head = at / tiles % groups;
    if constexpr (PARTS == 1) {
      of_tile<true, true>(p, memory, b, head, from);
    } else if (block % PARTS == 0) {
      of_tile<true, false>(p, memory, b, head, from);
    } else {
      of_tile<false, true>(p, memory, b, head, from);
    }
  }
}
