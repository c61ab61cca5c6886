// What the text of row programs needs: threads that share a row bring their values together, and all of them have the result.
//
// `L` threads side by side share a row. They meet in a tree whose order follows from L alone, so every run has the same bits: by shuffles
// on a device where a warp holds a row, and through shared memory otherwise.

template <class C> TN_FN C rows_add(C a, C b) { return a + b; }

// NaN is passed over.
template <class C> TN_FN C rows_most(C a, C b) { return b > a ? b : a; }
#ifdef __CUDACC_RTC__
TN_FN f32 rows_most(f32 a, f32 b) { return ::fmaxf(a, b); }
#endif

#define TN_ROWS(name, join)                                                      \
  template <int L, class C> TN_FN C name(C x, C* tree) {                         \
    if (L == 1) return x;                                                        \
    tree[threadIdx.x] = x;                                                       \
    __syncthreads();                                                             \
    for (int half = L / 2; half > 0; half /= 2) {                                \
      if (threadIdx.x % L < half)                                                \
        tree[threadIdx.x] = join(tree[threadIdx.x], tree[threadIdx.x + half]);   \
      __syncthreads();                                                           \
    }                                                                            \
    C all = tree[threadIdx.x / L * L];                                           \
    __syncthreads();                                                             \
    return all;                                                                  \
  }
#define TN_ROWS_WARP(name, join)                                                 \
  template <int L, class C> TN_FN C name##_warp(C x) {                           \
    for (int half = L / 2; half > 0; half /= 2)                                  \
      x = join(x, __shfl_xor_sync(0xffffffffu, x, half));                        \
    return x;                                                                    \
  }

TN_ROWS(rows_sum_shared, rows_add)
TN_ROWS(rows_max_shared, rows_most)

#ifdef __CUDACC_RTC__
TN_ROWS_WARP(rows_sum, rows_add)
TN_ROWS_WARP(rows_max, rows_most)
template <int L, class C> TN_FN C rows_sum(C x, C* tree) {
  return L <= 32 ? rows_sum_warp<(L <= 32 ? L : 32)>(x) : rows_sum_shared<L>(x, tree);
}
template <int L, class C> TN_FN C rows_max(C x, C* tree) {
  return L <= 32 ? rows_max_warp<(L <= 32 ? L : 32)>(x) : rows_max_shared<L>(x, tree);
}
#else
template <int L, class C> TN_FN C rows_sum(C x, C* tree) { return rows_sum_shared<L>(x, tree); }
template <int L, class C> TN_FN C rows_max(C x, C* tree) { return rows_max_shared<L>(x, tree); }
#endif
