// What the text of kernels needs beside the formulas: elements side by side, counts.

// Elements that are read and written at once, by accesses of up to 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vec {
  T v[N];
};

// start + position * step, in f64.
TN_FN f64 count_f64(u64 start, u64 step, u64 position) {
  return tn::from_bits(start) + tn::from_bits(step) * (f64)position;
}
