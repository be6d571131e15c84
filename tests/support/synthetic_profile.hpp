// Profiles of machines whose times follow a known formula.
#pragma once
#include <utility>
#include <vector>

#include "configs/spec/profile.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

inline Measurement timed(const WorkItem& item, double seconds, const std::string& dtype = "fp32",
                         Evidence evidence = Evidence::measured) {
  Measurement m;
  m.kernel = to_string(item.kernel);
  m.pass = to_string(item.pass);
  m.dtype = dtype;
  m.shape = item.shape(0);
  m.clock = "thread_cpu";
  m.samples = {0.98 * seconds, seconds, 1.02 * seconds};
  m.evidence = {evidence, "synthetic"};
  return m;
}

inline WorkItem gemm(double rows, std::int64_t n, std::int64_t k, Precision precision = Precision::fp32) {
  return make_item(Kernel::gemm, Pass::forward, precision, {rows, 0}, {n, k});
}
inline WorkItem copied(double rows) { return make_item(Kernel::copy, Pass::forward, Precision::fp32, {rows, 0}); }
inline WorkItem swiglu(double rows, std::int64_t width) {
  return make_item(Kernel::swiglu, Pass::forward, Precision::fp32, {rows, 0}, {width});
}

/// 50 GFLOP/s and 3 us a product; 5 GB/s and 2 us for what moves bytes.
inline double product_s(const WorkItem& item) { return 3e-6 + item.flops(0) / 50e9; }
inline double moved_s(const WorkItem& item) { return 2e-6 + item.bytes(0) / 5e9; }

inline Profile synthetic_profile() {
  Profile p;
  p.fingerprint = {{"device", "test"}, {"host", "synchronous"}, {"cores", "2"}};
  for (std::int64_t n : {64, 256})
    for (std::int64_t k : {64, 128, 512})
      for (double rows : {32., 64., 256., 1024.})
        p.measurements.push_back(timed(gemm(rows, n, k), product_s(gemm(rows, n, k))));
  for (double rows : {1e3, 1e4, 1e6}) p.measurements.push_back(timed(copied(rows), moved_s(copied(rows))));
  for (double rows : {100., 1000., 4000.})
    p.measurements.push_back(timed(swiglu(rows, 512), moved_s(swiglu(rows, 512))));
  return p;
}

}  // namespace wt
