// Group norm and its gradient: images of pixels of channels, where the channels of a group are brought to a mean of 0 and a deviation of 1.
//
// A block of threads takes some channels, V a thread, of a part of an image's pixels. Statistics of parts are joined by their counts, means
// and sums of squared differences, sums are added up, both in an order that follows from the sizes alone. The text before says what V, A,
// S and C are and reads rows.

// Threads that share channels, and pixels whose loads are in flight together.
constexpr int D = 256 / A, U = V > 2 || sizeof(C) == 8 ? 4 : 8;

// A place in the work: an image, a part of its pixels, and channels.
struct Place {
  idx image, first, last, at, part;
};

TN_FN idx each_of(const P& p) { return ((idx)p.w[1] + (idx)p.w[4] - 1) / (idx)p.w[4]; }

TN_FN Place place(const P& p, idx block) {
  const idx pixels = (idx)p.w[1], n = (idx)p.w[2], parts = (idx)p.w[4], each = each_of(p);
  const idx across = (n + A * V - 1) / (A * V);
  Place x;
  x.at = (block % across * A + threadIdx.x % A) * V;
  block /= across;
  x.part = block;
  const idx part = block % parts;
  x.image = block / parts;
  x.first = part * each < pixels ? part * each : pixels;
  x.last = x.first + each < pixels ? x.first + each : pixels;
  return x;
}

TN_FN idx places(const P& p) {
  return ((idx)p.w[2] + A * V - 1) / (A * V) * (idx)p.w[0] * (idx)p.w[4];
}

// Joins the statistics of `more` numbers to those of `before`.
template <class N>
TN_FN void join(N before, C& mean, C& squares, N more, C other, C others) {
  if (more == 0) return;
  const N total = before + more;
  const C off = other - mean;
  mean = mean + off * ((C)more / (C)total);
  squares = squares + others + off * off * ((C)before / (C)total * (C)more);
}

// What differences from the mean are multiplied by.
TN_FN C inverse(const P& p, C variance) {
  return (C)1 / p_sqrt(variance + (C)tn::from_bits(p.w[5]));
}
