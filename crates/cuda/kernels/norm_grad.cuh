// Means and variances: an address, and the steps of images and groups.
TN_FN C statistic(const P& p, int word, idx image, idx group) {
  return ((const C*)p.w[word])[(i64)image * (i64)p.w[word + 1] + (i64)group * (i64)p.w[word + 2]];
}

// Two sums for each channel of a part: of `g` times what is normalized, and of `g`.
TN_KERNEL(sums) {
  __shared__ C tree[2][256];
  const idx n = (idx)p.w[2], channels = n / (idx)p.w[3], blocks = places(p);
  for (idx block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Place x = place(p, block);
    const idx line = threadIdx.x / A, start = x.image * (idx)p.w[1];
    C mean[V], by[V], products[V], plain[V];
#pragma unroll
    for (int v = 0; v < V; v++) products[v] = plain[v] = mean[v] = by[v] = 0;
    if (x.at < n) {
#pragma unroll
      for (int v = 0; v < V; v++) {
        const idx group = (x.at + v) / channels;
        mean[v] = statistic(p, STATISTICS, x.image, group);
        by[v] = inverse(p, statistic(p, STATISTICS + 3, x.image, group));
      }
      for (idx row = x.first + line; row < x.last; row += D * U) {
        C values[U][V], slopes[U][V];
#pragma unroll
        for (int u = 0; u < U; u++)
          if (row + (idx)u * D < x.last) {
            read_0(p, start + row + (idx)u * D, x.at, values[u]);
            read_1(p, start + row + (idx)u * D, x.at, slopes[u]);
          }
#pragma unroll
        for (int u = 0; u < U; u++)
          if (row + (idx)u * D < x.last)
#pragma unroll
            for (int v = 0; v < V; v++) {
              products[v] = tn::fma(values[u][v] - mean[v], slopes[u][v], products[v]);
              plain[v] = plain[v] + slopes[u][v];
            }
      }
    }
#pragma unroll
    for (int v = 0; v < V; v++) {
      tree[0][threadIdx.x] = products[v];
      tree[1][threadIdx.x] = plain[v];
      __syncthreads();
      if (line == 0 && x.at + v < n) {
        C product = 0, sum = 0;
        for (int d = 0; d < D; d++) {
          product = product + tree[0][d * A + threadIdx.x];
          sum = sum + tree[1][d * A + threadIdx.x];
        }
        C* const to = (C*)p.w[SCRATCH] + (i64)x.part * 2 * n + x.at + v;
        to[0] = product * by[v];
        to[n] = sum;
      }
      __syncthreads();
    }
  }
}

// The sums of an image: of its parts, in order.
TN_KERNEL(images) {
  const idx n = (idx)p.w[2], parts = (idx)p.w[4], all = (idx)p.w[0] * 2 * n;
  for (idx i = (idx)blockIdx.x * 256 + threadIdx.x; i < all; i += (idx)gridDim.x * 256) {
    const idx image = i / (2 * n), at = i % (2 * n);
    C sum = 0;
    for (idx part = 0; part < parts; part++) sum = sum + ((const C*)p.w[SCRATCH])[(i64)(image * parts + part) * 2 * n + at];
    ((C*)p.w[SCRATCH + 1])[i] = sum;
  }
}

// One block of threads a group: what its elements lose for the mean and for the deviation.
TN_KERNEL(groups) {
  __shared__ C tree[2][256];
  const idx n = (idx)p.w[2], groups = (idx)p.w[3], channels = n / groups, t = threadIdx.x;
  for (idx group = blockIdx.x; group < (idx)p.w[0] * groups; group += gridDim.x) {
    const idx image = group / groups, first = group % groups * channels;
    C products = 0, plain = 0;
    for (idx i = t; i < channels; i += 256) {
      const C* const from = (const C*)p.w[SCRATCH + 1] + (i64)image * 2 * n + first + i;
      const C scale = number(p, SCALE, first + i);
      products = products + from[0] * scale;
      plain = plain + from[n] * scale;
    }
    tree[0][t] = products;
    tree[1][t] = plain;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
      if (t < half) {
        tree[0][t] = tree[0][t] + tree[0][t + half];
        tree[1][t] = tree[1][t] + tree[1][t + half];
      }
      __syncthreads();
    }
    if (t == 0) {
      const C share = (C)1 / (C)((u64)channels * (u64)p.w[1]);
      C* const to = (C*)p.w[SCRATCH + 2] + (i64)group * 2;
      to[0] = tree[0][0] * share;
      to[1] = tree[1][0] * share;
    }
    __syncthreads();
  }
}

// The gradients of scale and bias: sums over images, in order.
TN_KERNEL(finish) {
  const idx n = (idx)p.w[2], images = (idx)p.w[0];
  for (idx i = (idx)blockIdx.x * 256 + threadIdx.x; i < 2 * n; i += (idx)gridDim.x * 256) {
    C sum = 0;
    for (idx image = 0; image < images; image++) sum = sum + ((const C*)p.w[SCRATCH + 1])[(i64)image * 2 * n + i];
    ((S*)p.w[i < n ? OUTPUTS + 1 : OUTPUTS + 2])[i % n] = store_s(sum);
  }
}

TN_KERNEL(store) {
  const idx n = (idx)p.w[2], groups = (idx)p.w[3], channels = n / groups, blocks = places(p);
  for (idx block = blockIdx.x; block < blocks; block += gridDim.x) {
    const Place x = place(p, block);
    if (x.at >= n) continue;
    const idx line = threadIdx.x / A, start = x.image * (idx)p.w[1];
    C mean[V], by[V], scale[V], for_mean[V], for_deviation[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
      const idx group = (x.at + v) / channels;
      const C* const lost = (const C*)p.w[SCRATCH + 2] + (i64)(x.image * groups + group) * 2;
      mean[v] = statistic(p, STATISTICS, x.image, group);
      by[v] = inverse(p, statistic(p, STATISTICS + 3, x.image, group));
      scale[v] = number(p, SCALE, x.at + v);
      for_deviation[v] = lost[0];
      for_mean[v] = lost[1];
    }
    for (idx row = x.first + line; row < x.last; row += D * U) {
      C values[U][V], slopes[U][V];
#pragma unroll
      for (int u = 0; u < U; u++)
        if (row + (idx)u * D < x.last) {
          read_0(p, start + row + (idx)u * D, x.at, values[u]);
          read_1(p, start + row + (idx)u * D, x.at, slopes[u]);
        }
#pragma unroll
      for (int u = 0; u < U; u++)
        if (row + (idx)u * D < x.last) {
          Vec<S, V> z;
#pragma unroll
          for (int v = 0; v < V; v++) {
            const C normal = (values[u][v] - mean[v]) * by[v];
            const C along = tn::fma(normal, for_deviation[v], for_mean[v]);
            z.v[v] = store_s((slopes[u][v] * scale[v] - along) * by[v]);
          }
          *(Vec<S, V>*)((S*)p.w[OUTPUTS] + (i64)(start + row + (idx)u * D) * n + x.at) = z;
        }
    }
  }
}
