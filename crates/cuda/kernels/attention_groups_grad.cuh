// Gradients for queries, and for keys and values; weights are made again from the logarithms of their sums.
//
//   QUERY_GROUPS    for those of queries: groups of a block of threads, each of which has 64 queries
//   QUERY_BLOCKS    blocks that a multiprocessor is to hold
//   QUERY_KEYS      keys of a tile
//   QUERY_KEPT      whether registers keep the queries and their gradients
//   KEY_GROUPS      for those of keys: groups of a block of threads, each of which has 64 keys
//   KEY_BLOCKS      blocks that a multiprocessor is to hold
//   KEY_QUERIES     queries of a tile
//   KEY_SUB         how many of these are taken at once: scores and their gradients are in registers beside the sums
//   KEY_KEPT        whether registers keep the keys and their values

#undef TN_THREADS
#define TN_THREADS (QUERY_GROUPS * 128)
#undef TN_BLOCKS
#define TN_BLOCKS QUERY_BLOCKS

// Sets of products that go on beside the weights: none where a mask is read, which takes the registers.
constexpr int BEHIND = MASK == 0 ? 1 : 0;

constexpr int QUERY_ROWS = QUERY_GROUPS * 64;

TN_KERNEL(of_queries) {
  TN_SHARED(memory, 1024 + 2 * (QUERY_ROWS + STAGES * QUERY_KEYS) * (D + E));
  u16* const tile_q = (u16*)(memory + missing(memory));
  u16* const tile_g = tile_q + QUERY_ROWS * D;
  u16* const tiles_k = tile_g + QUERY_ROWS * E;
  u16* const tiles_v = tiles_k + STAGES * QUERY_KEYS * D;
  const int queries = (int)p.w[2], keys = (int)p.w[3];
  const u32 heads = (u32)p.w[1], group = (u32)p.w[4];
  const f32 scale = (f32)tn::from_bits(p.w[5]), factor = scale * LOG2_E;
  const u32 tiles = (u32)((queries + QUERY_ROWS - 1) / QUERY_ROWS), all = (u32)p.w[0] * heads * tiles;
  const int lane = threadIdx.x % 32, own = threadIdx.x / 128 * 64;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    const int first = (int)(tiles - 1 - block % tiles) * QUERY_ROWS, row = first + threadIdx.x / 32 * 16;
    const u32 b = block / tiles / heads, h = block / tiles % heads;
    const int end = sees((first + QUERY_ROWS < queries ? first + QUERY_ROWS : queries) - 1, queries, keys);
    const Head k = head_of(p, 1, b, h / group), v = head_of(p, 2, b, h / group);
    __syncthreads();
    stage<D, QUERY_ROWS, QUERY_GROUPS>(tile_q, head_of(p, 0, b, h), first, queries);
    stage<E, QUERY_ROWS, QUERY_GROUPS>(tile_g, head_of(p, 6, b, h), first, queries);
    stage<D, QUERY_KEYS, QUERY_GROUPS>(tiles_k, k, 0, end);
    stage<E, QUERY_KEYS, QUERY_GROUPS>(tiles_v, v, 0, end);
    Numbers numbers[1][2];
#pragma unroll
    for (int half = 0; half < 2; half++) numbers[0][half] = numbers_of(p, b, h, row + half * 8 + lane / 4, queries);
    const u64 q = matrix_at(tile_q + own * PANEL), g = matrix_at(tile_g + own * PANEL);
    u32 kept_q[QUERY_KEPT ? D / 16 : 1][4], kept_g[QUERY_KEPT ? E / 16 : 1][4];
    f32 sums[1][D / 8][4];
    clear(sums);
    // What all queries of the warp see needs no look; what none of the group sees is left out.
    const int seen_by_all = sees(row, queries, keys), seen_by_any = sees(first + own + 63, queries, keys);
    int now = 0;
    for (int from = 0; from < end; from += QUERY_KEYS) {
      meet_with_copies();
      const int next = now + 1 < STAGES ? now + 1 : 0;
      if (from + QUERY_KEYS < end) {
        stage<D, QUERY_KEYS, QUERY_GROUPS>(tiles_k + next * QUERY_KEYS * D, k, from + QUERY_KEYS, end);
        stage<E, QUERY_KEYS, QUERY_GROUPS>(tiles_v + next * QUERY_KEYS * E, v, from + QUERY_KEYS, end);
      }
      if (QUERY_KEPT && from == 0) {
        keep<D, QUERY_ROWS>(kept_q, tile_q + threadIdx.x / 32 * 16 * PANEL, lane);
        keep<E, QUERY_ROWS>(kept_g, tile_g + threadIdx.x / 32 * 16 * PANEL, lane);
      }
      if (from < seen_by_any) {
        const u64 keys_at = matrix_at(tiles_k + now * QUERY_KEYS * D), values_at = matrix_at(tiles_v + now * QUERY_KEYS * E);
        f32 scores[1][QUERY_KEYS / 8][4], slopes[1][QUERY_KEYS / 8][4];
        begin_products();
        if constexpr (QUERY_KEPT)
          set_products<QUERY_KEYS, D, QUERY_KEYS>(scores[0], kept_q, keys_at);
        else
          set_products<QUERY_KEYS, D, QUERY_ROWS, QUERY_KEYS>(scores[0], q, keys_at);
        end_products();
        if constexpr (QUERY_KEPT)
          set_products<QUERY_KEYS, E, QUERY_KEYS>(slopes[0], kept_g, values_at);
        else
          set_products<QUERY_KEYS, E, QUERY_ROWS, QUERY_KEYS>(slopes[0], g, values_at);
        end_products();
        wait_for_products<BEHIND>();
        hold(scores[0]);
        if (MASK != 2) {
#pragma unroll
          for (int n = 0; n < QUERY_KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) scores[0][n][i] = exp2_near(tn::fma(scores[0][n][i], factor, -numbers[0][i / 2].log));
        }
        if (MASK != 0 || from + QUERY_KEYS > seen_by_all) hide_weights<1, QUERY_KEYS>(scores, p, numbers, scale, b, h, row, from, lane);
        wait_for_products<0>();
        hold(slopes[0]);
        hold(sums[0]);
#pragma unroll
        for (int n = 0; n < QUERY_KEYS / 8; n++)
#pragma unroll
          for (int i = 0; i < 4; i++) slopes[0][n][i] = scores[0][n][i] * (slopes[0][n][i] - numbers[0][i / 2].shared);
        u32 weights[QUERY_KEYS / 16][4];
        narrow<QUERY_KEYS>(weights, slopes[0]);
        begin_products();
        add_weighed<QUERY_KEYS, D, QUERY_KEYS>(sums[0], weights, keys_at);
        end_products();
      } else {
        wait_for_products<0>();
      }
      now = next;
    }
    wait_for_products<0>();
    hold(sums[0]);
    write<D>(made_of<u16>(p, 0, b, h), sums[0], scale, scale, row, queries, lane);
  }
}

#undef TN_THREADS
#define TN_THREADS (KEY_GROUPS * 128)
#undef TN_BLOCKS
#define TN_BLOCKS KEY_BLOCKS

constexpr int KEY_ROWS = KEY_GROUPS * 64;

// The numbers of queries lie apart: logarithms, what they lost, what is shared.
constexpr int LOST = STAGES * KEY_QUERIES, SHARED = 2 * LOST;

TN_FN void put_numbers(f32* log, const Numbers& of) {
  log[0] = of.log;
  if (MASK == 2) log[LOST] = of.lost;
  log[SHARED] = of.shared;
}

TN_KERNEL(of_keys) {
  TN_SHARED(memory, 1024 + 2 * (KEY_ROWS + STAGES * KEY_QUERIES) * (D + E) + 12 * STAGES * KEY_QUERIES);
  u16* const tile_k = (u16*)(memory + missing(memory));
  u16* const tile_v = tile_k + KEY_ROWS * D;
  u16* const tiles_q = tile_v + KEY_ROWS * E;
  u16* const tiles_g = tiles_q + STAGES * KEY_QUERIES * D;
  f32* const logs = (f32*)(tiles_g + STAGES * KEY_QUERIES * E);
  const int queries = (int)p.w[2], keys = (int)p.w[3];
  const u32 group = (u32)p.w[4], groups = (u32)p.w[1] / group;
  const f32 scale = (f32)tn::from_bits(p.w[5]), factor = scale * LOG2_E;
  const u32 tiles = (u32)((keys + KEY_ROWS - 1) / KEY_ROWS), all = (u32)p.w[0] * groups * tiles;
  const int lane = threadIdx.x % 32, own = threadIdx.x / 128 * 64;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    const int from = (int)(block % tiles) * KEY_ROWS, row = from + threadIdx.x / 32 * 16;
    const u32 b = block / tiles / groups, head = block / tiles % groups;
    // The first query that sees any of them, the tiles of queries from there on, and those of all heads.
    const int first_seen = CAUSAL && from + queries > keys ? from + queries - keys : 0;
    const int begin = first_seen / KEY_QUERIES * KEY_QUERIES;
    const u32 each = begin < queries ? (u32)(queries - begin + KEY_QUERIES - 1) / KEY_QUERIES : 0, steps = each * group;
    __syncthreads();
    stage<D, KEY_ROWS, KEY_GROUPS>(tile_k, head_of(p, 1, b, head), from, keys);
    stage<E, KEY_ROWS, KEY_GROUPS>(tile_v, head_of(p, 2, b, head), from, keys);
    if (steps > 0) {
      stage<D, KEY_QUERIES, KEY_GROUPS>(tiles_q, head_of(p, 0, b, head * group), begin, queries);
      stage<E, KEY_QUERIES, KEY_GROUPS>(tiles_g, head_of(p, 6, b, head * group), begin, queries);
      if (threadIdx.x < KEY_QUERIES) put_numbers(logs + threadIdx.x, numbers_of(p, b, head * group, begin + threadIdx.x, queries));
    }
    const u64 k = matrix_at(tile_k + own * PANEL), v = matrix_at(tile_v + own * PANEL);
    u32 kept_k[KEY_KEPT ? D / 16 : 1][4], kept_v[KEY_KEPT ? E / 16 : 1][4];
    f32 dk[1][D / 8][4], dv[1][E / 8][4];
    clear(dk);
    clear(dv);
    u32 h = head * group;
    int first = begin, now = 0;
    for (u32 step = 0; step < steps; step++) {
      meet_with_copies();
      if (KEY_KEPT && step == 0) {
        keep<D, KEY_ROWS>(kept_k, tile_k + threadIdx.x / 32 * 16 * PANEL, lane);
        keep<E, KEY_ROWS>(kept_v, tile_v + threadIdx.x / 32 * 16 * PANEL, lane);
      }
      const int next = now + 1 < STAGES ? now + 1 : 0;
      // What comes next is of the same head, or of the next one that has these keys.
      const bool turns = first + KEY_QUERIES >= queries;
      const int next_first = turns ? begin : first + KEY_QUERIES;
      const u32 next_h = turns ? h + 1 : h;
      Numbers coming = {0, 0, 0};
      if (step + 1 < steps) {
        if (threadIdx.x < KEY_QUERIES) coming = numbers_of(p, b, next_h, next_first + threadIdx.x, queries);
        stage<D, KEY_QUERIES, KEY_GROUPS>(tiles_q + next * KEY_QUERIES * D, head_of(p, 0, b, next_h), next_first, queries);
        stage<E, KEY_QUERIES, KEY_GROUPS>(tiles_g + next * KEY_QUERIES * E, head_of(p, 6, b, next_h), next_first, queries);
      }
      // The last query sees one of the group's keys, or none does.
      if (from + own < sees(first + KEY_QUERIES - 1, queries, keys)) {
        // The last key of the warp is seen by all queries: no look is needed.
        const bool hides = MASK != 0 || CAUSAL && row + 15 >= sees(first, queries, keys);
        u64 queries_at = matrix_at(tiles_q + now * KEY_QUERIES * D), grads_at = matrix_at(tiles_g + now * KEY_QUERIES * E);
        const f32* log = logs + now * KEY_QUERIES + lane % 4 * 2;
        // Eight rows of 128 bytes are 64 units of 16.
#pragma unroll 1
        for (int sub = 0; sub < KEY_QUERIES; sub += KEY_SUB, queries_at += KEY_SUB * 8, grads_at += KEY_SUB * 8, log += KEY_SUB) {
          f32 weights[1][KEY_SUB / 8][4], slopes[1][KEY_SUB / 8][4];
          u32 narrow_weights[KEY_SUB / 16][4], narrow_slopes[KEY_SUB / 16][4];
          begin_products();
          if constexpr (KEY_KEPT)
            set_products<KEY_SUB, D, KEY_QUERIES>(weights[0], kept_k, queries_at);
          else
            set_products<KEY_SUB, D, KEY_ROWS, KEY_QUERIES>(weights[0], k, queries_at);
          end_products();
          if constexpr (KEY_KEPT)
            set_products<KEY_SUB, E, KEY_QUERIES>(slopes[0], kept_v, grads_at);
          else
            set_products<KEY_SUB, E, KEY_ROWS, KEY_QUERIES>(slopes[0], v, grads_at);
          end_products();
          wait_for_products<BEHIND>();
          hold(weights[0]);
          if (MASK != 2) {
#pragma unroll
            for (int n = 0; n < KEY_SUB / 8; n++) {
              const Vec<f32, 2> of = *(const Vec<f32, 2>*)(log + n * 8);
#pragma unroll
              for (int i = 0; i < 4; i++) weights[0][n][i] = exp2_near(tn::fma(weights[0][n][i], factor, -of.v[i % 2]));
            }
          }
          if (hides) hide_weights_across<KEY_SUB, LOST>(weights[0], p, log, scale, b, h, row, first + sub, lane);
          narrow<KEY_SUB>(narrow_weights, weights[0]);
          begin_products();
          add_weighed<KEY_SUB, E, KEY_QUERIES>(dv[0], narrow_weights, grads_at);
          end_products();
          wait_for_products<1>();
          hold(slopes[0]);
#pragma unroll
          for (int n = 0; n < KEY_SUB / 8; n++) {
            const Vec<f32, 2> shared = *(const Vec<f32, 2>*)(log + SHARED + n * 8);
#pragma unroll
            for (int i = 0; i < 4; i++) slopes[0][n][i] = weights[0][n][i] * (slopes[0][n][i] - shared.v[i % 2]);
          }
          narrow<KEY_SUB>(narrow_slopes, slopes[0]);
          begin_products();
          add_weighed<KEY_SUB, D, KEY_QUERIES>(dk[0], narrow_slopes, queries_at);
          end_products();
        }
      } else {
        wait_for_products<0>();
      }
      if (threadIdx.x < KEY_QUERIES) put_numbers(logs + next * KEY_QUERIES + threadIdx.x, coming);
      first = next_first;
      h = next_h;
      now = next;
    }
    wait_for_products<0>();
    hold(dk[0]);
    hold(dv[0]);
    write<D>(made_of<u16>(p, 1, b, head), dk[0], scale, scale, row, keys, lane);
    write<E>(made_of<u16>(p, 2, b, head), dv[0], 1, 1, row, keys, lane);
  }
}
