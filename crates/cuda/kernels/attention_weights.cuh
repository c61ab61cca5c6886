// Weights of attention, made again for its gradients from the logarithms of their sums. `M` is tiles of 16 queries that a warp has, `N`
// the rows of a tile of the other side.

// What a query has for all of its weights: the logarithm of their sum, with what that lost and in powers of 2 where nothing is added to
// scores; what it lost; and what is shared.
struct Numbers {
  f32 log, lost, shared;
};

TN_FN Numbers numbers_of(const P& p, u32 b, u32 h, int query, int queries) {
  if (query >= queries) return {0, 0, 0};
  const f32 log = number_of(p, 3, b, h, query);
  // A query that sees nothing has no weights: e to the power of minus infinity, not of NaN.
  const f32 given = log == -tn::Real<f32>::infinity() ? -log : log;
  const f32 lost = number_of(p, 4, b, h, query);
  if (MASK == 2) return {given, lost, number_of(p, 5, b, h, query)};
  return {tn::fma(given, LOG2_E, lost * LOG2_E), 0.0f, number_of(p, 5, b, h, query)};
}

// The weight behind a mask: of a score, where the mask is added to it, and otherwise of the weight without it.
TN_FN f32 weight_behind(const P& p, f32 x, f32 scale, const Numbers& of, u32 b, u32 h, int query, int key) {
  if (MASK == 0) return x;
  const i64 at = mask_at(p, b, h, query, key);
  if (MASK == 1) return mask_shows(p, at) ? x : 0.0f;
  return exp2_near(((tn::fma(x, scale, mask_adds(p, at)) - of.log) - of.lost) * LOG2_E);
}

// Hides weights of queries by their keys, and sees behind the mask.
template <int M, int N>
TN_FN void hide_weights(f32 (&weights)[M][N / 8][4], const P& p, const Numbers (&numbers)[M][2], f32 scale, u32 b, u32 h, int row, int from, int lane) {
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
          f32& weight = weights[m][n][2 * half + i];
          weight = key < left ? weight_behind(p, weight, scale, numbers[m][half], b, h, query, from + key) : 0.0f;
        }
    }
}

// The same where rows are keys and columns queries, from `first` on, whose numbers begin at `log` for those of a thread.
template <int N, int LOST>
TN_FN void hide_weights_across(f32 (&weights)[N / 8][4], const P& p, const f32* log, f32 scale, u32 b, u32 h, int row, int first, int lane) {
  const int queries = (int)p.w[2], keys = (int)p.w[3];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int key = row + half * 8 + lane / 4, query = first + lane % 4 * 2;
    // How many queries further the first is that sees the key.
    const int least = CAUSAL ? key + queries - keys - query : 0;
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        f32& weight = weights[n][2 * half + i];
        bool shows = n * 8 + i >= least;
        if (MASK != 0) {
          shows = shows && query + n * 8 + i < queries && key < keys;
          const Numbers of = {log[n * 8 + i], MASK == 2 ? log[LOST + n * 8 + i] : 0.0f, 0.0f};
          if (shows) weight = weight_behind(p, weight, scale, of, b, h, query + n * 8 + i, key);
        }
        weight = shows ? weight : 0.0f;
      }
  }
}
