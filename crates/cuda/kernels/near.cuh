// Powers by a GPU's own instruction, within a few units of the last place: for sums, where nobody asks for the CPU's bits. The host's compiler is
// given the instruction by tests/emulated/warp.h.

#ifdef __CUDACC_RTC__

// 2 to that power, within two units of the last place; subnormal numbers are zeros.
TN_FN f32 exp2_near(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#endif

// e to a power that is not above 0; NaN stays NaN.
TN_FN f32 exp_near(f32 x) {
  typedef tn::Real<f32> R;
  const f32 within = tn::select(x < R::EXP_LOW, R::EXP_LOW, x);
  const f32 n = within * R::LOG2_E;
  // What the product and the constant lack.
  const f32 low = tn::fma(within, 1.92596299e-8f, tn::fma(within, R::LOG2_E, -n));
  const f32 y = exp2_near(n);
  return tn::fma(y, low * R::LN_2, y);
}
TN_FN f64 exp_near(f64 x) { return p_exp(x); }

// The same from a number of 16 bits: the rounding of a product is far below its own.
TN_FN f32 exp_near_half(f32 x) { return exp2_near(x * tn::Real<f32>::LOG2_E); }
