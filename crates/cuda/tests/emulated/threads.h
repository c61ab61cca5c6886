// Runs the threads of a block on the host, one after the other between barriers: enough of CUDA for the text of our kernels.
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <ucontext.h>

struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx, gridDim, blockDim;
#define __shared__ static

namespace threads {
const unsigned COUNT = 256, STACK = 64 * 1024, WARP = 32;
// A thread begins by its context; from then on it is left and entered by jumps, which ask nothing of the system.
static ucontext_t all[COUNT];
static jmp_buf scheduler, jumps[COUNT];
static bool begun[COUNT], ended[COUNT], fibers;
static unsigned now, count;
static void (*work)(const void*, void*, unsigned);
static const void* argument;
static void* status;
static unsigned launch;
static char* stacks;

// Threads that meet: all that have not ended wait for the last, which does what is to be done once.
struct Meeting {
  unsigned arrived, times;
  template <class Once>
  void meet(unsigned members, Once once) {
    if (++arrived == members) {
      once();
      arrived = 0;
      times++;
      return;
    }
    for (const unsigned before = times; times == before;) {
      if (!_setjmp(jumps[now])) _longjmp(scheduler, 1);
      threadIdx.x = now;
    }
  }
};
static Meeting block, warps[COUNT / WARP];
static unsigned running;

static void enter() {
  work(argument, status, launch);
  ended[now] = true;
  // Those that wait do not wait for one that is gone.
  if (--running > 0 && block.arrived == running) { block.arrived = 0; block.times++; }
  _longjmp(scheduler, 1);
}

static void barrier() {
  if (fibers) block.meet(running, [] {});
}

// `barriers`: whether threads wait for each other, and so need stacks of their own.
static void run(void (*f)(const void*, void*, unsigned), const void* p, void* s, unsigned l, unsigned blocks, unsigned threads, bool barriers) {
  work = f; argument = p; status = s; launch = l; fibers = barriers; count = threads;
  gridDim = {blocks, 1, 1}; blockDim = {count, 1, 1}; threadIdx = {0, 0, 0};
  if (barriers && !stacks) stacks = (char*)malloc((size_t)COUNT * STACK);
  for (unsigned b = 0; b < blocks; b++) {
    blockIdx = {b, 0, 0};
    if (!barriers) {
      for (unsigned t = 0; t < count; t++) { threadIdx.x = t; f(p, s, l); }
      continue;
    }
    running = count;
    for (unsigned t = 0; t < count; t++) {
      getcontext(&all[t]);
      all[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
      all[t].uc_stack.ss_size = STACK;
      makecontext(&all[t], enter, 0);
      begun[t] = ended[t] = false;
    }
    while (running > 0) {
      for (unsigned t = 0; t < count; t++) {
        if (ended[t]) continue;
        now = t; threadIdx.x = t;
        if (_setjmp(scheduler)) continue;
        if (begun[t]) _longjmp(jumps[t], 1);
        begun[t] = true;
        setcontext(&all[t]);
      }
    }
  }
}
}  // namespace threads

#define __syncthreads() threads::barrier()

// Between barriers a thread runs alone.
static unsigned atomicCAS(unsigned* at, unsigned old, unsigned next) {
  const unsigned was = *at;
  if (was == old) *at = next;
  return was;
}
static unsigned long long atomicCAS(unsigned long long* at, unsigned long long old, unsigned long long next) {
  const unsigned long long was = *at;
  if (was == old) *at = next;
  return was;
}
static unsigned atomicMax(unsigned* at, unsigned other) {
  const unsigned was = *at;
  if (other > was) *at = other;
  return was;
}
static unsigned atomicMin(unsigned* at, unsigned other) {
  const unsigned was = *at;
  if (other < was) *at = other;
  return was;
}
static unsigned atomicExch(unsigned* at, unsigned next) {
  const unsigned was = *at;
  *at = next;
  return was;
}
#define __threadfence()
