// Rows that a mask selects, in order: crates/cuda/src/emit/mask.rs has the words.
//
//   SELECTED    whether the number of each row that is selected is listed, or for each row how many are selected before it
//
// A block has 4,096 elements of the mask, a thread 16 that are neighbours.

TN_FN u32 own_of(const P& p, u64 first) {
  u32 own = 0;
  for (u64 i = first; i < first + 16 && i < p.w[0]; i++) own += is_selected(p, i);
  return own;
}

// How many each block has.
TN_FN void count_rows(const P& p) {
  u32 all;
  counts_before_thread(own_of(p, ((u64)blockIdx.x * 256 + threadIdx.x) * 16), all);
  if (threadIdx.x == 0) ((u32*)p.w[6])[blockIdx.x] = all;
}

// Each count becomes the sum of those before it, and all of them stand at the end. One block.
TN_FN void scan_counts(const P& p, const Guard& guard) {
  u32* const counts = (u32*)p.w[6];
  const u64 blocks = (p.w[0] + 4095) / 4096;
  u32 running = 0;
  for (u64 first = 0; first < blocks; first += 256) {
    const u64 i = first + threadIdx.x;
    const u32 own = i < blocks ? counts[i] : 0;
    u32 all;
    const u32 before = counts_before_thread(own, all);
    if (i < blocks) counts[i] = running + before;
    running += all;
  }
  if (threadIdx.x == 0) {
    counts[blocks] = running;
    if (CHECKED && running != p.w[8]) guard.fail(p.w[8], (i64)running);
  }
}

TN_FN void list_rows(const P& p) {
  const u64 first = ((u64)blockIdx.x * 256 + threadIdx.x) * 16;
  u32 all;
  u32 rank = ((const u32*)p.w[6])[blockIdx.x] + counts_before_thread(own_of(p, first), all);
  u32* const list = (u32*)p.w[7];
  for (u64 i = first; i < first + 16 && i < p.w[0]; i++) {
    const bool is = is_selected(p, i);
    if (!SELECTED) list[i] = rank;
    if (SELECTED && is) list[rank] = (u32)i;
    rank += is;
  }
}
