TN_KERNEL(moments) {
  __shared__ C tree[2][256];
  const idx n = (idx)p.w[2], blocks = places(p);
  for (idx block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Place x = place(p, block);
    const idx line = threadIdx.x / A, start = x.image * (idx)p.w[1];
    C mean[V], squares[V];
#pragma unroll
    for (int v = 0; v < V; v++) mean[v] = squares[v] = 0;
    if (x.at < n) {
      idx before = 0;
      for (idx row = x.first + line; row < x.last; row += D * U) {
        C values[U][V];
        const idx left = (x.last - row + D - 1) / D, more = left < U ? left : U;
#pragma unroll
        for (int u = 0; u < U; u++)
          if (u < more) read_0(p, start + row + (idx)u * D, x.at, values[u]);
#pragma unroll
        for (int v = 0; v < V; v++) {
          C sum = 0, square = 0;
#pragma unroll
          for (int u = 0; u < U; u++)
            if (u < more) sum = sum + values[u][v];
          sum = sum / (C)more;
#pragma unroll
          for (int u = 0; u < U; u++)
            if (u < more) square = tn::fma(values[u][v] - sum, values[u][v] - sum, square);
          join(before, mean[v], squares[v], more, sum, square);
        }
        before += more;
      }
    }
    // Threads of the same channels meet in the order of their pixels.
#pragma unroll
    for (int v = 0; v < V; v++) {
      tree[0][threadIdx.x] = mean[v];
      tree[1][threadIdx.x] = squares[v];
      __syncthreads();
      if (line == 0 && x.at + v < n) {
        C all = 0, off = 0;
        idx before = 0;
        for (int d = 0; d < D; d++) {
          const idx first = x.first + d, more = first < x.last ? (x.last - first + D - 1) / D : 0;
          join(before, all, off, more, tree[0][d * A + threadIdx.x], tree[1][d * A + threadIdx.x]);
          before += more;
        }
        C* const to = (C*)p.w[SCRATCH] + (i64)x.part * 2 * n + x.at + v;
        to[0] = all;
        to[n] = off;
      }
      __syncthreads();
    }
  }
}

// One block of threads a group: the statistics of its channels and parts.
TN_KERNEL(groups) {
  __shared__ C tree[2][256];
  __shared__ u64 counts[256];
  const idx pixels = (idx)p.w[1], n = (idx)p.w[2], groups = (idx)p.w[3], parts = (idx)p.w[4], each = each_of(p);
  const idx channels = n / groups, t = threadIdx.x;
  for (idx group = blockIdx.x; group < (idx)p.w[0] * groups; group += gridDim.x) {
    const idx image = group / groups, first = group % groups * channels;
    C mean = 0, squares = 0;
    u64 count = 0;
    for (idx i = t; i < channels * parts; i += 256) {
      const idx part = i / channels, begin = part * each;
      const u64 more = begin >= pixels ? 0 : begin + each < pixels ? each : pixels - begin;
      const C* const from = (const C*)p.w[SCRATCH] + (i64)(image * parts + part) * 2 * n + first + i % channels;
      join(count, mean, squares, more, from[0], from[n]);
      count += more;
    }
    tree[0][t] = mean;
    tree[1][t] = squares;
    counts[t] = count;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
      if (t < half) {
        join(counts[t], tree[0][t], tree[1][t], counts[t + half], tree[0][t + half], tree[1][t + half]);
        counts[t] += counts[t + half];
      }
      __syncthreads();
    }
    if (t == 0) {
      // No number has a mean.
      const C none = (C)counts[0] / (C)counts[0] - (C)1;
      ((C*)p.w[OUTPUTS + 1])[group] = tree[0][0] + none;
      ((C*)p.w[OUTPUTS + 2])[group] = tree[1][0] / (C)counts[0];
    }
    __syncthreads();
  }
}

TN_KERNEL(store) {
  const idx n = (idx)p.w[2], groups = (idx)p.w[3], blocks = places(p);
  const idx channels = n / groups;
  for (idx block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Place x = place(p, block);
    if (x.at >= n) continue;
    const idx line = threadIdx.x / A, start = x.image * (idx)p.w[1];
    C mean[V], by[V], bias[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
      const idx group = x.image * groups + (x.at + v) / channels;
      mean[v] = ((const C*)p.w[OUTPUTS + 1])[group];
      by[v] = inverse(p, ((const C*)p.w[OUTPUTS + 2])[group]) * number(p, SCALE, x.at + v);
      bias[v] = number(p, SCALE + 2, x.at + v);
    }
    for (idx row = x.first + line; row < x.last; row += D * U) {
      C values[U][V];
#pragma unroll
      for (int u = 0; u < U; u++)
        if (row + (idx)u * D < x.last) read_0(p, start + row + (idx)u * D, x.at, values[u]);
#pragma unroll
      for (int u = 0; u < U; u++)
        if (row + (idx)u * D < x.last) {
          Vec<S, V> z;
#pragma unroll
          for (int v = 0; v < V; v++) z.v[v] = store_s(tn::fma(values[u][v] - mean[v], by[v], bias[v]));
          *(Vec<S, V>*)((S*)p.w[OUTPUTS] + (i64)(start + row + (idx)u * D) * n + x.at) = z;
        }
    }
  }
}
