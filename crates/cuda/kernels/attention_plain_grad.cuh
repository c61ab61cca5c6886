// Gradients for queries, and for keys and values; weights are made again from the logarithms of their sums.

// The weights of a tile and the gradients of its scores, without the scale. The tiles are transposed and padded; `lse`, `lost` and `shared`
// are of the tile's queries.
TN_FN void slopes_of(const P& p, const C* q, const C* g, const C* k, const C* v, const C* lse, const C* lost, const C* shared,
                     C* weights, C* slopes, i64 b, i64 h, i64 first, i64 from, i64 queries, i64 keys) {
  const int t = threadIdx.x;
  if (t < TQ * TK) {
    const int tq = t / TK, tk = t % TK;
    C scores[RQ][RK], means[RQ][RK];
    products<D>(scores, q, PQ, k, PK, tq, tk);
    products<E>(means, g, PQ, v, PK, tq, tk);
    for (int i = 0; i < RQ; i++)
      for (int j = 0; j < RK; j++) {
        const int r = tq * RQ + i, c = tk * RK + j;
        const C score = masked(p, scores[i][j], b, h, first + r, from + c, queries, keys);
        const C weight = tn::exp((score - lse[r]) - lost[r]);
        // Of a score that is not there no infinity counts.
        const bool there = first + r < queries && from + c < keys;
        weights[c * BQ + r] = there ? weight : (C)0;
        slopes[c * BQ + r] = there ? weight * (means[i][j] - shared[r]) : (C)0;
      }
  }
}

TN_FN void load_numbers(const P& p, C* lse, C* lost, C* shared, i64 b, i64 h, i64 first, i64 queries) {
  const int t = threadIdx.x;
  if (t < BQ) {
    const bool there = first + t < queries;
    const C log = there ? number_of(p, 3, b, h, first + t) : (C)0;
    // A query that sees nothing has no weights: e to the power of minus infinity, not of NaN.
    lse[t] = log == -tn::Real<C>::infinity() ? -log : log;
    lost[t] = there ? number_of(p, 4, b, h, first + t) : (C)0;
    shared[t] = there ? number_of(p, 5, b, h, first + t) : (C)0;
  }
}

#define TN_TILES                                              \
  __shared__ C q[D * PQ];                                     \
  __shared__ C g[E * PQ];                                     \
  __shared__ C k[D * PK];                                     \
  __shared__ C v[E * PK];                                     \
  __shared__ C weights[BK * BQ];                              \
  __shared__ C slopes[BK * BQ];                               \
  __shared__ C lse[BQ];                                       \
  __shared__ C lost[BQ];                                      \
  __shared__ C shared[BQ];                                    \
  const i64 batch = p.w[0], heads = p.w[1], queries = p.w[2], keys = p.w[3], group = p.w[4]; \
  const C scale = (C)tn::from_bits(p.w[5]);

TN_KERNEL(of_queries) {
  constexpr int CO = (D + XQ - 1) / XQ;
  TN_TILES
  const u32 tiles = (u32)((queries + BQ - 1) / BQ), all = (u32)batch * (u32)heads * tiles;
  const int t = threadIdx.x, row = t / XQ, across = t % XQ;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    const i64 first = (i64)(tiles - 1 - block % tiles) * BQ, b = block / tiles / (u32)heads, h = block / tiles % (u32)heads;
    const i64 last = (first + BQ < queries ? first + BQ : queries) - 1, end = seen(last, queries, keys);
    load_across<D, BQ>(q, PQ, head_of(p, 0, b, h), first, queries, scale);
    load_across<E, BQ>(g, PQ, head_of(p, 6, b, h), first, queries, (C)1);
    load_numbers(p, lse, lost, shared, b, h, first, queries);
    C sums[RQ][CO];
    for (int i = 0; i < RQ; i++)
      for (int j = 0; j < CO; j++) sums[i][j] = 0;
    for (i64 from = 0; from < end; from += BK) {
      load_across<D, BK>(k, PK, head_of(p, 1, b, (u32)h / (u32)group), from, keys, (C)1);
      load_across<E, BK>(v, PK, head_of(p, 2, b, (u32)h / (u32)group), from, keys, (C)1);
      __syncthreads();
      slopes_of(p, q, g, k, v, lse, lost, shared, weights, slopes, b, h, first, from, queries, keys);
      __syncthreads();
      for (int c = 0; c < BK; c++)
        for (int j = 0; j < CO; j++) {
          const int d = across + j * XQ;
          const C value = D % XQ == 0 || d < D ? k[d * PK + c] : (C)0;
          for (int i = 0; i < RQ; i++) sums[i][j] = tn::fma(slopes[c * BQ + row * RQ + i], value, sums[i][j]);
        }
      __syncthreads();
    }
    const Made<S> made = made_of<S>(p, 0, b, h);
    for (int i = 0; i < RQ; i++)
      for (int j = 0; j < CO; j++) {
        const int r = row * RQ + i, d = across + j * XQ;
        if (first + r < queries && d < D) made.at[(first + r) * made.row + d] = store_s(sums[i][j] * scale);
      }
    __syncthreads();
  }
}

TN_KERNEL(of_keys) {
  constexpr int CD = (D + XK - 1) / XK, CE = (E + XK - 1) / XK;
  TN_TILES
  const u32 groups = (u32)heads / (u32)group, tiles = (u32)((keys + BK - 1) / BK), all = (u32)batch * groups * tiles;
  const int t = threadIdx.x, row = t / XK, across = t % XK;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    const i64 from = (i64)(block % tiles) * BK, b = block / tiles / groups, of_keys = block / tiles % groups;
    load_across<D, BK>(k, PK, head_of(p, 1, b, of_keys), from, keys, (C)1);
    load_across<E, BK>(v, PK, head_of(p, 2, b, of_keys), from, keys, (C)1);
    C dk[RK][CD], dv[RK][CE];
    for (int i = 0; i < RK; i++) {
      for (int j = 0; j < CD; j++) dk[i][j] = 0;
      for (int j = 0; j < CE; j++) dv[i][j] = 0;
    }
    // The first query that sees any of them.
    const i64 sees = CAUSAL && from + queries > keys ? from + queries - keys : 0;
    for (i64 h = of_keys * group; h < (of_keys + 1) * group; h++)
      for (i64 first = sees / BQ * BQ; first < queries; first += BQ) {
        load_across<D, BQ>(q, PQ, head_of(p, 0, b, h), first, queries, scale);
        load_across<E, BQ>(g, PQ, head_of(p, 6, b, h), first, queries, (C)1);
        load_numbers(p, lse, lost, shared, b, h, first, queries);
        __syncthreads();
        slopes_of(p, q, g, k, v, lse, lost, shared, weights, slopes, b, h, first, from, queries, keys);
        __syncthreads();
        for (int r = 0; r < BQ; r++) {
          for (int j = 0; j < CD; j++) {
            const int d = across + j * XK;
            const C value = D % XK == 0 || d < D ? q[d * PQ + r] : (C)0;
            for (int i = 0; i < RK; i++) dk[i][j] = tn::fma(slopes[(row * RK + i) * BQ + r], value, dk[i][j]);
          }
          for (int j = 0; j < CE; j++) {
            const int e = across + j * XK;
            const C value = E % XK == 0 || e < E ? g[e * PQ + r] : (C)0;
            for (int i = 0; i < RK; i++) dv[i][j] = tn::fma(weights[(row * RK + i) * BQ + r], value, dv[i][j]);
          }
        }
        __syncthreads();
      }
    const Made<S> made_k = made_of<S>(p, 1, b, of_keys), made_v = made_of<S>(p, 2, b, of_keys);
    for (int i = 0; i < RK; i++) {
      const int c = row * RK + i;
      for (int j = 0; j < CD; j++) {
        const int d = across + j * XK;
        if (from + c < keys && d < D) made_k.at[(from + c) * made_k.row + d] = store_s(dk[i][j]);
      }
      for (int j = 0; j < CE; j++) {
        const int e = across + j * XK;
        if (from + c < keys && e < E) made_v.at[(from + c) * made_v.row + e] = store_s(dv[i][j]);
      }
    }
    __syncthreads();
  }
}
