// The means of values, and the logarithms of the sums of weights in two parts.
//
//   M               tiles of 16 queries that a warp has
//   BK, STAGES      keys of a tile, and how many of these there are

#undef TN_BLOCKS
#define TN_BLOCKS 1

constexpr int BQ = WARPS * 16 * M;
// Whether a warp keeps its queries in registers.
constexpr bool KEPT = DP <= 64;

TN_KERNEL(kernel) {
  TN_SHARED(shared, 2 * (BQ * PD + STAGES * BK * (PD + PE)));
  u16* const tile_q = (u16*)shared;
  u16* const tiles_k = tile_q + BQ * PD;
  u16* const tiles_v = tiles_k + STAGES * BK * PD;
  const int queries = (int)p.w[2], keys = (int)p.w[3];
  const u32 heads = (u32)p.w[1], group = (u32)p.w[4];
  const f32 given = (f32)tn::from_bits(p.w[5]), size = tn::abs(given);
  const f32 factor = factor_of(size);
  const u32 tiles = (u32)((queries + BQ - 1) / BQ), all = (u32)p.w[0] * heads * tiles;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, own = warp * 16 * M;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    // Those that see the most keys come first.
    const int first = (int)(tiles - 1 - block % tiles) * BQ;
    const u32 b = block / tiles / heads, h = block / tiles % heads;
    const int last = (first + BQ < queries ? first + BQ : queries) - 1, end = sees(last, queries, keys);
    const Head k = head_of(p, 1, b, h / group), v = head_of(p, 2, b, h / group);
    __syncthreads();
    stage<D, BQ>(tile_q, head_of(p, 0, b, h), first, queries);
    stage<D, BK>(tiles_k, k, 0, end);
    stage<E, BK>(tiles_v, v, 0, end);
    wait_for_copies();
    __syncthreads();
    if (given < 0) {
      for (int i = threadIdx.x; i < BQ * PD; i += TN_THREADS) tile_q[i] ^= 0x8000;
      __syncthreads();
    }
    const u16* const q = tile_q + own * PD + left_at(lane, PD);
    u32 kept[M][KEPT ? DP / 16 : 1][4];
    if constexpr (KEPT) keep<M, D>(kept, q);
    f32 means[M][EP / 8][4], most[M][2], total[M][2];
    clear(means);
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int half = 0; half < 2; half++) { most[m][half] = -tn::Real<f32>::infinity(); total[m][half] = 0; }
    // What all queries of the warp see needs no look.
    const int seen_by_all = sees(first + own, queries, keys);
    int step = 0;
    for (int from = 0; from < end; from += BK, step++) {
      wait_for_copies();
      __syncthreads();
      const int now = step % STAGES, next = (step + 1) % STAGES;
      if (STAGES > 1 && from + BK < end) {
        stage<D, BK>(tiles_k + next * BK * PD, k, from + BK, end);
        stage<E, BK>(tiles_v + next * BK * PE, v, from + BK, end);
      }
      f32 scores[M][BK / 8][4];
      clear(scores);
      add_products<M, BK, D, KEPT>(scores, kept, q, tiles_k + now * BK * PD + right_at(lane, PD));
      if (MASK != 0 || from + BK > seen_by_all) hide_scores<M, BK>(scores, p, b, h, size, first + own, from, lane);
      weigh<M, BK>(scores, means, most, total, factor);
      add_weighed<M, BK, E>(means, scores, tiles_v + now * BK * PE + left_at(lane, PE));
      if (STAGES == 1 && from + BK < end) {
        __syncthreads();
        stage<D, BK>(tiles_k, k, from + BK, end);
        stage<E, BK>(tiles_v, v, from + BK, end);
      }
    }
    finish<M>(p, means, most, total, b, h, size, first + own, lane);
  }
}
