// What the text of tile programs needs beside the formulas: numbers by their bits, elements side by side, counts.

TN_FN f32 f32_of_bits(u32 bits) {
#ifdef __CUDACC_RTC__
  return __uint_as_float(bits);
#else
  f32 x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
#endif
}

TN_FN f64 f64_of_bits(u64 bits) {
#ifdef __CUDACC_RTC__
  return __longlong_as_double((long long)bits);
#else
  f64 x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
#endif
}

// Elements that are read and written at once, by accesses of up to 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vec {
  T v[N];
};

// start + position * step, in f64.
TN_FN f64 count_f64(u64 start, u64 step, u64 position) {
  return f64_of_bits(start) + f64_of_bits(step) * (f64)position;
}

// A function that is launched, over blocks of 256 threads.
#ifdef __CUDACC_RTC__
#define TN_KERNEL(name) extern "C" __global__ void __launch_bounds__(256) name(const P p)
#else
#define TN_KERNEL(name) static void name(const P& p)
#endif
