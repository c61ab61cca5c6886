// Attention and its gradients: where the operands lie, and what a query sees. The text before this one says the types and sizes:
//
//   S, C            what is in memory, and what is computed in; `load_s` and `store_s` go between them
//   D, E            the width of queries and keys, and that of values
//   CAUSAL, MASK    whether later keys are hidden; 0 no mask, 1 one that hides, 2 one that is added
//   MASK_OPERAND    the number of the mask among the operands
//   OUTPUTS         the word of the first output
//
// Words: batch, heads, queries, keys, heads of queries for one of keys, scale (f64); then for each operand an address and the steps of its
// four axes; then the outputs: for each an address, and the steps of batch, head and row. Elements of a row lie side by side.

struct Head {
  const S* at;
  i64 row, column;
};

// The rows of one head of an operand.
TN_FN Head head_of(const P& p, int operand, i64 b, i64 h) {
  const u64* const w = p.w + 6 + 5 * operand;
  return {(const S*)w[0] + b * (i64)w[1] + h * (i64)w[2], (i64)w[3], (i64)w[4]};
}

// The rows of one head of an output.
template <class T>
struct Made {
  T* at;
  i64 row;
};

template <class T>
TN_FN Made<T> made_of(const P& p, int output, i64 b, i64 h) {
  const u64* const w = p.w + OUTPUTS + 4 * output;
  return {(T*)w[0] + b * (i64)w[1] + h * (i64)w[2], (i64)w[3]};
}

TN_FN C number_of(const P& p, int operand, i64 b, i64 h, i64 t) {
  const u64* const w = p.w + 6 + 5 * operand;
  return ((const C*)w[0])[b * (i64)w[1] + h * (i64)w[2] + t * (i64)w[3]];
}

// How many keys, from the first on, a query sees.
TN_FN i64 seen(i64 query, i64 queries, i64 keys) {
  if (!CAUSAL) return keys;
  const i64 more = query + 1 + keys - queries;
  return more < 0 ? 0 : more < keys ? more : keys;
}

// Where the mask of a query and a key lies.
TN_FN i64 mask_at(const P& p, i64 b, i64 h, i64 query, i64 key) {
  const u64* const w = p.w + 6 + 5 * MASK_OPERAND;
  return b * (i64)w[1] + h * (i64)w[2] + query * (i64)w[3] + key * (i64)w[4];
}

// Whether a mask lets a query see a key.
TN_FN bool mask_shows(const P& p, i64 at) { return MASK != 1 || ((const u8*)p.w[6 + 5 * MASK_OPERAND])[at]; }

// What a mask adds to a score.
TN_FN C mask_adds(const P& p, i64 at) { return MASK == 2 ? load_s(((const S*)p.w[6 + 5 * MASK_OPERAND])[at]) : (C)0; }
