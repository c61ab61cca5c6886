// What kernels/mma.cuh, copies.cuh and near.cuh ask of a GPU: a warp's products, by the documented places of elements in registers: the last thread of a warp that arrives
// computes for all. Copies to shared memory happen when they are waited for, and no earlier: what reads before is found.
#include <unordered_set>
#include <vector>

#define TN_SHARED(name, bytes)          \
  alignas(128) static u8 name[bytes];   \
  warp::memory = name

namespace warp {
struct Lane {
  u32 a[4], b[2], loaded[4];
  f32 sum[4], number;
  const u16* row;
};
static Lane lanes[threads::COUNT];

struct Copy { u16* to; const u16* from; bool there; };
static std::vector<Copy> copies[threads::COUNT];

// Where the block's shared memory begins.
static u8* memory;
// Copies that the threads that made them have not made known to products by groups, and those of each thread.
static std::unordered_set<const u8*> unknown;
static std::vector<const u8*> made[threads::COUNT];

static void show() {
  for (const u8* at : made[threadIdx.x]) unknown.erase(at);
  made[threadIdx.x].clear();
}

static Lane& own() { return lanes[threadIdx.x]; }

template <class Once>
static void together(Once once) {
  const unsigned warp = threadIdx.x / 32;
  threads::warps[warp].meet(32, [&] { once(lanes + warp * 32); });
}

template <bool BF16>
static f32 element(u32 both, int half) {
  const u16 x = (u16)(both >> 16 * half);
  return BF16 ? bf16_load(x) : f16_load(x);
}

static void load(u32 (&to)[4], const u16* row, bool across) {
  own().row = row;
  together([=](Lane* all) {
    for (int t = 0; t < 32; t++)
      for (int i = 0; i < 4; i++) {
        u16 x[2];
        for (int j = 0; j < 2; j++) x[j] = across ? all[8 * i + t % 4 * 2 + j].row[t / 4] : all[8 * i + t / 4].row[t % 4 * 2 + j];
        all[t].loaded[i] = x[0] | (u32)x[1] << 16;
      }
  });
  for (int i = 0; i < 4; i++) to[i] = own().loaded[i];
}
}  // namespace warp

static void load_matrices(u32 (&to)[4], const u16* row) { warp::load(to, row, false); }
static void load_matrices_across(u32 (&to)[4], const u16* row) { warp::load(to, row, true); }

template <bool BF16>
static void multiply(f32 (&sum)[4], const u32 (&a)[4], u32 upper, u32 lower) {
  for (int i = 0; i < 4; i++) { warp::own().sum[i] = sum[i]; warp::own().a[i] = a[i]; }
  warp::own().b[0] = upper;
  warp::own().b[1] = lower;
  warp::together([](warp::Lane* all) {
    f32 a[16][16], b[16][8];
    for (int t = 0; t < 32; t++)
      for (int j = 0; j < 2; j++) {
        for (int i = 0; i < 4; i++) a[t / 4 + i % 2 * 8][t % 4 * 2 + j + i / 2 * 8] = warp::element<BF16>(all[t].a[i], j);
        for (int i = 0; i < 2; i++) b[t % 4 * 2 + j + i * 8][t / 4] = warp::element<BF16>(all[t].b[i], j);
      }
    for (int t = 0; t < 32; t++)
      for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++) all[t].sum[i] += a[t / 4 + i / 2 * 8][k] * b[k][t % 4 * 2 + i % 2];
  });
  for (int i = 0; i < 4; i++) sum[i] = warp::own().sum[i];
}

template <bool BF16>
static u32 pack(f32 low, f32 high) {
  return BF16 ? bf16_store(low) | (u32)bf16_store(high) << 16 : f16_store(low) | (u32)f16_store(high) << 16;
}

static void copy_async(u16* to, const u16* from, bool there) {
  if ((size_t)to % 16 || (size_t)from % 16) { fprintf(stderr, "a copy of 16 bytes at an odd address\n"); abort(); }
  warp::copies[threadIdx.x].push_back({to, from, there});
}

static void wait_for_copies() {
  for (const warp::Copy& copy : warp::copies[threadIdx.x]) {
    if (copy.there) memcpy(copy.to, copy.from, 16); else memset(copy.to, 0, 16);
    warp::unknown.insert((const u8*)copy.to);
    warp::made[threadIdx.x].push_back((const u8*)copy.to);
  }
  warp::copies[threadIdx.x].clear();
}

static f32 exp2_near(f32 x) { return __builtin_exp2f(x); }

static f32 from_other(f32 x, int bits) {
  warp::own().number = x;
  warp::together([](warp::Lane*) {});
  const f32 other = warp::lanes[threadIdx.x ^ bits].number;
  warp::together([](warp::Lane*) {});
  return other;
}

static bool any_of_warp(bool x) {
  warp::own().number = x;
  warp::together([](warp::Lane* all) {
    for (int t = 1; t < 32; t++) all[0].number += all[t].number;
  });
  const bool any = warp::lanes[threadIdx.x / 32 * 32].number > 0;
  warp::together([](warp::Lane*) {});
  return any;
}

static f32 larger(f32 a, f32 b) { return __builtin_fmaxf(a, b); }
