// Attention and its gradients in tiles. The text before this one says the types and sizes:
//
//   S, C            what is in memory, and what is computed in; `load_s` and `store_s` go between them
//   D, E            the width of queries and keys, and that of values
//   BQ, BK          queries and keys of a tile
//   CAUSAL, MASK    whether later keys are hidden; 0 no mask, 1 one that hides, 2 one that is added
//   MASK_OPERAND    the number of the mask among the operands
//   OUTPUTS         the word of the first output
//
// Words: batch, heads, queries, keys, heads of queries for one of keys, scale (f64); then for each operand an address and the steps of its
// four axes; then the outputs, which lie in order.
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

struct Head {
  const S* at;
  i64 row, column;
};

// The rows of one head of an operand.
TN_FN Head head_of(const P& p, int operand, i64 b, i64 h) {
  const u64* const w = p.w + 6 + 5 * operand;
  return {(const S*)w[0] + b * (i64)w[1] + h * (i64)w[2], (i64)w[3], (i64)w[4]};
}

TN_FN C number_of(const P& p, int operand, i64 b, i64 h, i64 t) {
  const u64* const w = p.w + 6 + 5 * operand;
  return ((const C*)w[0])[b * (i64)w[1] + h * (i64)w[2] + t * (i64)w[3]];
}

// Rows of a head, transposed: element d of row r at d * pitch + r. Rows beyond the last are zeros.
template <int WIDTH, int ROWS>
TN_FN void load_across(C* to, int pitch, Head head, i64 first, i64 end, C factor) {
  for (int i = threadIdx.x; i < WIDTH * ROWS; i += 256) {
    const int r = i / WIDTH, d = i % WIDTH;
    to[d * pitch + r] = first + r < end ? load_s(head.at[(first + r) * head.row + d * head.column]) * factor : (C)0;
  }
}

// How many keys, from the first on, a query sees.
TN_FN i64 seen(i64 query, i64 queries, i64 keys) {
  if (!CAUSAL) return keys;
  const i64 more = query + 1 + keys - queries;
  return more < 0 ? 0 : more < keys ? more : keys;
}

// A score as a mask leaves it.
TN_FN C masked(const P& p, C score, i64 b, i64 h, i64 query, i64 key, i64 queries, i64 keys) {
  const C hidden = -tn::Real<C>::infinity();
  if (query >= queries || key >= keys) return hidden;
  if (CAUSAL && key >= seen(query, queries, keys)) score = hidden;
  if (MASK == 0) return score;
  const u64* const w = p.w + 6 + 5 * MASK_OPERAND;
  const i64 at = b * (i64)w[1] + h * (i64)w[2] + query * (i64)w[3] + key * (i64)w[4];
  if (MASK == 2) return score + load_s(((const S*)w[0])[at]);
  return ((const u8*)w[0])[at] ? score : hidden;
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
