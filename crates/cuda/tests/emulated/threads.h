// Runs the threads of a block on the host, one after the other between barriers: enough of CUDA for the text of our kernels.
#include <cstdint>
#include <cstdlib>
#include <ucontext.h>

struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx, gridDim, blockDim;
#define __shared__ static

namespace threads {
const unsigned COUNT = 256, STACK = 64 * 1024;
static ucontext_t scheduler, all[COUNT];
static bool ended[COUNT], fibers;
static unsigned now;
static void (*work)(const void*, void*, unsigned);
static const void* argument;
static void* status;
static unsigned launch;
static char* stacks;

static void enter() {
  work(argument, status, launch);
  ended[now] = true;
  swapcontext(&all[now], &scheduler);
}

static void barrier() {
  if (fibers) { swapcontext(&all[now], &scheduler); threadIdx.x = now; }
}

// `barriers`: whether threads wait for each other, and so need stacks of their own.
static void run(void (*f)(const void*, void*, unsigned), const void* p, void* s, unsigned l, unsigned blocks, bool barriers) {
  work = f; argument = p; status = s; launch = l; fibers = barriers;
  gridDim = {blocks, 1, 1}; blockDim = {COUNT, 1, 1}; threadIdx = {0, 0, 0};
  if (barriers && !stacks) stacks = (char*)malloc((size_t)COUNT * STACK);
  for (unsigned b = 0; b < blocks; b++) {
    blockIdx = {b, 0, 0};
    if (!barriers) {
      for (unsigned t = 0; t < COUNT; t++) { threadIdx.x = t; f(p, s, l); }
      continue;
    }
    for (unsigned t = 0; t < COUNT; t++) {
      getcontext(&all[t]);
      all[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
      all[t].uc_stack.ss_size = STACK;
      all[t].uc_link = &scheduler;
      makecontext(&all[t], enter, 0);
      ended[t] = false;
    }
    for (bool left = true; left;) {
      left = false;
      for (unsigned t = 0; t < COUNT; t++) {
        if (ended[t]) continue;
        now = t; threadIdx.x = t;
        swapcontext(&scheduler, &all[t]);
        left |= !ended[t];
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
