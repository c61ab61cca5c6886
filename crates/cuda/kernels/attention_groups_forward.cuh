// The means of values, and the logarithms of the sums of weights in two parts.

TN_KERNEL(kernel) {
  TN_SHARED(memory, 1024 + 2 * (STAYING * D + STAGES * COMING * (D + E)));
  u16* const tile_q = (u16*)(memory + missing(memory));
  u16* const tiles_k = tile_q + STAYING * D;
  u16* const tiles_v = tiles_k + STAGES * COMING * D;
  const int queries = (int)p.w[2], keys = (int)p.w[3];
  const u32 heads = (u32)p.w[1], group = (u32)p.w[4];
  const f32 given = (f32)tn::from_bits(p.w[5]), size = tn::abs(given);
  const f32 factor = factor_of(size);
  const u32 tiles = (u32)((queries + STAYING - 1) / STAYING), all = (u32)p.w[0] * heads * tiles;
  const int lane = threadIdx.x % 32, own = threadIdx.x / 128 * 64;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    // Those that see the most keys come first.
    const int first = (int)(tiles - 1 - block % tiles) * STAYING, row = first + threadIdx.x / 32 * 16;
    const u32 b = block / tiles / heads, h = block / tiles % heads;
    const int end = sees((first + STAYING < queries ? first + STAYING : queries) - 1, queries, keys);
    const Head k = head_of(p, 1, b, h / group), v = head_of(p, 2, b, h / group);
    __syncthreads();
    stage<D, STAYING>(tile_q, head_of(p, 0, b, h), first, queries);
    stage<D, COMING>(tiles_k, k, 0, end);
    stage<E, COMING>(tiles_v, v, 0, end);
    if (given < 0) {
      wait_for_copies();
      __syncthreads();
      for (int i = threadIdx.x; i < STAYING * D; i += TN_THREADS) tile_q[i] ^= 0x8000;
    }
    const u64 q = matrix_at(tile_q + own * PANEL);
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
      if (from + COMING < end) {
        const int next = now + 1 < STAGES ? now + 1 : 0;
        stage<D, COMING>(tiles_k + next * COMING * D, k, from + COMING, end);
        stage<E, COMING>(tiles_v + next * COMING * E, v, from + COMING, end);
      }
    };
    f32 scores[1][COMING / 8][4];
    // The weights of a tile, as the left operand of the product with its values.
    u32 weights[COMING / 16][4];
    const auto multiply_keys = [&] {
      const u64 keys_at = matrix_at(tiles_k + now * COMING * D);
      set_products<COMING, D, STAYING, COMING>(scores[0], q, keys_at);
    };
    const auto weigh_tile = [&] {
      if (MASK != 0 || from + COMING > seen_by_all) hide_scores<1, COMING>(scores, p, b, h, size, row, from, lane);
      weigh<1, COMING>(scores, means, most, total, factor);
      narrow<COMING>(weights, scores[0]);
    };
    if (end > 0) meet();
    if (seen_by_any > 0) {
      begin_products();
      multiply_keys();
      end_products();
      wait_for_products<0>();
      hold(scores[0]);
      weigh_tile();
      for (from = COMING; from < seen_by_any; from += COMING) {
        const u64 values_at = matrix_at(tiles_v + now * COMING * E);
        now = now + 1 < STAGES ? now + 1 : 0;
        meet();
        // Scores of this tile, and means of the one before.
        begin_products();
        multiply_keys();
        add_weighed<COMING, E, COMING>(means[0], weights, values_at);
        end_products();
        wait_for_products<0>();
        hold(scores[0]);
        hold(means[0]);
        weigh_tile();
      }
      begin_products();
      add_weighed<COMING, E, COMING>(means[0], weights, matrix_at(tiles_v + now * COMING * E));
      end_products();
      wait_for_products<0>();
      hold(means[0]);
    } else {
      from = COMING;
    }
    // The other groups go on.
    for (; from < end; from += COMING) {
      now = now + 1 < STAGES ? now + 1 : 0;
      meet();
    }
    finish<1>(p, means, most, total, b, h, size, row, lane);
  }
}
