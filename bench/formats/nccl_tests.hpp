// Reads measurements of NVIDIA's nccl-tests (all_reduce_perf and others, 2.9 and later) and of rccl-tests: the table
// that they print, and the JSON of -J.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "configs/files/profile.hpp"

namespace wt {

/// What a user knows and a text may lack.
struct NcclTestsOptions {
  std::string test = {};           ///< the test to read, in any spelling; "" = the only one that the text names
  std::int64_t gpus = 0;           ///< of a text without a list of devices; 0 = not said
  std::string gpu = {};            ///< with `gpus`: their name
  std::int64_t gpus_per_host = 8;  ///< with `gpus`
};

/// The runs of one test on one cluster, merged.
struct NcclTests {
  struct Size {
    std::vector<double> out_of_place_s;  ///< a sample for each run, or for each iteration where the run kept them
    double in_place_s = 0;               ///< mean
  };
  std::string test;  ///< "all_reduce", "all_to_all", ...
  std::string gpu, nccl;
  std::vector<std::int64_t> members;  ///< of the group that was timed, as numbers in the launcher's ranks
  std::int64_t hosts = 1;             ///< that hold members
  std::int64_t gpus_per_host = 1;     ///< ranks of the whole run on the host with most
  std::int64_t groups = 1;            ///< that ran the test at the same time (NCCL_TESTS_SPLIT)
  std::map<std::int64_t, Size> sizes;
  std::set<std::string> notes;

  std::int64_t ranks() const { return static_cast<std::int64_t>(members.size()); }
  /// NVLink domains with members: hosts, or racks of `nvlink_domain` GPUs that are filled in the order of the ranks.
  std::int64_t nodes(std::int64_t nvlink_domain) const;
  /// Bus bandwidth over algorithm bandwidth, as the test computes it (nccl-tests, PERFORMANCE.md).
  double bus_factor() const;
  /// Bytes that a second of the time below stands for: algorithm bandwidth is bytes * this / time.
  double buffer_factor() const;
};

/// `bytes` is the tests' size column, which matches Collective::bytes: the full buffer of a gather or scatter,
/// everything that a rank sends in an all-to-all. Words before a row (a launcher's rank labels) are ignored. Where a
/// run reports CPU time (-C), times follow from the algorithm bandwidth. The ranks of the timed group are those of rank
/// 0's group in the list of devices, if busbw / algbw is that of so many ranks; without a list those of the options.
/// Throws Error{usage} as nccl_runs_of_text and nccl_run_of_json do, and for: no or two tests, no list of devices,
/// a single rank, a group that is not that of busbw / algbw, runs that differ in ranks or hosts or by more than a
/// factor of two, bandwidth that is not size / time.
NcclTests read_nccl_tests(const std::string& text, const std::string& origin, const NcclTestsOptions& options = {});
NcclTests read_nccl_tests_json(const nlohmann::json& document, const std::string& origin,
                               const NcclTestsOptions& options = {});

/// One measurement per size: kernel = the test, shape {bytes, ranks, nodes}, with several groups also `groups`. Each
/// sample is an out-of-place time in seconds; the in-place time is the counter "in_place_s".
/// `nvlink_domain`: GPUs behind one NVLink switch; 0 = a host's.
Profile profile_of(const NcclTests& tests, const std::string& origin, std::int64_t nvlink_domain = 0);

bool is_nccl_tests(const std::string& text);
bool is_nccl_tests_json(const nlohmann::json& document);

}  // namespace wt
