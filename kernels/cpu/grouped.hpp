// Grouped GEMM with fp32 sums in registers, in small blocks of rows and columns. Written for clarity: on a CPU the
// trainer uses the library's product per group, which is faster.
#pragma once
#include "kernels/cpu/vec.hpp"

namespace {

constexpr int64_t kBlockRows = 4;

/// C (m,n) = A B^T with A (m,k), B (n,k): dot products of rows, 4 x 4 at a time.
template <class E>
void product_of_rows(const E* a, const E* b, int64_t m, int64_t n, int64_t k, E* c) {
  for (int64_t i = 0; i < m; i += kBlockRows) {
    for (int64_t j = 0; j < n; j += kBlockRows) {
      const E* row_a[kBlockRows];
      const E* row_b[kBlockRows];
      for (int64_t r = 0; r < kBlockRows; ++r) {  // beyond the last row, repeat it; the result is not stored
        row_a[r] = a + (i + r < m ? i + r : m - 1) * k;
        row_b[r] = b + (j + r < n ? j + r : n - 1) * k;
      }
      Vec sums[kBlockRows][kBlockRows] = {};
      for_blocks(k, [&](int64_t at, auto part) WT_LAMBDA {
        for (int64_t r = 0; r < kBlockRows; ++r) {
          const Vec x = load(row_a[r] + at, part);
          for (int64_t s = 0; s < kBlockRows; ++s) sums[r][s] += x * load(row_b[s] + at, part);
        }
      });
      for (int64_t r = 0; r < kBlockRows && i + r < m; ++r) {
        for (int64_t s = 0; s < kBlockRows && j + s < n; ++s)
          store(c + (i + r) * n + j + s, splat(sum_lanes(sums[r][s])), Tail{1});
      }
    }
  }
}

/// C (m,n) = A B with B (k,n); element (i,l) of A is a[i * row_step + l * step]. k = 0 gives zeros.
template <class E>
void product_of_columns(const E* a, int64_t row_step, int64_t step, const E* b, int64_t m, int64_t n, int64_t k, E* c) {
  for (int64_t i = 0; i < m; i += kBlockRows) {
    const int64_t real = m - i < kBlockRows ? m - i : kBlockRows;
    const E* row_a[kBlockRows];
    for (int64_t r = 0; r < kBlockRows; ++r) row_a[r] = a + (i + (r < real ? r : real - 1)) * row_step;
    for_blocks(n, [&](int64_t j, auto part) WT_LAMBDA {
      Vec sums[kBlockRows] = {};
      for (int64_t l = 0; l < k; ++l) {
        const Vec y = load(b + l * n + j, part);
        for (int64_t r = 0; r < kBlockRows; ++r) sums[r] += load_one(row_a[r] + l * step) * y;
      }
      for (int64_t r = 0; r < real; ++r) store(c + (i + r) * n + j, sums[r], part);
    });
  }
}

template <class E>
WtStatus grouped_gemm(void*, GroupedForm form, GroupedShape s, const void* a_rows, const void* b, const int32_t* ends,
                      void* out) {
  const E* a = static_cast<const E*>(a_rows);
  const E* b_all = static_cast<const E*>(b);
  E* c = static_cast<E*>(out);
  const bool weight = form == GroupedForm::backward_weight;
  // Splits each group's output into blocks of rows with equal work. For y and dx a block is one unit. For dweight it is
  // the group's number of rows (the length of the sums), plus one for the stores, which an empty group also has.
  const auto blocks = [=](int64_t rows) { return ((weight ? s.n : rows) + kBlockRows - 1) / kBlockRows; };
  const auto work = [=](int64_t rows) { return weight ? rows + 1 : 1; };
  int64_t all_work = 0;
  for (int64_t g = 0, begin = 0; g < s.groups; begin = ends[g++])
    all_work += blocks(ends[g] - begin) * work(ends[g] - begin);
  auto part = [=](int64_t from, int64_t to) {  // the blocks whose work begins in [from, to)
    for (int64_t g = 0, begin = 0, before = 0; g < s.groups; begin = ends[g++]) {
      const int64_t rows = ends[g] - begin, count = blocks(rows), each = work(rows), last = weight ? s.n : rows;
      const auto first_row = [=](int64_t at) {
        const int64_t row = at <= before ? 0 : (at - before + each - 1) / each * kBlockRows;
        return row < last ? row : last;
      };
      const int64_t i = first_row(from), m = first_row(to) - i;
      before += count * each;
      if (m == 0) continue;
      switch (form) {
        case GroupedForm::forward:
          product_of_rows(a + (begin + i) * s.k, b_all + g * s.n * s.k, m, s.n, s.k, c + (begin + i) * s.n);
          break;
        case GroupedForm::backward_rows:
          product_of_columns(a + (begin + i) * s.n, s.n, 1, b_all + g * s.n * s.k, m, s.k, s.n, c + (begin + i) * s.k);
          break;
        case GroupedForm::backward_weight:
          product_of_columns(a + begin * s.n + i, 1, s.n, b_all + begin * s.k, m, s.k, rows, c + (g * s.n + i) * s.k);
          break;
      }
    }
  };
  // Counted in multiplications: most bytes stay in caches, and a multiplication takes about as long as copying a byte.
  const int64_t multiplications = kBlockRows * s.k * (weight ? 1 : s.n);
  const auto run = [](void* context, int64_t from, int64_t to) { (*static_cast<decltype(part)*>(context))(from, to); };
  run_rows(all_work, multiplications, run, &part);
  return WT_OK;
}

}  // namespace
