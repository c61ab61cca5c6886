// Running sums and products: crates/cuda/src/emit/scan.rs has the words. Floats run in f64 and are rounded as they are stored, as on the CPU.
//
//   LANES       threads that share a chunk of a line: one, or all of a block
//   PRODUCT     whether elements are multiplied
//
// A line is cut into chunks that follow from the shape: `sums` are those of each, `before` is what comes before each, and `kernel` goes through
// them again.

constexpr u32 BLOCK = 256;
constexpr int OWN = 8;

TN_FN W join(W a, W b) { return PRODUCT ? a * b : a + b; }

constexpr W UNIT = PRODUCT ? 1 : 0;

// Chunk `c` of a line: elements from `first` to `end`, counted from where the scan begins.
struct Chunk {
  u64 line, number, first, end;
};

TN_FN Chunk chunk_of(const P& p, u64 t) {
  const u64 n = p.w[1], chunks = p.w[2], each = p.w[3];
  // Lines that are neighbours are read side by side.
  const u64 inner = p.w[4], i = t % inner, c = t / inner % chunks, o = t / inner / chunks;
  const u64 first = c * each, end = first + each < n ? first + each : n;
  return {o * inner + i, c, first, end};
}

// An element of a line, by its number from where the scan begins.
TN_FN u64 position(const P& p, u64 j) { return p.w[9] ? p.w[1] - 1 - j : j; }

TN_FN W read(const P& p, i64 line, u64 j) {
  return wide_s(((const S*)p.w[5])[line + (i64)position(p, j) * (i64)p.w[6]]);
}

TN_FN void write(const P& p, u64 line, u64 j, W x) {
  const u64 inner = p.w[4], o = line / inner, i = line % inner;
  ((S*)p.w[7])[(o * p.w[1] + position(p, j)) * inner + i] = narrow_s(x);
}

// The chunk of a block, tile by tile: `write`s the results, or only adds up.
TN_FN W through_block(const P& p, const Chunk& of, W running, bool writes) {
  const i64 line = line_of(p, of.line);
  for (u64 tile = of.first; tile < of.end; tile += BLOCK * OWN) {
    const u64 first = tile + threadIdx.x * OWN;
    W x[OWN], own = UNIT;
#pragma unroll
    for (int k = 0; k < OWN; k++) {
      x[k] = first + k < of.end ? read(p, line, first + k) : UNIT;
      own = join(own, x[k]);
    }
    W all;
    W now = join(running, before_thread(own, UNIT, all, join));
    running = join(running, all);
    if (!writes) continue;
#pragma unroll
    for (int k = 0; k < OWN; k++) {
      const W next = join(now, x[k]);
      if (first + k < of.end) write(p, of.line, first + k, p.w[10] ? now : next);
      now = next;
    }
  }
  return running;
}

TN_FN W through_thread(const P& p, const Chunk& of, W running, bool writes) {
  const i64 line = line_of(p, of.line);
  for (u64 j = of.first; j < of.end; j++) {
    const W next = join(running, read(p, line, j));
    if (writes) write(p, of.line, j, p.w[10] ? running : next);
    running = next;
  }
  return running;
}

TN_FN void go_through(const P& p, bool writes) {
  const u64 lines = p.w[0], chunks = p.w[2], total = lines * chunks;
  W* const sums = (W*)p.w[8];
  if (LANES > 1) {
    for (u64 t = blockIdx.x; t < total; t += gridDim.x) {
      const Chunk of = chunk_of(p, t);
      const W running = writes && chunks > 1 ? sums[of.number * lines + of.line] : UNIT;
      const W all = through_block(p, of, running, writes);
      if (!writes && threadIdx.x == 0) sums[of.number * lines + of.line] = all;
    }
    return;
  }
  for (u64 t = (u64)blockIdx.x * BLOCK + threadIdx.x; t < total; t += (u64)gridDim.x * BLOCK) {
    const Chunk of = chunk_of(p, t);
    const W running = writes && chunks > 1 ? sums[of.number * lines + of.line] : UNIT;
    const W all = through_thread(p, of, running, writes);
    if (!writes) sums[of.number * lines + of.line] = all;
  }
}

// Each sum becomes that of the chunks before it.
TN_FN void go_before(const P& p) {
  const u64 lines = p.w[0], chunks = p.w[2];
  W* const sums = (W*)p.w[8];
  if (LANES == 1) {
    for (u64 line = (u64)blockIdx.x * BLOCK + threadIdx.x; line < lines; line += (u64)gridDim.x * BLOCK) {
      W running = UNIT;
      for (u64 c = 0; c < chunks; c++) {
        const W own = sums[c * lines + line];
        sums[c * lines + line] = running;
        running = join(running, own);
      }
    }
    return;
  }
  for (u64 line = blockIdx.x; line < lines; line += gridDim.x) {
    W running = UNIT;
    for (u64 first = 0; first < chunks; first += BLOCK) {
      const u64 c = first + threadIdx.x;
      const W own = c < chunks ? sums[c * lines + line] : UNIT;
      W all;
      const W before = before_thread(own, UNIT, all, join);
      if (c < chunks) sums[c * lines + line] = join(running, before);
      running = join(running, all);
    }
  }
}
