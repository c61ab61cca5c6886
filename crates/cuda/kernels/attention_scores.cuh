// Scores of 16-bit floats in the accumulators of a warp's products, 16 rows each: what attention by `mma.sync` and by `wgmma` have in common.
//
//   BF16            which of the two floats it is
//   ALIGNED         whether rows of all operands lie at multiples of 16 bytes

constexpr f32 LOG2_E = 1.44269504088896340736f;

// How many keys a query sees, as `seen`: lengths have 31 bits here, for registers are few.
TN_FN int sees(int query, int queries, int keys) {
  if (!CAUSAL) return keys;
  const int more = query + 1 + keys - queries;
  return more < 0 ? 0 : more < keys ? more : keys;
}

// Products take sixteen columns at once.
constexpr int filled(int width) { return (width + 15) / 16 * 16; }
constexpr int DP = filled(D), EP = filled(E);

template <int M, int N>
TN_FN void clear(f32 (&sums)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; m++)
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) sums[m][n][i] = 0;
}

// Writes 16 rows of sums times a factor for each half: those from `row` on that are below `end`.
template <int WIDTH>
TN_FN void write(const Made<u16>& to, const f32 (&sums)[filled(WIDTH) / 8][4], f32 upper, f32 lower, int row, int end, int lane) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int r = row + lane / 4 + half * 8;
    const f32 by = half ? lower : upper;
#pragma unroll
    for (int n = 0; n < filled(WIDTH) / 8; n++) {
      const int e = n * 8 + lane % 4 * 2;
      const u32 both = pack<BF16>(sums[n][2 * half] * by, sums[n][2 * half + 1] * by);
      if (r >= end || e >= WIDTH) continue;
      if (WIDTH % 2 == 0) {
        *(u32*)(to.at + r * to.row + e) = both;
      } else {
        to.at[r * to.row + e] = (u16)both;
        if (e + 1 < WIDTH) to.at[r * to.row + e + 1] = (u16)(both >> 16);
      }
    }
  }
}
