// What becomes of a tile of scores in attention: hidden ones, weights, the largest so far, and the results of a query. `M` is tiles of 16
// queries that a warp has, `N` keys of a tile.

// How large weights may become, as a power of 2, before sums are scaled down: f16 holds 2^15.
constexpr f32 LATE = 6;

// What scores are multiplied by for powers of 2: the sign is that of the queries. Of 0 it is the least number, for hidden scores stay
// infinite.
TN_FN f32 factor_of(f32 size) { return MASK == 2 ? LOG2_E : larger(size * LOG2_E, 1.17549435e-38f); }

// Sets scores of keys that a query does not see to minus infinity, and adds a mask to those that it does.
template <int M, int N>
TN_FN void hide_scores(f32 (&scores)[M][N / 8][4], const P& p, u32 b, u32 h, f32 size, int row, int from, int lane) {
  const int queries = (int)p.w[2], keys = (int)p.w[3];
#pragma unroll
  for (int m = 0; m < M; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int query = row + m * 16 + half * 8 + lane / 4;
      if (query >= queries) query = queries - 1;
      const int left = sees(query, queries, keys) - from;
#pragma unroll
      for (int n = 0; n < N / 8; n++)
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

// Makes weights of scores, relative to the largest score so far, or to one that is not much less: only where it is much less is what was
// added up before scaled down. NaN is passed over here, and shows in the sum.
template <int M, int N>
TN_FN void weigh(f32 (&scores)[M][N / 8][4], f32 (&means)[M][EP / 8][4], f32 (&most)[M][2], f32 (&total)[M][2], f32 factor) {
  f32 largest[M][2];
  bool grew = false;
#pragma unroll
  for (int m = 0; m < M; m++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      f32 most_here = scores[m][0][2 * half];
#pragma unroll
      for (int n = 0; n < N / 8; n++) most_here = larger(most_here, larger(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
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
      for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; i++) {
          scores[m][n][i] = exp2_near(tn::fma(scores[m][n][i], factor, -base));
          total[m][half] = total[m][half] + scores[m][n][i];
        }
    }
}

// Writes the means of queries from `row` on, and the logarithms of the sums of their weights in two parts.
template <int M>
TN_FN void finish(const P& p, const f32 (&means)[M][EP / 8][4], const f32 (&most)[M][2], const f32 (&total)[M][2], u32 b, u32 h, f32 size, int row, int lane) {
  const int queries = (int)p.w[2];
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
      const int query = row + m * 16 + half * 8 + lane / 4;
      if (lane % 4 != 0 || query >= queries) continue;
      const f32 log = tn::log(sum), largest = sum == 0 || MASK == 2 ? most[m][half] : most[m][half] * size;
      const f32 both = largest + log, part = both - largest;
      const f32 lost = (largest - (both - part)) + (log - part);
      logs.at[query * logs.row] = both;
      // Of an infinity nothing is lost.
      rests.at[query * rests.row] = tn::abs(both) < tn::Real<f32>::infinity() ? lost : 0.0f;
    }
    write<E>(means_at, means[m], share[0], share[1], row + m * 16, queries, lane);
  }
}
