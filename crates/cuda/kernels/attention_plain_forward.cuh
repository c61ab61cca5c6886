// The means of values, and the logarithms of the sums of weights in two parts.

TN_KERNEL(kernel) {
  constexpr int W = D > E ? D : E, CO = (E + XQ - 1) / XQ;
  __shared__ C tile_q[D * BQ];
  __shared__ C tile[W * BK];
  __shared__ C weights[BK * BQ];
  __shared__ C largest[BQ];
  __shared__ C total[BQ];
  __shared__ C shrink[BQ];
  __shared__ C tree[256];
  const i64 heads = p.w[1], queries = p.w[2], keys = p.w[3], group = p.w[4];
  const u32 tiles = (u32)((queries + BQ - 1) / BQ), all = (u32)p.w[0] * (u32)heads * tiles;
  const int t = threadIdx.x, row = t / XQ, across = t % XQ;
  for (u32 block = blockIdx.x; block < all; block += gridDim.x) {
    // Those that see the most keys come first.
    const i64 first = (i64)(tiles - 1 - block % tiles) * BQ, b = block / tiles / (u32)heads, h = block / tiles % (u32)heads;
    const i64 last = (first + BQ < queries ? first + BQ : queries) - 1, end = seen(last, queries, keys);
    const Head k = head_of(p, 1, b, (u32)h / (u32)group), v = head_of(p, 2, b, (u32)h / (u32)group);
    load_across<D, BQ>(tile_q, BQ, head_of(p, 0, b, h), first, queries, (C)tn::from_bits(p.w[5]));
    if (t < BQ) { largest[t] = -tn::Real<C>::infinity(); total[t] = 0; }
    C sums[RQ][CO];
    for (int i = 0; i < RQ; i++)
      for (int j = 0; j < CO; j++) sums[i][j] = 0;
    for (i64 from = 0; from < end; from += BK) {
      load_across<D, BK>(tile, BK, k, from, end, (C)1);
      __syncthreads();
      if (t < TQ * TK) {
        const int tq = t / TK, tk = t % TK;
        C scores[RQ][RK];
        products<D>(scores, tile_q, BQ, tile, BK, tq, tk);
        for (int i = 0; i < RQ; i++)
          for (int j = 0; j < RK; j++) {
            const int r = tq * RQ + i, c = tk * RK + j;
            const i64 key = from + c < end ? from + c : keys;
            weights[c * BQ + r] = masked(p, scores[i][j], b, h, first + r, key, queries, keys);
          }
      }
      __syncthreads();
      for (int i = t; i < E * BK; i += 256) {
        const int c = i / E, e = i % E;
        tile[i] = from + c < end ? load_s(v.at[(from + c) * v.row + e * v.column]) : (C)0;
      }
      // Relative to the largest score so far; what was added up before is scaled down. NaN is passed over here, and shows in the sum.
      const int r = t / LANES, lane = t % LANES;
      const C before = largest[r];
      C most = before;
      for (int c = lane; c < BK; c += LANES) most = rows_most(most, weights[c * BQ + r]);
      most = rows_max<LANES>(most, tree);
      const C base = most == -tn::Real<C>::infinity() ? (C)0 : most, by = tn::exp(before - base);
      C sum = 0;
      for (int c = lane; c < BK; c += LANES) {
        const C weight = tn::exp(weights[c * BQ + r] - base);
        weights[c * BQ + r] = weight;
        sum = sum + weight;
      }
      sum = rows_sum<LANES>(sum, tree);
      __syncthreads();
      if (lane == 0) { largest[r] = most; total[r] = total[r] * by + sum; shrink[r] = by; }
      __syncthreads();
      for (int i = 0; i < RQ; i++)
        for (int j = 0; j < CO; j++) sums[i][j] = sums[i][j] * shrink[row * RQ + i];
      for (int c = 0; c < BK; c++)
        for (int j = 0; j < CO; j++) {
          const int e = across + j * XQ;
          const C value = E % XQ == 0 || e < E ? tile[c * E + e] : (C)0;
          for (int i = 0; i < RQ; i++) sums[i][j] = tn::fma(weights[c * BQ + row * RQ + i], value, sums[i][j]);
        }
      __syncthreads();
    }
    __syncthreads();
    const Made<S> made = made_of<S>(p, 0, b, h);
    const Made<C> logs = made_of<C>(p, 1, b, h), rests = made_of<C>(p, 2, b, h);
    for (int i = 0; i < RQ; i++) {
      const int r = row * RQ + i;
      // Nothing was seen: nothing is there to be divided.
      const C share = total[r] == 0 ? (C)0 : (C)1 / total[r];
      for (int j = 0; j < CO; j++) {
        const int e = across + j * XQ;
        if (first + r < queries && e < E) made.at[(first + r) * made.row + e] = store_s(sums[i][j] * share);
      }
    }
    if (t < BQ && first + t < queries) {
      const C log = tn::log(total[t]), sum = largest[t] + log, part = sum - largest[t];
      const C lost = (largest[t] - (sum - part)) + (log - part);
      logs.at[(first + t) * logs.row] = sum;
      // Of an infinity nothing is lost.
      rests.at[(first + t) * rests.row] = tn::abs(sum) < tn::Real<C>::infinity() ? lost : (C)0;
    }
    __syncthreads();
  }
}
