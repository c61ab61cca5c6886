// Products of small matrices of 16-bit floats by the threads of a warp: what an NVIDIA GPU has from compute capability 8.0
// on. The host's compiler is given the same functions by tests/emulated/warp.h.
//
// A matrix of 8 x 8 lies in a register of 32 bits a thread: thread t has row t / 4, columns t % 4 * 2 and the one after it. An accumulator
// of 16 x 8 lies in four f32: the first two as above, the others 8 rows below.

#ifdef __CUDACC_RTC__

// Four matrices of 8 x 8; thread 8 i + r says where row r of matrix i begins, at a multiple of 16 bytes.
TN_FN void load_matrices(u32 (&to)[4], const u16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"((u32)__cvta_generic_to_shared(row)));
}

// The same, transposed.
TN_FN void load_matrices_across(u32 (&to)[4], const u16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"((u32)__cvta_generic_to_shared(row)));
}

// Adds the product of 16 x 16 and 16 x 8: `a` is the matrices of the upper and lower rows of the left columns, then of the right ones.
template <bool BF16>
TN_FN void multiply(f32 (&sum)[4], const u32 (&a)[4], u32 upper, u32 lower) {
  if (BF16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(upper), "r"(lower));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(upper), "r"(lower));
}

// Two numbers in a register, the first in the lower half.
template <bool BF16>
TN_FN u32 pack(f32 low, f32 high) {
  u32 both;
  if (BF16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// What the thread has whose number in the warp differs in these bits.
TN_FN f32 from_other(f32 x, int bits) { return __shfl_xor_sync(0xffffffffu, x, bits); }

// Whether any thread of the warp says so.
TN_FN bool any_of_warp(bool x) { return __any_sync(0xffffffffu, x); }

// NaN is passed over.
TN_FN f32 larger(f32 a, f32 b) { return ::fmaxf(a, b); }

#endif
