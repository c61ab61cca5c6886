// Runs the threads of a block on the host, one after the other between barriers: enough of CUDA for the text of our kernels.
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ucontext.h>

struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx, gridDim, blockDim;
#define __shared__ static

namespace threads {
const unsigned COUNT = 512, STACK = 64 * 1024, WARP = 32;
// A thread begins by its context; from then on it is left and entered by jumps, which ask nothing of the system.
static ucontext_t all[COUNT];
static jmp_buf scheduler, jumps[COUNT];
static bool begun[COUNT], ended[COUNT], alone;
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
    if (alone) {
      fprintf(stderr, "thread %u of a block waits for the others, and its first thread did not\n", threadIdx.x);
      abort();
    }
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
  block.meet(running, [] {});
}

// Runs a thread until it waits or ends.
static void advance(unsigned t) {
  now = t; threadIdx.x = t;
  if (_setjmp(scheduler)) return;
  if (begun[t]) _longjmp(jumps[t], 1);
  begun[t] = true;
  getcontext(&all[t]);
  all[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
  all[t].uc_stack.ss_size = STACK;
  makecontext(&all[t], enter, 0);
  setcontext(&all[t]);
}

static void run(void (*f)(const void*, void*, unsigned), const void* p, void* s, unsigned l, unsigned blocks, unsigned threads) {
  work = f; argument = p; status = s; launch = l; count = threads;
  gridDim = {blocks, 1, 1}; blockDim = {count, 1, 1};
  if (!stacks) stacks = (char*)malloc((size_t)COUNT * STACK);
  for (unsigned b = 0; b < blocks; b++) {
    blockIdx = {b, 0, 0};
    running = count;
    for (unsigned t = 0; t < count; t++) begun[t] = ended[t] = false;
    advance(0);
    // Where the first thread waits for nobody, none does, and they need no stacks of their own.
    alone = ended[0];
    if (alone) {
      for (unsigned t = 1; t < count; t++) { threadIdx.x = t; f(p, s, l); }
      alone = false;
      continue;
    }
    while (running > 0) {
      for (unsigned t = 0; t < count; t++) if (!ended[t]) advance(t);
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
