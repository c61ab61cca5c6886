// Functions that are launched, and data that are bad.

// What is known of data that are bad: the number of the launch that saw them, or 0, and the first position with its index. The host
// reads it (driver/status.rs has the same fields).
struct Status {
  u32 lock, launch;
  u64 position;
  i64 index;
};

// A launch and where it says that its data are bad.
struct Guard {
  volatile Status* status;
  u32 launch;

  // Behind a launch that failed nothing runs, so an update behind it does not happen.
  TN_FN bool is_shut() const { return status && status->launch; }

  // The first position stays, whichever thread comes first.
  TN_FN void fail(u64 position, i64 index) const {
    if (status->launch == launch && status->position < position) return;
    for (bool done = false; !done;) {
      if (atomicCAS((u32*)&status->lock, 0u, 1u)) continue;
      if (!status->launch || position < status->position) {
        status->position = position;
        status->index = index;
        __threadfence();
        status->launch = launch;
      }
      __threadfence();
      atomicExch((u32*)&status->lock, 0u);
      done = true;
    }
  }
};

// Blocks of threads that a multiprocessor is to hold at least; of 0 the compiler decides, and may spill a register to hold more of them.
#define TN_BLOCKS 0

// Threads of a block.
#define TN_THREADS 256

// A function that is launched, over blocks of `TN_THREADS` threads.
#ifdef __CUDACC_RTC__
#define TN_KERNEL(name)                                                                              \
  TN_FN void name##_guarded(const P& p, const Guard guard);                                          \
  extern "C" __global__ void __launch_bounds__(TN_THREADS, TN_BLOCKS) name(const __grid_constant__ P p, Status* status, u32 launch) { \
    const Guard guard = {status, launch};                                                            \
    if (!guard.is_shut()) name##_guarded(p, guard);                                                  \
  }                                                                                                  \
  TN_FN void name##_guarded(const P& p, const Guard guard)
#else
#define TN_KERNEL(name)                                              \
  static constexpr unsigned name##_threads = TN_THREADS;             \
  static void name##_guarded(const P& p, const Guard guard);         \
  static void name(const P& p, Status* status, u32 launch) {         \
    const Guard guard = {status, launch};                            \
    if (!guard.is_shut()) name##_guarded(p, guard);                  \
  }                                                                  \
  static void name##_guarded(const P& p, const Guard guard)
#endif
