// Random numbers that take an unknown number of draws, and classes by their logits. The original: crates/cpu/src/random.
//
// crates/cuda/src/emit/draw.rs has the words.

// Threads of a block.
constexpr u32 BLOCK = 256;

// Draws of one element.
struct Draws {
  u32 key0, key1;
  u64 element;
  u32 next;

  // Two uniform numbers in (0, 1).
  TN_FN void uniforms(f64& first, f64& second) {
    u32 words[4];
    philox_block(key0, key1, (u32)element, (u32)(element >> 32), next, 2, words);
    next++;
    first = ((f64)(tn::join_words(words[0], words[1]) >> 11) + 0.5) / 9007199254740992.0;
    second = ((f64)(tn::join_words(words[2], words[3]) >> 11) + 0.5) / 9007199254740992.0;
  }

  TN_FN f64 uniform() {
    f64 first, second;
    uniforms(first, second);
    return first;
  }

  // A standard normal number, by Box and Muller.
  TN_FN f64 normal() {
    f64 radius, angle;
    uniforms(radius, angle);
    return tn::sqrt(-2.0 * tn::log(radius)) * tn::cos(6.283185307179586 * angle);
  }
};

TN_FN Draws draws_of(const P& p, u64 element) {
  const u32* const key = (const u32*)p.w[2];
  return {key[0], key[(i64)p.w[3]], element, 0};
}

TN_FN f64 gamma_of(f64 shape, Draws& draws) {
  const f64 infinity = tn::Real<f64>::infinity();
  if (shape != shape || shape < 0.0) return infinity - infinity;
  if (shape == 0.0 || shape == infinity) return shape;
  const bool small = shape < 1.0;
  const f64 d = (small ? shape + 1.0 : shape) - 1.0 / 3.0;
  const f64 c = 1.0 / tn::sqrt(9.0 * d);
  f64 drawn = 0.0;
  for (bool done = false; !done;) {
    const f64 x = draws.normal(), t = 1.0 + c * x, v = t * t * t;
    if (!(v > 0.0)) continue;
    const f64 u = draws.uniform();
    done = tn::log(u) < 0.5 * x * x + d - d * v + d * tn::log(v);
    drawn = d * v;
  }
  return small ? drawn * tn::pow(draws.uniform(), 1.0 / shape) : drawn;
}

// ln k!, by Stirling's series above a table's reach.
TN_FN f64 log_factorial(f64 k) {
  if (k < 10.0) {
    f64 sum = 0.0;
    for (f64 i = 2.0; i <= k; i += 1.0) sum += tn::log(i);
    return sum;
  }
  const f64 x = k + 1.0, z = 1.0 / (x * x);
  const f64 rest = (1.0 / 12.0 - z * (1.0 / 360.0 - z / 1260.0)) / x;
  return (x - 0.5) * tn::log(x) - x + 0.5 * tn::log(6.283185307179586) + rest;
}

TN_FN f64 poisson_of(f64 rate, Draws& draws) {
  const f64 infinity = tn::Real<f64>::infinity();
  if (rate != rate || rate < 0.0 || rate == infinity) return infinity - infinity;
  if (rate < 10.0) {
    const f64 least = tn::exp(-rate);
    f64 product = 1.0, count = -1.0;
    while (product > least) {
      product *= draws.uniform();
      count += 1.0;
    }
    return count > 0.0 ? count : 0.0;
  }
  const f64 b = 0.931 + 2.53 * tn::sqrt(rate), a = -0.059 + 0.02483 * b;
  const f64 inverse = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2.0);
  for (;;) {
    f64 u, v;
    draws.uniforms(u, v);
    u = u - 0.5;
    const f64 us = 0.5 - tn::abs(u), k = tn::floor((2.0 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= squeeze) return k;
    if (k < 0.0 || (us < 0.013 && v > us)) continue;
    const f64 weight = tn::log(v) + tn::log(inverse) - tn::log(a / (us * us) + b);
    if (weight <= k * tn::log(rate) - rate - log_factorial(k)) return k;
  }
}

// The weight of a class beside the largest logit: level with it also where both are infinite.
TN_FN f64 weight_of(f64 logit, f64 most) {
  if (logit != logit) return 0.0;
  return logit == most ? 1.0 : tn::exp(logit - most);
}

// Samples of each row, a block of threads a row: parts of the classes are added up on their own and then in order.
template <class Logit>
TN_FN void draw_classes(const P& p, Logit logit_of) {
  __shared__ f64 sums[BLOCK];
  const u64 rows = p.w[0], n = p.w[5], samples = p.w[6];
  const u32 t = threadIdx.x;
  const u64 each = (n + BLOCK - 1) / BLOCK, first = t * each;
  const u64 end = first + each < n ? first + each : n;
  for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
    f64 most = -tn::Real<f64>::infinity();
    for (u64 j = first; j < end; j++) {
      const f64 logit = logit_of(row, j);
      if (logit > most) most = logit;
    }
    sums[t] = most;
    __syncthreads();
    for (u32 half = BLOCK / 2; half > 0; half /= 2) {
      if (t < half && sums[t + half] > sums[t]) sums[t] = sums[t + half];
      __syncthreads();
    }
    most = sums[0];
    __syncthreads();
    f64 own = 0.0;
    for (u64 j = first; j < end; j++) own += weight_of(logit_of(row, j), most);
    sums[t] = own;
    __syncthreads();
    f64 total = 0.0;
    for (u32 i = 0; i < BLOCK; i++) total += sums[i];
    for (u64 s = t; s < samples; s += BLOCK) {
      Draws draws = draws_of(p, row * samples + s);
      const f64 share = draws.uniform() * total;
      // The part that the share falls into; the last that has any weight where rounding leaves it beyond all.
      u32 found = 0;
      f64 before = 0.0, sum = 0.0;
      for (u32 i = 0; i < BLOCK; i++) {
        if (!(sums[i] > 0.0)) continue;
        found = i;
        before = sum;
        sum += sums[i];
        if (sum >= share) break;
      }
      u64 drawn = 0;
      sum = before;
      for (u64 j = found * each; j < found * each + each && j < n; j++) {
        const f64 more = weight_of(logit_of(row, j), most);
        if (!(more > 0.0)) continue;
        drawn = j;
        sum += more;
        if (sum >= share) break;
      }
      ((i64*)p.w[1])[row * samples + s] = (i64)drawn;
    }
    __syncthreads();
  }
}
