// Gradients for queries, and for keys and values; weights are made again from the logarithms of their sums.

// Sets of products that go on beside the weights: none where a mask is read, which takes the registers.
constexpr int BEHIND = MASK == 0 ? 1 : 0;

TN_KERNEL(of_queries) {
  TN_SHARED(memory, 1024 + 2 * (STAYING + STAGES * COMING) * (D + E));
  u16* const tile_q = (u16*)(memory + missing(memory));
  u16* const tile_g = tile_q + STAYING * D;
  u16* const tiles_k = tile_g + STAYING * E;
  u16* const tiles_v = tiles_k + STAGES * COMING * D;
  const int queries = (int)p.w[2], keys = (int)p.w[3];
  const u32 heads = (u32)p.w[1], group = (u32)p.w[4];
  const f32 scale = (f32)tn::from_bits(p.w[5]), factor = scale * LOG2_E;
  const u32 tiles = (u32)((queries + STAYING - 1) / STAYING), all = (u32)p.w[0] * heads * tiles;
  const int lane = threadIdx.x % 32, own = threadIdx.x / 128 * 64;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    const int first = (int)(tiles - 1 - block % tiles) * STAYING, row = first + threadIdx.x / 32 * 16;
    const u32 b = block / tiles / heads, h = block / tiles % heads;
    const int end = sees((first + STAYING < queries ? first + STAYING : queries) - 1, queries, keys);
    const Head k = head_of(p, 1, b, h / group), v = head_of(p, 2, b, h / group);
    __syncthreads();
    stage<D, STAYING>(tile_q, head_of(p, 0, b, h), first, queries);
    stage<E, STAYING>(tile_g, head_of(p, 6, b, h), first, queries);
    stage<D, COMING>(tiles_k, k, 0, end);
    stage<E, COMING>(tiles_v, v, 0, end);
    Numbers numbers[1][2];
#pragma unroll
    for (int half = 0; half < 2; half++) numbers[0][half] = numbers_of(p, b, h, row + half * 8 + lane / 4, queries);
    const u64 q = matrix_at(tile_q + own * PANEL), g = matrix_at(tile_g + own * PANEL);
    f32 sums[1][D / 8][4];
    clear(sums);
    // What all queries of the warp see needs no look; what none of the group sees is left out.
    const int seen_by_all = sees(row, queries, keys), seen_by_any = sees(first + own + 63, queries, keys);
    int now = 0;
    for (int from = 0; from < end; from += COMING) {
      meet_with_copies();
      const int next = now + 1 < STAGES ? now + 1 : 0;
      if (from + COMING < end) {
        stage<D, COMING>(tiles_k + next * COMING * D, k, from + COMING, end);
        stage<E, COMING>(tiles_v + next * COMING * E, v, from + COMING, end);
      }
      if (from < seen_by_any) {
        const u64 keys_at = matrix_at(tiles_k + now * COMING * D), values_at = matrix_at(tiles_v + now * COMING * E);
        f32 scores[1][COMING / 8][4], slopes[1][COMING / 8][4];
        begin_products();
        set_products<COMING, D, STAYING, COMING>(scores[0], q, keys_at);
        end_products();
        set_products<COMING, E, STAYING, COMING>(slopes[0], g, values_at);
        end_products();
        wait_for_products<BEHIND>();
        hold(scores[0]);
        if (MASK != 2) {
#pragma unroll
          for (int n = 0; n < COMING / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) scores[0][n][i] = exp2_near(tn::fma(scores[0][n][i], factor, -numbers[0][i / 2].log));
        }
        if (MASK != 0 || from + COMING > seen_by_all) hide_weights<1, COMING>(scores, p, numbers, scale, b, h, row, from, lane);
        wait_for_products<0>();
        hold(slopes[0]);
        hold(sums[0]);
#pragma unroll
        for (int n = 0; n < COMING / 8; n++)
#pragma unroll
          for (int i = 0; i < 4; i++) slopes[0][n][i] = scores[0][n][i] * (slopes[0][n][i] - numbers[0][i / 2].shared);
        u32 weights[COMING / 16][4];
        narrow<COMING>(weights, slopes[0]);
        begin_products();
        add_weighed<COMING, D, COMING>(sums[0], weights, keys_at);
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

// Queries of a tile that are taken at once: scores and their gradients are in registers beside the sums.
constexpr int SUB = 32;

// The numbers of queries lie apart: logarithms, what they lost, what is shared.
constexpr int LOST = STAGES * COMING, SHARED = 2 * LOST;

TN_FN void put_numbers(f32* log, const Numbers& of) {
  log[0] = of.log;
  if (MASK == 2) log[LOST] = of.lost;
  log[SHARED] = of.shared;
}

TN_KERNEL(of_keys) {
  TN_SHARED(memory, 1024 + 2 * (STAYING + STAGES * COMING) * (D + E) + 12 * STAGES * COMING);
  u16* const tile_k = (u16*)(memory + missing(memory));
  u16* const tile_v = tile_k + STAYING * D;
  u16* const tiles_q = tile_v + STAYING * E;
  u16* const tiles_g = tiles_q + STAGES * COMING * D;
  f32* const logs = (f32*)(tiles_g + STAGES * COMING * E);
  const int queries = (int)p.w[2], keys = (int)p.w[3];
  const u32 group = (u32)p.w[4], groups = (u32)p.w[1] / group;
  const f32 scale = (f32)tn::from_bits(p.w[5]), factor = scale * LOG2_E;
  const u32 tiles = (u32)((keys + STAYING - 1) / STAYING), all = (u32)p.w[0] * groups * tiles;
  const int lane = threadIdx.x % 32, own = threadIdx.x / 128 * 64;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    const int from = (int)(block % tiles) * STAYING, row = from + threadIdx.x / 32 * 16;
    const u32 b = block / tiles / groups, head = block / tiles % groups;
    // The first query that sees any of them, the tiles of queries from there on, and those of all heads.
    const int first_seen = CAUSAL && from + queries > keys ? from + queries - keys : 0;
    const int begin = first_seen / COMING * COMING;
    const u32 each = begin < queries ? (u32)(queries - begin + COMING - 1) / COMING : 0, steps = each * group;
    __syncthreads();
    stage<D, STAYING>(tile_k, head_of(p, 1, b, head), from, keys);
    stage<E, STAYING>(tile_v, head_of(p, 2, b, head), from, keys);
    if (steps > 0) {
      stage<D, COMING>(tiles_q, head_of(p, 0, b, head * group), begin, queries);
      stage<E, COMING>(tiles_g, head_of(p, 6, b, head * group), begin, queries);
      if (threadIdx.x < COMING) put_numbers(logs + threadIdx.x, numbers_of(p, b, head * group, begin + threadIdx.x, queries));
    }
    const u64 k = matrix_at(tile_k + own * PANEL), v = matrix_at(tile_v + own * PANEL);
    f32 dk[1][D / 8][4], dv[1][E / 8][4];
    clear(dk);
    clear(dv);
    u32 h = head * group;
    int first = begin, now = 0;
    for (u32 step = 0; step < steps; step++) {
      meet_with_copies();
      const int next = now + 1 < STAGES ? now + 1 : 0;
      // What comes next is of the same head, or of the next one that has these keys.
      const bool turns = first + COMING >= queries;
      const int next_first = turns ? begin : first + COMING;
      const u32 next_h = turns ? h + 1 : h;
      Numbers coming = {0, 0, 0};
      if (step + 1 < steps) {
        if (threadIdx.x < COMING) coming = numbers_of(p, b, next_h, next_first + threadIdx.x, queries);
        stage<D, COMING>(tiles_q + next * COMING * D, head_of(p, 0, b, next_h), next_first, queries);
        stage<E, COMING>(tiles_g + next * COMING * E, head_of(p, 6, b, next_h), next_first, queries);
      }
      // The last query sees one of the group's keys, or none does.
      if (from + own < sees(first + COMING - 1, queries, keys)) {
        // The last key of the warp is seen by all queries: no look is needed.
        const bool hides = MASK != 0 || CAUSAL && row + 15 >= sees(first, queries, keys);
        u64 queries_at = matrix_at(tiles_q + now * COMING * D), grads_at = matrix_at(tiles_g + now * COMING * E);
        const f32* log = logs + now * COMING + lane % 4 * 2;
        // Eight rows of 128 bytes are 64 units of 16.
#pragma unroll 1
        for (int sub = 0; sub < COMING; sub += SUB, queries_at += SUB * 8, grads_at += SUB * 8, log += SUB) {
          f32 weights[1][SUB / 8][4], slopes[1][SUB / 8][4];
          u32 narrow_weights[SUB / 16][4], narrow_slopes[SUB / 16][4];
          begin_products();
          set_products<SUB, D, STAYING, COMING>(weights[0], k, queries_at);
          end_products();
          set_products<SUB, E, STAYING, COMING>(slopes[0], v, grads_at);
          end_products();
          wait_for_products<BEHIND>();
          hold(weights[0]);
          if (MASK != 2) {
#pragma unroll
            for (int n = 0; n < SUB / 8; n++) {
              const Vec<f32, 2> of = *(const Vec<f32, 2>*)(log + n * 8);
#pragma unroll
              for (int i = 0; i < 4; i++) weights[0][n][i] = exp2_near(tn::fma(weights[0][n][i], factor, -of.v[i % 2]));
            }
          }
          if (hides) hide_weights_across<SUB, LOST>(weights[0], p, log, scale, b, h, row, first + sub, lane);
          narrow<SUB>(narrow_weights, weights[0]);
          begin_products();
          add_weighed<SUB, E, COMING>(dv[0], narrow_weights, grads_at);
          end_products();
          wait_for_products<1>();
          hold(slopes[0]);
#pragma unroll
          for (int n = 0; n < SUB / 8; n++) {
            const Vec<f32, 2> shared = *(const Vec<f32, 2>*)(log + SHARED + n * 8);
#pragma unroll
            for (int i = 0; i < 4; i++) slopes[0][n][i] = weights[0][n][i] * (slopes[0][n][i] - shared.v[i % 2]);
          }
          narrow<SUB>(narrow_slopes, slopes[0]);
          begin_products();
          add_weighed<SUB, D, COMING>(dk[0], narrow_slopes, queries_at);
          end_products();
        }
      } else {
        wait_for_products<0>();
      }
      if (threadIdx.x < COMING) put_numbers(logs + next * COMING + threadIdx.x, coming);
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
