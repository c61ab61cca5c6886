// Products by a group of four warps, of matrices in shared memory: what an NVIDIA GPU of compute capability 9.0 has, and no other. The host's
// compiler is given the same functions by tests/emulated/groups.h.
//
// A matrix in shared memory has rows of 64 numbers, which are 128 bytes; of eight rows, at a multiple of 1024 bytes, part `c` of row `r`
// lies where part `c ^ r` would, each part 16 bytes. Sums are 64 rows, 16 for each warp, in the order of `multiply`'s accumulators; the
// left operand of 16 columns too, where it is in registers.
//
// Products are begun, and done beside what follows. `begin_products` comes before the first one and after the threads' own writes to
// registers that one takes or adds to; `end_products` closes a set of them; `wait_for_products` waits for all sets but the last so many.
// What a product adds to is read behind that, and behind `hold`.

#ifdef __CUDACC_RTC__

// Where a matrix begins, and how it lies: rows of 128 bytes, eight of them together.
TN_FN u64 matrix_at(const u16* at) {
  return (u64)(((u32)__cvta_generic_to_shared(at) & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

// How many bytes shared memory lacks to a multiple of 1024.
TN_FN u32 missing(const u8* memory) { return -(u32)__cvta_generic_to_shared(memory) & 1023; }

// Makes what this thread has written to shared memory known to products.
TN_FN void show_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

TN_FN void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TN_FN void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int LEFT>
TN_FN void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// Sums are what they are here: nothing that reads them comes earlier.
template <int N>
TN_FN void hold(f32 (&sums)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) asm volatile("" : "+f"(sums[n][i])::"memory");
}

#define TN_SUM(n) "+f"(sums[AT + n][0]), "+f"(sums[AT + n][1]), "+f"(sums[AT + n][2]), "+f"(sums[AT + n][3])
#define TN_SUMS_32 TN_SUM(0), TN_SUM(1), TN_SUM(2), TN_SUM(3)
#define TN_SUMS_64 TN_SUM(0), TN_SUM(1), TN_SUM(2), TN_SUM(3), TN_SUM(4), TN_SUM(5), TN_SUM(6), TN_SUM(7)

// With both operands in shared memory, and with the left one in registers.
#define TN_PRODUCT(N, TYPE, SUMS, LEFT, RIGHT, ADDS, ACROSS, ...)                                                                        \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " ADDS ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE     \
               " {" SUMS "}, " LEFT ", " RIGHT ", adds, 1, 1, " ACROSS ";\n}\n"                                                          \
               : TN_SUMS_##N                                                                                                            \
               : __VA_ARGS__)

#define TN_NAMES_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define TN_NAMES_64 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"

// Adds, or sets where `adds` is 0, N columns of sums from eight times `AT` on: the products of 64 rows with N rows, over 16 columns.
template <bool BF16, int N, int AT, int T>
TN_FN void multiply_rows(f32 (&sums)[T][4], u64 left, u64 right, int adds) {
  if constexpr (N == 32 && BF16)
    TN_PRODUCT(32, "bf16", TN_NAMES_32, "%16", "%17", "%18", "0, 0", "l"(left), "l"(right), "r"(adds));
  else if constexpr (N == 32)
    TN_PRODUCT(32, "f16", TN_NAMES_32, "%16", "%17", "%18", "0, 0", "l"(left), "l"(right), "r"(adds));
  else if constexpr (BF16)
    TN_PRODUCT(64, "bf16", TN_NAMES_64, "%32", "%33", "%34", "0, 0", "l"(left), "l"(right), "r"(adds));
  else
    TN_PRODUCT(64, "f16", TN_NAMES_64, "%32", "%33", "%34", "0, 0", "l"(left), "l"(right), "r"(adds));
}

// The same where registers have the left operand, and the right one lies across: of 16 rows, 64 columns.
template <bool BF16, int AT, int T>
TN_FN void multiply_across(f32 (&sums)[T][4], const u32 (&left)[4], u64 right, int adds) {
  if constexpr (BF16)
    TN_PRODUCT(64, "bf16", TN_NAMES_64, "{%32, %33, %34, %35}", "%36", "%37", "1", "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(adds));
  else
    TN_PRODUCT(64, "f16", TN_NAMES_64, "{%32, %33, %34, %35}", "%36", "%37", "1", "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(adds));
}

#endif
