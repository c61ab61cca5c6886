// A double of cuBLASLt for products of f32 and bf16, as `driver.cc` is one of the driver: attributes that nobody asks for here are passed over.
// With DOUBLE_PRODUCTS in the environment it writes down what it was asked for, there.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <dlfcn.h>

namespace {

enum { BF16 = 14 };

struct Desc { int32_t transposed[2] = {0, 0}; int32_t epilogue = 1; const void* bias = nullptr; };
struct Matrix { int type; uint64_t rows, cols; int64_t lead; int32_t count = 1; int64_t step = 0; };

// A bf16 is the upper half of a float.
float read(int type, const void* from, int64_t i) {
  if (type != BF16) return ((const float*)from)[i];
  const uint32_t bits = (uint32_t)((const uint16_t*)from)[i] << 16;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

void write(int type, void* to, int64_t i, float x) {
  if (type != BF16) {
    ((float*)to)[i] = x;
    return;
  }
  uint32_t bits;
  memcpy(&bits, &x, 4);
  ((uint16_t*)to)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The numbers of an operand, sums side by side.
std::vector<float> numbers(const Matrix* m, const void* from, long batch, bool by_rows, uint64_t lines, uint64_t depth) {
  std::vector<float> all(lines * depth);
  for (uint64_t line = 0; line < lines; line++)
    for (uint64_t k = 0; k < depth; k++) {
      const uint64_t row = by_rows ? line : k, col = by_rows ? k : line;
      all[line * depth + k] = read(m->type, from, batch * m->step + (int64_t)row + (int64_t)col * m->lead);
    }
  return all;
}

}  // namespace

extern "C" {

int cublasLtCreate(void** handle) { *handle = new char; return 0; }
int cublasLtMatmulDescCreate(Desc** desc, int, int) { *desc = new Desc(); return 0; }
int cublasLtMatmulDescSetAttribute(Desc* desc, int which, const void* value, size_t) {
  if (which == 3 || which == 4) memcpy(&desc->transposed[which - 3], value, 4);
  if (which == 7) memcpy(&desc->epilogue, value, 4);
  if (which == 8) memcpy(&desc->bias, value, 8);
  return 0;
}
int cublasLtMatrixLayoutCreate(Matrix** made, int type, uint64_t rows, uint64_t cols, int64_t lead) {
  *made = new Matrix{type, rows, cols, lead};
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Matrix* matrix, int which, const void* value, size_t) {
  if (which == 5) memcpy(&matrix->count, value, 4);
  if (which == 6) memcpy(&matrix->step, value, 8);
  return 0;
}
int cublasLtMatmulPreferenceCreate(void** made) { *made = new char; return 0; }
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }
int cublasLtMatmulPreferenceDestroy(void*) { return 0; }
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, void*, int* count) { *count = 1; return 0; }
static int multiply(const Desc* desc, const float* alpha, const void* a, const Matrix* la, const void* b, const Matrix* lb, const float* beta,
                    const void* c, void* d, const Matrix* ld) {
  const bool ta = desc->transposed[0], tb = desc->transposed[1];
  const uint64_t depth = ta ? la->rows : la->cols;
  if (const char* to = getenv("DOUBLE_PRODUCTS"))
    if (FILE* file = fopen(to, "a")) {
      fprintf(file, "%ld x %ld x %ld, leads %ld %ld %ld, share %g\n", (long)ld->cols, (long)ld->rows, (long)depth, (long)lb->lead, (long)la->lead,
              (long)ld->lead, *beta);
      fclose(file);
    }
  for (long batch = 0; batch < ld->count; batch++) {
    const auto left = numbers(la, a, batch, !ta, ld->rows, depth), right = numbers(lb, b, batch, tb, ld->cols, depth);
    for (uint64_t col = 0; col < ld->cols; col++)
      for (uint64_t row = 0; row < ld->rows; row++) {
        float sum = 0;
        for (uint64_t k = 0; k < depth; k++) sum += left[row * depth + k] * right[col * depth + k];
        const float bias = desc->epilogue == 4 ? read(ld->type, desc->bias, (int64_t)row) : 0;
        const int64_t at = batch * ld->step + (int64_t)row + (int64_t)col * ld->lead;
        write(ld->type, d, at, *alpha * sum + (*beta == 0 ? 0 : *beta * read(ld->type, c, at)) + bias);
      }
  }
  return 0;
}

// A product as it was asked for: a stream that records computes it later, and again.
struct Asked {
  Desc desc;
  float alpha, beta;
  const void *a, *b, *c;
  void* d;
  Matrix la, lb, ld;
};

static void compute(void* asked) {
  const Asked& of = *(const Asked*)asked;
  multiply(&of.desc, &of.alpha, of.a, &of.la, of.b, &of.lb, &of.beta, of.c, of.d, &of.ld);
}

int cublasLtMatmul(void*, Desc* desc, const float* alpha, const void* a, const Matrix* la, const void* b, const Matrix* lb, const float* beta,
                   const void* c, const Matrix*, void* d, const Matrix* ld, const void*, void*, size_t, void* stream) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto enqueue = (int (*)(void*, void (*)(void*), void*))dlsym(driver, "double_enqueue");
  return enqueue(stream, compute, new Asked{*desc, *alpha, *beta, a, b, c, d, *la, *lb, *ld});
}

}  // extern "C"
