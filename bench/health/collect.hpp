// The short check of the node it runs on: every core computes and copies at once, a file is written and read back, and
// the counters of the NICs are watched meanwhile. What needs GPUs or other nodes is bench/suites/health_ranks.hpp's.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/health/observation.hpp"

namespace wt {

/// Of products and copies.
inline int stress_repetitions(bool quick) { return quick ? 7 : 15; }

struct CollectOptions {
  bool quick = false;                   ///< stress_repetitions, a quarter of the file: 2 s instead of 5
  std::filesystem::path storage = ".";  ///< folder to write in
  std::filesystem::path sysfs = "/sys";
};

/// Named after the host, with a device a usable core. Times of cores are CPU seconds of their thread, so that other
/// programs on the same core do not make it slow. `said` is told what begins. Where the folder cannot be written in or
/// gives back other bytes, that is in `failures`.
NodeObservation collect_node(const CollectOptions& options, const std::function<void(const std::string&)>& said);

/// Counters since boot, and now: /sys/class/net (physical devices; those that are up) and /sys/class/infiniband.
/// `errors` has every error counter.
std::vector<NicObservation> read_nics(const std::filesystem::path& sysfs);
/// What rose in between; NICs that are only in `after` count from 0.
std::vector<NicObservation> risen(const std::vector<NicObservation>& before, std::vector<NicObservation> after,
                                  double seconds);

/// The kernel's messages since boot; "" where this user may not read them.
std::string kernel_log();

}  // namespace wt
