// Rows of bench storage as a storage would give them whose rates are known.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include "configs/spec/profile.hpp"

namespace wt::test {

/// A save takes latency + bytes / min(ranks x rank, nodes x node, all); a read `read` times less.
struct StorageLaw {
  double latency_s = 0, rank_Bps = 1e9;
  double node_Bps = std::numeric_limits<double>::infinity(), all_Bps = std::numeric_limits<double>::infinity();
  double read = 1;
};

/// Rows of 16 MiB, 128 MiB and 1 GiB a rank, for each of these numbers of ranks on so many nodes: writes and reads.
inline Profile storage_profile(const StorageLaw& rates, const std::vector<std::int64_t>& ranks,
                               std::int64_t nodes = 1) {
  Profile out;
  for (const std::int64_t n : ranks)
    for (const std::int64_t each : {1 << 24, 1 << 27, 1 << 30})
      for (const char* kernel : {"checkpoint_write", "checkpoint_read"}) {
        Measurement m;
        m.kernel = kernel, m.pass = "", m.dtype = "fp32";
        m.shape = {{"bytes", each * n}, {"ranks", n}};
        if (nodes > 1) m.shape["nodes"] = nodes;
        const double all_Bps = std::min(
            {static_cast<double>(n) * rates.rank_Bps, static_cast<double>(nodes) * rates.node_Bps, rates.all_Bps});
        const double seconds = rates.latency_s + static_cast<double>(each * n) / all_Bps;
        m.samples = {m.kernel == "checkpoint_read" ? seconds / rates.read : seconds};
        if (m.kernel == "checkpoint_read") m.counters["cold"] = 1;
        m.evidence = {Evidence::measured, "synthetic"};
        out.measurements.push_back(m);
      }
  return out;
}

}  // namespace wt::test
