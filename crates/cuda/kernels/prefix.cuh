// Running sums, and other joins, over the threads of a block.

// What the threads of a block before this one have, joined in their order from `unit` on; `all` is what all 256 have.
template <class T, class Join>
TN_FN T before_thread(T own, T unit, T& all, Join join) {
  __shared__ T part[256];
  const u32 t = threadIdx.x;
  part[t] = own;
  __syncthreads();
  for (u32 reach = 1; reach < 256; reach *= 2) {
    const T other = t >= reach ? part[t - reach] : unit;
    __syncthreads();
    part[t] = join(other, part[t]);
    __syncthreads();
  }
  const T before = t > 0 ? part[t - 1] : unit;
  all = part[255];
  __syncthreads();
  return before;
}

// Counts are added up.
TN_FN u32 counts_before_thread(u32 own, u32& all) {
  return before_thread(own, 0u, all, [](u32 a, u32 b) { return a + b; });
}
