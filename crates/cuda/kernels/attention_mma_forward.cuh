// The means of values, and the logarithms of the sums of weights in two parts.
//
//   M               tiles of 16 queries that a warp has
//   BK, STAGES      keys of a tile, and how many of these there are

#undef TN_BLOCKS
#define TN_BLOCKS 1

constexpr int BQ = WARPS * 16 * M;
// Whether a warp keeps its queries in registers.
constexpr bool KEPT = DP <= 64;
// How large weights may become, as a power of 2, before sums are scaled down: f16 holds 2^15.
constexpr f32 LATE = 6;

TN_KERNEL(kernel) {
  TN_SHARED(shared, 2 * (BQ * PD + STAGES * BK * (PD + PE)));
  u16* const tile_q = (u16*)shared;
  u16* const tiles_k = tile_q + BQ * PD;
  u16* const tiles_v = tiles_k + STAGES * BK * PD;
  const int queries = (int)p.w[2], keys = (int)p.w[3];
  const u32 heads = (u32)p.w[1], group = (u32)p.w[4];
  const f32 given = (f32)tn::from_bits(p.w[5]), size = tn::abs(given);
  // What scores are multiplied by for powers of 2: the sign is that of the queries. Of 0 it is the least number, for hidden scores stay
  // infinite.
  const f32 factor = MASK == 2 ? LOG2_E : larger(size * LOG2_E, 1.17549435e-38f);
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
      if (MASK != 0 || from + BK > seen_by_all) {
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
          for (int half = 0; half < 2; half++) {
            int query = first + own + m * 16 + half * 8 + lane / 4;
            if (query >= queries) query = queries - 1;
            const int left = sees(query, queries, keys) - from;
#pragma unroll
            for (int n = 0; n < BK / 8; n++)
#pragma unroll
              for (int i = 0; i < 2; i++) {
                const int key = n * 8 + lane % 4 * 2 + i;
                f32& score = scores[m][n][2 * half + i];
                bool shows = key < left;
                if (MASK != 0 && shows) {
                  const i64 at = mask_at(p, b, h, query, from + key);
                  shows = mask_shows(p, at);
                  if (MASK == 2) score = tn::fma(score, size, mask_adds(p, at));
                }
                if (!shows) score = -tn::Real<f32>::infinity();
              }
          }
      }
      // Relative to the largest score so far, or to one that is not much less: only where it is much less is what was added up before scaled
      // down. NaN is passed over here, and shows in the sum.
      f32 largest[M][2];
      bool grew = false;
#pragma unroll
      for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          f32 most_here = scores[m][0][2 * half];
#pragma unroll
          for (int n = 0; n < BK / 8; n++) most_here = larger(most_here, larger(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
          most_here = larger(most_here, from_other(most_here, 1));
          largest[m][half] = larger(most_here, from_other(most_here, 2));
          grew = grew || (largest[m][half] - most[m][half]) * factor > LATE;
        }
      if (any_of_warp(grew)) {
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
          for (int half = 0; half < 2; half++) {
            const f32 next = larger(most[m][half], largest[m][half]);
            const f32 by = most[m][half] == next ? 1.0f : exp2_near((most[m][half] - next) * factor);
            most[m][half] = next;
            total[m][half] = total[m][half] * by;
#pragma unroll
            for (int n = 0; n < EP / 8; n++) {
              means[m][n][2 * half] = means[m][n][2 * half] * by;
              means[m][n][2 * half + 1] = means[m][n][2 * half + 1] * by;
            }
          }
      }
#pragma unroll
      for (int m = 0; m < M; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const f32 base = most[m][half] == -tn::Real<f32>::infinity() ? 0.0f : most[m][half] * factor;
#pragma unroll
          for (int n = 0; n < BK / 8; n++)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
              scores[m][n][i] = exp2_near(tn::fma(scores[m][n][i], factor, -base));
              total[m][half] = total[m][half] + scores[m][n][i];
            }
        }
      add_weighed<M, BK, E>(means, scores, tiles_v + now * BK * PE + left_at(lane, PE));
      if (STAGES == 1 && from + BK < end) {
        __syncthreads();
        stage<D, BK>(tiles_k, k, from + BK, end);
        stage<E, BK>(tiles_v, v, from + BK, end);
      }
    }
    const Made<u16> means_at = made_of<u16>(p, 0, b, h);
    const Made<f32> logs = made_of<f32>(p, 1, b, h), rests = made_of<f32>(p, 2, b, h);
#pragma unroll
    for (int m = 0; m < M; m++) {
      f32 share[2];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        f32 sum = total[m][half];
        sum = sum + from_other(sum, 1);
        sum = sum + from_other(sum, 2);
        // Nothing was seen: nothing is there to be divided.
        share[half] = sum == 0 ? 0.0f : 1.0f / sum;
        const int query = first + own + m * 16 + half * 8 + lane / 4;
        if (lane % 4 != 0 || query >= queries) continue;
        const f32 log = tn::log(sum), largest = sum == 0 || MASK == 2 ? most[m][half] : most[m][half] * size;
        const f32 both = largest + log, part = both - largest;
        const f32 lost = (largest - (both - part)) + (log - part);
        logs.at[query * logs.row] = both;
        // Of an infinity nothing is lost.
        rests.at[query * rests.row] = tn::abs(both) < tn::Real<f32>::infinity() ? lost : 0.0f;
      }
      write<E>(means_at, means[m], share[0], share[1], first + own + m * 16, queries, lane);
    }
  }
}
