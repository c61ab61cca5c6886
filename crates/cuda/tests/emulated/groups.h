// What kernels/groups.cuh asks of a GPU: products by groups of four warps, by the documented places of elements in shared memory and in
// registers. They are done when they are waited for, and no earlier: what reads or writes in between is found. So is what a thread copied to
// shared memory and did not make known to products, and a product that nothing begins.

namespace groups {
const int GROUP = 128;

// The left operand is in registers where the right one lies across, and in shared memory otherwise.
struct Product {
  f32 (*sums)[4];
  u32 left[4];
  u64 left_at, right_at;
  int columns;
  bool across, adds, bf16;
};

// Of a thread: products that are begun and not done, and how many of them are in each closed set.
struct Lane {
  std::vector<Product> products;
  std::vector<size_t> sets;
  bool begun;
};
static Lane lanes[threads::COUNT];
static threads::Meeting meetings[threads::COUNT / GROUP];

static Lane& own() { return lanes[threadIdx.x]; }

static void refuse(const char* what) {
  fprintf(stderr, "thread %u: %s\n", threadIdx.x, what);
  abort();
}

// Shared memory begins somewhere, at a multiple of 128 bytes alone.
static u32 address(const void* at) { return (u32)((const u8*)at - warp::memory) + 128; }

// A number of a matrix: the addresses' bits 4 to 6 are changed by bits 7 to 9.
static f32 number(u64 matrix, int row, int column, bool bf16) {
  const u32 begin = (u32)(matrix & 0x3fff) << 4, stride = (u32)(matrix >> 32 & 0x3fff) << 4;
  if (matrix >> 62 != 1 || (matrix >> 49 & 7) != 0) refuse("a matrix that does not lie in rows of 128 bytes");
  u32 at = begin + row / 8 * stride + row % 8 * 128 + column * 2;
  at ^= at >> 3 & 0x70;
  const u8* const from = warp::memory + (at - 128);
  if (warp::unknown.count(from - at % 16)) refuse("a product with a copy that was not made known to it");
  const u16 x = *(const u16*)from;
  return bf16 ? bf16_load(x) : f16_load(x);
}

// A set of products of all threads of a group.
static void run(Lane* all, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    const Product& one = all[0].products[i];
    const int n = one.columns;
    static f32 left[64][16], right[16][256];
    for (int k = 0; k < 16; k++) {
      for (int m = 0; m < 64 && !one.across; m++) left[m][k] = number(one.left_at, m, k, one.bf16);
      for (int c = 0; c < n; c++) right[k][c] = one.across ? number(one.right_at, k, c, one.bf16) : number(one.right_at, c, k, one.bf16);
    }
    for (int t = 0; t < GROUP; t++) {
      const Product& of = all[t].products[i];
      if (of.left_at != one.left_at || of.right_at != one.right_at) refuse("threads of a group with different matrices");
      if (!one.across) continue;
      for (int r = 0; r < 4; r++)
        for (int j = 0; j < 2; j++) {
          const u16 x = (u16)(of.left[r] >> 16 * j);
          left[t / 32 * 16 + t % 32 / 4 + r % 2 * 8][t % 4 * 2 + j + r / 2 * 8] = one.bf16 ? bf16_load(x) : f16_load(x);
        }
    }
    for (int t = 0; t < GROUP; t++)
      for (int c = 0; c < n / 8; c++)
        for (int j = 0; j < 4; j++) {
          f32 sum = one.adds ? all[t].products[i].sums[c][j] : 0.0f;
          for (int k = 0; k < 16; k++) sum += left[t / 32 * 16 + t % 32 / 4 + j / 2 * 8][k] * right[k][c * 8 + t % 4 * 2 + j % 2];
          all[t].products[i].sums[c][j] = sum;
        }
  }
}

static void begin(const Product& product) {
  if (!own().begun) refuse("a product before any begins");
  own().products.push_back(product);
}
}  // namespace groups

static u64 matrix_at(const u16* at) {
  return (u64)((groups::address(at) & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

static u32 missing(const u8* memory) { return -groups::address(memory) & 1023; }

static void show_to_products() { warp::show(); }

static void begin_products() { groups::own().begun = true; }
static void end_products() { groups::own().sets.push_back(groups::own().products.size()); }

template <int LEFT>
static void wait_for_products() {
  const unsigned group = threadIdx.x / groups::GROUP;
  groups::meetings[group].meet(groups::GROUP, [&] {
    groups::Lane* const all = groups::lanes + group * groups::GROUP;
    const size_t sets = all[0].sets.size(), done = sets > LEFT ? sets - LEFT : 0;
    if (done == 0) return;
    const size_t products = all[0].sets[done - 1];
    groups::run(all, 0, products);
    for (int t = 0; t < groups::GROUP; t++) {
      if (all[t].sets.size() != sets) groups::refuse("threads of a group that wait for different products");
      all[t].products.erase(all[t].products.begin(), all[t].products.begin() + products);
      all[t].sets.erase(all[t].sets.begin(), all[t].sets.begin() + done);
      for (size_t& set : all[t].sets) set -= products;
    }
  });
  // Registers that a thread changes from here on are told to the next product.
  groups::own().begun = false;
}

template <int N>
static void hold(f32 (&)[N][4]) {}

template <bool BF16, int N, int AT, int T>
static void multiply_rows(f32 (&sums)[T][4], u64 left, u64 right, int adds) {
  groups::begin({sums + AT, {}, left, right, N, false, adds != 0, BF16});
}

template <bool BF16, int AT, int T>
static void multiply_across(f32 (&sums)[T][4], const u32 (&left)[4], u64 right, int adds) {
  groups::begin({sums + AT, {left[0], left[1], left[2], left[3]}, 0, right, 64, true, adds != 0, BF16});
}
