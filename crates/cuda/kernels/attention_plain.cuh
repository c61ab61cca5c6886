// Attention in plain sums, for floats that are computed in as they are; of tiles:
//
//   BQ, BK          queries and keys of a tile
//
// A block of threads goes through tiles of keys for a tile of queries, or the other way around. Tiles lie in shared memory; a thread adds up
// its part of the results in registers. Sums are added up in an order that follows from the sizes alone: two runs have the same bits.

#undef TN_BLOCKS
#define TN_BLOCKS 1

// The largest power of 2 of rows for a thread with 16 rows of threads, at least one.
constexpr int RQ = BQ >= 16 ? BQ / 16 : 1, RK = BK >= 16 ? BK / 16 : 1;
// Threads along queries and keys of a tile of scores, and those that share rows of a result.
constexpr int TQ = BQ / RQ, TK = BK / RK, XQ = 256 / TQ, XK = 256 / TK;
// Threads that share a query while its scores are weighed.
constexpr int LANES = 256 / BQ;
// Tiles are padded where threads side by side read different rows of them.
constexpr int PQ = BQ + 1, PK = BK + 1;

// Rows of a head, transposed: element d of row r at d * pitch + r. Rows beyond the last are zeros.
template <int WIDTH, int ROWS>
TN_FN void load_across(C* to, int pitch, Head head, i64 first, i64 end, C factor) {
  for (int i = threadIdx.x; i < WIDTH * ROWS; i += 256) {
    const int r = i / WIDTH, d = i % WIDTH;
    to[d * pitch + r] = first + r < end ? load_s(head.at[(first + r) * head.row + d * head.column]) * factor : (C)0;
  }
}

// A score as masks leave it.
TN_FN C masked(const P& p, C score, i64 b, i64 h, i64 query, i64 key, i64 queries, i64 keys) {
  const C hidden = -tn::Real<C>::infinity();
  if (query >= queries || key >= keys) return hidden;
  if (CAUSAL && key >= seen(query, queries, keys)) score = hidden;
  if (MASK == 0) return score;
  const i64 at = mask_at(p, b, h, query, key);
  return mask_shows(p, at) ? score + mask_adds(p, at) : hidden;
}

// Products of a tile of queries with one of keys, both transposed.
template <int WIDTH>
TN_FN void products(C (&sums)[RQ][RK], const C* left, int left_pitch, const C* right, int right_pitch, int tq, int tk) {
  for (int i = 0; i < RQ; i++)
    for (int j = 0; j < RK; j++) sums[i][j] = 0;
  for (int d = 0; d < WIDTH; d++)
    for (int i = 0; i < RQ; i++)
      for (int j = 0; j < RK; j++)
        sums[i][j] = tn::fma(left[d * left_pitch + tq * RQ + i], right[d * right_pitch + tk * RK + j], sums[i][j]);
}
