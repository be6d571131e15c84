// For the grouped GEMM's tests: routings from even to extreme, and the three products in double precision.
#pragma once
#include <algorithm>
#include <numeric>

#include "tests/support/kernel_arrays.hpp"

namespace wt::kernel_test {

enum class Routing { random, one_takes_all, one_row, nobody, skewed };

inline std::vector<int32_t> ends_of(Routing routing, int64_t groups, int64_t rows_each, std::mt19937_64& random) {
  std::vector<int32_t> rows(static_cast<size_t>(groups));
  std::uniform_int_distribution<int32_t> draw(0, static_cast<int32_t>(2 * rows_each));
  std::uniform_int_distribution<size_t> group(0, rows.size() - 1);
  switch (routing) {
    case Routing::random:
      for (int32_t& count : rows) count = draw(random);
      break;
    case Routing::one_takes_all:
      rows[group(random)] = static_cast<int32_t>(groups * rows_each);
      break;
    case Routing::one_row:
      rows[group(random)] = 1;
      break;
    case Routing::nobody:
      break;
    case Routing::skewed:  // every second group empty, the others halving
      for (size_t g = 0; g < rows.size(); g += 2)
        rows[g] = static_cast<int32_t>(groups * rows_each >> (g / 2 + 1 < 30 ? g / 2 + 1 : 30));
      break;
  }
  std::partial_sum(rows.begin(), rows.end(), rows.begin());
  return rows;
}

struct Grouped {
  std::vector<int32_t> ends;
  int64_t n, k;
  Doubles x, weight, dy;  ///< (rows,k), (groups,n,k), (rows,n)

  int64_t groups() const { return static_cast<int64_t>(ends.size()); }
  int64_t rows() const { return ends.back(); }
  int64_t begin(int64_t g) const { return g > 0 ? ends[static_cast<size_t>(g) - 1] : 0; }
  int64_t end(int64_t g) const { return ends[static_cast<size_t>(g)]; }

  /// term(row, group, n, k) for all; what it adds to is up to it.
  template <class Term>
  void each(Term term) const {
    for (int64_t g = 0; g < groups(); ++g)
      for (int64_t i = begin(g); i < end(g); ++i)
        for (int64_t a = 0; a < n; ++a)
          for (int64_t b = 0; b < k; ++b)
            term(static_cast<size_t>(i * n + a), static_cast<size_t>(i * k + b),
                 static_cast<size_t>((g * n + a) * k + b));
  }
  Doubles forward() const {
    Doubles y(static_cast<size_t>(rows() * n));
    each([&](size_t in, size_t ik, size_t gnk) { y[in] += x[ik] * weight[gnk]; });
    return y;
  }
  Doubles backward_rows() const {
    Doubles dx(static_cast<size_t>(rows() * k));
    each([&](size_t in, size_t ik, size_t gnk) { dx[ik] += dy[in] * weight[gnk]; });
    return dx;
  }
  Doubles backward_weight() const {
    Doubles dweight(static_cast<size_t>(groups() * n * k));
    each([&](size_t in, size_t ik, size_t gnk) { dweight[gnk] += dy[in] * x[ik]; });
    return dweight;
  }
};

inline Grouped draw_grouped(WtDtype dtype, std::vector<int32_t> ends, int64_t n, int64_t k, std::mt19937_64& random) {
  const int64_t rows = ends.back(), groups = static_cast<int64_t>(ends.size());
  return {std::move(ends),
          n,
          k,
          draw(random, dtype, rows * k),
          draw(random, dtype, groups * n * k),
          draw(random, dtype, rows * n)};
}

}  // namespace wt::kernel_test
