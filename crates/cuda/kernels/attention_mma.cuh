// Attention by products of small matrices in a warp, for 16-bit floats; scores and sums are f32.
//
//   WARPS           warps of a block of threads
//
// Rows of one side stay in shared memory, in a tile of 16 or 32 for each warp. Those of the other side come tile by tile, the
// next while this one is computed with. Scores lie in a warp's accumulators in the order that the next product takes them in, so they never
// leave its registers. Every sum is added up by one warp in the order of the rows: two runs have the same bits.

#undef TN_THREADS
#define TN_THREADS (WARPS * 32)

// Rows in shared memory are filled up with zeros to a whole number of products, and 16 bytes apart, so that those of a matrix lie in all banks.
constexpr int pitch(int width) { return filled(width) + 8; }
constexpr int PD = pitch(D), PE = pitch(E);

// Begins to copy rows of a head; those beyond the last are zeros.
template <int WIDTH, int ROWS>
TN_FN void stage(u16* to, const Head& head, int first, int end) {
  // Rows that all threads copy at once, each 16 bytes.
  constexpr int CHUNKS = filled(WIDTH) / 8, APART = TN_THREADS / CHUNKS;
  if constexpr (ALIGNED && WIDTH % 16 == 0 && TN_THREADS % CHUNKS == 0 && ROWS % APART == 0) {
    const int r = threadIdx.x / CHUNKS, d = threadIdx.x % CHUNKS * 8;
    const u16* from = head.at + (i64)(first + r) * head.row + d;
    const i64 step = APART * head.row;
    to += r * pitch(WIDTH) + d;
    if (first + ROWS <= end) {
#pragma unroll
      for (int i = 0; i < ROWS; i += APART, from += step) copy_async(to + i * pitch(WIDTH), from, true);
    } else {
#pragma unroll
      for (int i = 0; i < ROWS; i += APART, from += step) {
        const bool there = first + r + i < end;
        copy_async(to + i * pitch(WIDTH), there ? from : head.at, there);
      }
    }
  } else if constexpr (ALIGNED) {
    for (int i = threadIdx.x; i < ROWS * CHUNKS; i += TN_THREADS) {
      const int r = i / CHUNKS, d = i % CHUNKS * 8;
      const bool there = first + r < end && d < WIDTH;
      copy_async(to + r * pitch(WIDTH) + d, head.at + (there ? (i64)(first + r) * head.row + d : 0), there);
    }
  } else {
    for (int i = threadIdx.x; i < ROWS * filled(WIDTH); i += TN_THREADS) {
      const int r = i / filled(WIDTH), d = i % filled(WIDTH);
      const bool there = first + r < end && d < WIDTH;
      to[r * pitch(WIDTH) + d] = there ? head.at[(i64)(first + r) * head.row + d * head.column] : (u16)0;
    }
  }
}

// Where a thread's row begins of the matrices of 16 x 16 that are a left operand, or that are a right one transposed.
TN_FN int left_at(int lane, int pitch) { return lane % 16 * pitch + lane / 16 * 8; }
// The same of those whose rows are the columns of a right operand.
TN_FN int right_at(int lane, int pitch) { return (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8; }

// Adds the products of M tiles of 16 rows with N rows, over their width: of the left operand one that is kept, or one in shared memory.
template <int M, int N, int WIDTH, bool KEPT, int K>
TN_FN void add_products(f32 (&sums)[M][N / 8][4], const u32 (&kept)[M][K][4], const u16* left, const u16* right) {
#pragma unroll
  for (int k = 0; k < filled(WIDTH) / 16; k++) {
    u32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; m++) {
      if constexpr (KEPT) {
#pragma unroll
        for (int i = 0; i < 4; i++) a[m][i] = kept[m][k][i];
      } else {
        load_matrices(a[m], left + m * 16 * pitch(WIDTH) + k * 16);
      }
    }
#pragma unroll
    for (int n = 0; n < N / 16; n++) {
      u32 b[4];
      load_matrices(b, right + n * 16 * pitch(WIDTH) + k * 16);
#pragma unroll
      for (int m = 0; m < M; m++) {
        multiply<BF16>(sums[m][2 * n], a[m], b[0], b[1]);
        multiply<BF16>(sums[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// The rows of the left operand that are kept.
template <int M, int WIDTH, int K>
TN_FN void keep(u32 (&kept)[M][K][4], const u16* left) {
#pragma unroll
  for (int m = 0; m < M; m++)
#pragma unroll
    for (int k = 0; k < filled(WIDTH) / 16; k++) load_matrices(kept[m][k], left + m * 16 * pitch(WIDTH) + k * 16);
}

// Adds N weighed rows: the weights are accumulators of the product before.
template <int M, int N, int WIDTH>
TN_FN void add_weighed(f32 (&sums)[M][filled(WIDTH) / 8][4], const f32 (&weights)[M][N / 8][4], const u16* rows) {
#pragma unroll
  for (int k = 0; k < N / 16; k++) {
    u32 a[M][4];
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int i = 0; i < 4; i++) a[m][i] = pack<BF16>(weights[m][2 * k + i / 2][i % 2 * 2], weights[m][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (int n = 0; n < filled(WIDTH) / 16; n++) {
      u32 b[4];
      load_matrices_across(b, rows + k * 16 * pitch(WIDTH) + n * 16);
#pragma unroll
      for (int m = 0; m < M; m++) {
        multiply<BF16>(sums[m][2 * n], a[m], b[0], b[1]);
        multiply<BF16>(sums[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}
