// What the text of tile programs needs beside the formulas: elements side by side, counts, functions that are launched.

// Elements that are read and written at once, by accesses of up to 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vec {
  T v[N];
};

// start + position * step, in f64.
TN_FN f64 count_f64(u64 start, u64 step, u64 position) {
  return tn::from_bits(start) + tn::from_bits(step) * (f64)position;
}

// A function that is launched, over blocks of 256 threads.
#ifdef __CUDACC_RTC__
#define TN_KERNEL(name) extern "C" __global__ void __launch_bounds__(256) name(const P p)
#else
#define TN_KERNEL(name) static void name(const P& p)
#endif
