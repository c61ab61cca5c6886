// Attention by products of groups of four warps, for 16-bit floats; scores and sums are f32.
//
// Rows of one side stay in shared memory. Those of the other side come tile by tile, the next while this one is computed with. Scores lie
// in a group's accumulators in the order that the next product takes them in, so they never leave its registers. Every sum is added up by one
// group in the order of the rows: two runs have the same bits. A tile's last products go on beside the next tile's first ones, so
// there are three of them in memory: one that comes, one that is computed with, and one that is still read.
//
//   GROUPS          groups of a block of threads, each of which has 64 rows of those that stay
//   BLOCKS          blocks that a multiprocessor is to hold

#undef TN_THREADS
#define TN_THREADS (GROUPS * 128)
#undef TN_BLOCKS
#define TN_BLOCKS BLOCKS

// Rows that stay, tiles of those that come, and rows of each of these.
constexpr int STAYING = GROUPS * 64, STAGES = 3, COMING = 64;

// Columns of a matrix in shared memory: a wider tile is several of them, one after the other.
constexpr int PANEL = 64;
static_assert(D % PANEL == 0 && E % PANEL == 0, "heads of whole matrices");

// Begins to copy rows of a head; those beyond the last are zeros.
template <int WIDTH, int ROWS>
TN_FN void stage(u16* to, const Head& head, int first, int end) {
  if constexpr (ALIGNED) {
    // Rows that all threads copy at once: a multiple of eight, so that a thread's parts lie alike in each.
    constexpr int PARTS = WIDTH / 8, APART = TN_THREADS / PARTS;
    static_assert(APART % 8 == 0, "parts that lie alike");
    const int r = threadIdx.x / PARTS, d = threadIdx.x % PARTS * 8;
    const u16* from = head.at + (i64)(first + r) * head.row + d;
    const i64 step = APART * head.row;
    to += d / PANEL * (ROWS * PANEL) + r * PANEL + (d / 8 % 8 ^ r % 8) * 8;
#pragma unroll
    for (int i = 0; i < ROWS; i += APART, from += step) {
      if (ROWS % APART != 0 && r + i >= ROWS) break;
      const bool there = first + r + i < end;
      copy_async(to + i * PANEL, there ? from : head.at, there);
    }
  } else {
    for (int i = threadIdx.x; i < ROWS * WIDTH; i += TN_THREADS) {
      const int r = i / WIDTH, d = i % WIDTH;
      const bool there = first + r < end;
      to[d / PANEL * (ROWS * PANEL) + r * PANEL + (d / 8 % 8 ^ r % 8) * 8 + d % 8] = there ? head.at[(i64)(first + r) * head.row + d * head.column] : (u16)0;
    }
  }
}

// Waits for what all threads have copied, and for what they did before.
TN_FN void meet_with_copies() {
  wait_for_copies();
  show_to_products();
  __syncthreads();
}

// Sets sums to the products of 64 rows of a tile of `LEFT` rows with N rows of one of `RIGHT` rows.
template <int N, int WIDTH, int LEFT, int RIGHT>
TN_FN void set_products(f32 (&sums)[N / 8][4], u64 left, u64 right) {
  // Sixteen columns are 32 bytes, which matrices count in units of 16; those of the next panel follow all rows.
#pragma unroll
  for (int k = 0; k < WIDTH / 16; k++) multiply_rows<BF16, N, 0>(sums, left + k / 4 * (LEFT * 8) + k % 4 * 2, right + k / 4 * (RIGHT * 8) + k % 4 * 2, k > 0);
}

// Adds N weighed rows of a tile of `ROWS` rows.
template <int N, int WIDTH, int ROWS>
TN_FN void add_weighed(f32 (&sums)[WIDTH / 8][4], const u32 (&weights)[N / 16][4], u64 rows) {
#pragma unroll
  for (int k = 0; k < N / 16; k++) {
    multiply_across<BF16, 0>(sums, weights[k], rows + k * 128, 1);
    if constexpr (WIDTH > PANEL) multiply_across<BF16, PANEL / 8>(sums, weights[k], rows + ROWS * 8 + k * 128, 1);
  }
}

// Accumulators as the left operand of a product, in 16 bits.
template <int N>
TN_FN void narrow(u32 (&to)[N / 16][4], const f32 (&from)[N / 8][4]) {
#pragma unroll
  for (int k = 0; k < N / 16; k++)
#pragma unroll
    for (int i = 0; i < 4; i++) to[k][i] = pack<BF16>(from[2 * k + i / 2][i % 2 * 2], from[2 * k + i / 2][i % 2 * 2 + 1]);
}
