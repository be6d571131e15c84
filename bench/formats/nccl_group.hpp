// Which ranks an nccl-tests run timed together. NCCL_TESTS_SPLIT makes groups that run at the same time; the times are
// those of rank 0's group. The list of devices names the groups, and bus bandwidth over algorithm bandwidth betrays
// their size.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/formats/nccl_run.hpp"
#include "bench/formats/nccl_tests.hpp"

namespace wt {

struct NcclGroup {
  std::int64_t ranks = 0;  ///< of the whole run
  std::int64_t groups = 1;
  std::vector<std::int64_t> members;
  std::int64_t hosts = 1;          ///< that hold members
  std::int64_t gpus_per_host = 1;  ///< the most of the whole run
};

/// busbw / algbw of this test among so many ranks: 2 (n-1)/n for all-reduces, 1 for broadcasts, reductions, sends and
/// hypercubes, else (n-1)/n (nccl-tests, PERFORMANCE.md and the getBw of each test).
double nccl_bus_factor(const std::string& test, double ranks);

/// Throws Error{usage} where the bandwidths are not those of the group.
NcclGroup group_of(const NcclRun& run, const std::string& test, const NcclTestsOptions& options,
                   const std::string& origin);

}  // namespace wt
