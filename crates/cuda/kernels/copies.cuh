// Copies to shared memory that go on beside other work, and shared memory of a size that a launch says: what an NVIDIA GPU has from compute
// capability 8.0 on. The host's compiler is given the same by tests/emulated/warp.h.

#ifdef __CUDACC_RTC__

// Shared memory of a size that the launch says.
#define TN_SHARED(name, bytes) extern __shared__ __align__(128) u8 name[]

// 16 bytes to shared memory, or as many zeros.
TN_FN void copy_async(u16* to, const u16* from, bool there) {
  const u32 len = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from), "r"(len));
}

// Waits for the copies of this thread.
TN_FN void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#endif
