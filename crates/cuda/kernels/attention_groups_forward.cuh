// The means of values, and the logarithms of the sums of weights in two parts.
//
//   GROUPS          groups of a block of threads, each of which has 64 queries
//   BLOCKS          blocks that a multiprocessor is to hold
//   BK              keys of a tile
//   KEPT            whether registers keep the queries

#undef TN_THREADS
#define TN_THREADS (GROUPS * 128)
#undef TN_BLOCKS
#define TN_BLOCKS BLOCKS

constexpr int BQ = GROUPS * 64;

TN_KERNEL(kernel) {
  TN_SHARED(memory, 1024 + 2 * (BQ * D + STAGES * BK * (D + E)));
  u16* const tile_q = (u16*)(memory + missing(memory));
  u16* const tiles_k = tile_q + BQ * D;
  u16* const tiles_v = tiles_k + STAGES * BK * D;
  const int queries = (int)p.w[2], keys = (int)p.w[3];
  const u32 heads = (u32)p.w[1], group = (u32)p.w[4];
  const f32 given = (f32)tn::from_bits(p.w[5]), size = tn::abs(given);
  const f32 factor = factor_of(size);
  const u32 tiles = (u32)((queries + BQ - 1) / BQ), all = (u32)p.w[0] * heads * tiles;
  const int lane = threadIdx.x % 32, own = threadIdx.x / 128 * 64;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    // Those that see the most keys come first.
    const int first = (int)(tiles - 1 - block % tiles) * BQ, row = first + threadIdx.x / 32 * 16;
    const u32 b = block / tiles / heads, h = block / tiles % heads;
    const int end = sees((first + BQ < queries ? first + BQ : queries) - 1, queries, keys);
    const Head k = head_of(p, 1, b, h / group), v = head_of(p, 2, b, h / group);
    __syncthreads();
    stage<D, BQ, GROUPS>(tile_q, head_of(p, 0, b, h), first, queries);
    stage<D, BK, GROUPS>(tiles_k, k, 0, end);
    stage<E, BK, GROUPS>(tiles_v, v, 0, end);
    if (given < 0) {
      wait_for_copies();
      __syncthreads();
      for (int i = threadIdx.x; i < BQ * D; i += TN_THREADS) tile_q[i] ^= 0x8000;
    }
    const u64 q = matrix_at(tile_q + own * PANEL);
    u32 kept[KEPT ? D / 16 : 1][4];
    f32 means[1][E / 8][4], most[1][2], total[1][2];
    clear(means);
#pragma unroll
    for (int half = 0; half < 2; half++) { most[0][half] = -tn::Real<f32>::infinity(); total[0][half] = 0; }
    // What all queries of the warp see needs no look; what none of the group sees is left out.
    const int seen_by_all = sees(row, queries, keys), seen_by_any = sees(first + own + 63, queries, keys);
    int now = 0, from = 0;
    // Waits for the tile of keys from `from` on, and has the next one come.
    const auto meet = [&] {
      meet_with_copies();
      if (from + BK < end) {
        const int next = now + 1 < STAGES ? now + 1 : 0;
        stage<D, BK, GROUPS>(tiles_k + next * BK * D, k, from + BK, end);
        stage<E, BK, GROUPS>(tiles_v + next * BK * E, v, from + BK, end);
      }
    };
    f32 scores[1][BK / 8][4];
    // The weights of a tile, as the left operand of the product with its values.
    u32 weights[BK / 16][4];
    const auto multiply_keys = [&] {
      const u64 keys_at = matrix_at(tiles_k + now * BK * D);
      if constexpr (KEPT)
        set_products<BK, D, BK>(scores[0], kept, keys_at);
      else
        set_products<BK, D, BQ, BK>(scores[0], q, keys_at);
    };
    const auto weigh_tile = [&] {
      if (MASK != 0 || from + BK > seen_by_all) hide_scores<1, BK>(scores, p, b, h, size, row, from, lane);
      weigh<1, BK>(scores, means, most, total, factor);
      narrow<BK>(weights, scores[0]);
    };
    if (end > 0) {
      meet();
      if constexpr (KEPT) keep<D, BQ>(kept, tile_q + threadIdx.x / 32 * 16 * PANEL, lane);
    }
    if (seen_by_any > 0) {
      begin_products();
      multiply_keys();
      end_products();
      wait_for_products<0>();
      hold(scores[0]);
      weigh_tile();
      for (from = BK; from < seen_by_any; from += BK) {
        const u64 values_at = matrix_at(tiles_v + now * BK * E);
        now = now + 1 < STAGES ? now + 1 : 0;
        meet();
        // Scores of this tile, and means of the one before.
        begin_products();
        multiply_keys();
        add_weighed<BK, E, BK>(means[0], weights, values_at);
        end_products();
        wait_for_products<0>();
        hold(scores[0]);
        hold(means[0]);
        weigh_tile();
      }
      begin_products();
      add_weighed<BK, E, BK>(means[0], weights, matrix_at(tiles_v + now * BK * E));
      end_products();
      wait_for_products<0>();
      hold(means[0]);
    } else {
      from = BK;
    }
    // The other groups go on.
    for (; from < end; from += BK) {
      now = now + 1 < STAGES ? now + 1 : 0;
      meet();
    }
    finish<1>(p, means, most, total, b, h, size, row, lane);
  }
}
