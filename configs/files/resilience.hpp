// How a run limits the cost of faults: checkpoints in host memory, verification of computed and saved data, skipped
// batches, and time to save before it ends. Keys of a run file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "configs/files/duration.hpp"

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

/// Checkpoints in the memory of nodes, in addition to those in storage.
struct LocalCheckpointSpec {
  std::int64_t interval = 0;     ///< steps between them; 0 = none
  std::filesystem::path folder;  ///< in the node's memory, such as /dev/shm; empty = inside the output folder
  bool peer = true;              ///< a second copy goes to a node of another rack
  std::int64_t keep = 2;         ///< newest checkpoints kept while another one is written
  friend bool operator==(const LocalCheckpointSpec&, const LocalCheckpointSpec&) = default;
};

/// A range of batches in the sample order, counted from 1.
struct BatchRange {
  std::int64_t first = 1, last = 1;  ///< inclusive
  bool holds(std::int64_t batch) const { return first <= batch && batch <= last; }
  friend bool operator==(const BatchRange&, const BatchRange&) = default;
};

struct ResilienceSpec {
  LocalCheckpointSpec local;
  bool verify_saves = true;          ///< files are read back and compared before a checkpoint is valid
  std::int64_t verify_interval = 0;  ///< steps between comparisons of the replicas' state; 0 = none
  std::vector<BatchRange> skipped;   ///< drawn but not trained on; ascending
  double grace_period_s = 60;        ///< from a termination notice until the ranks are killed
  bool skips(std::int64_t batch) const;
  friend bool operator==(const ResilienceSpec&, const ResilienceSpec&) = default;
};

/// Reads the keys local_checkpoints, verify_saves, verify_interval, skip_batches and grace_period. Throws Error{usage}:
/// an interval that is not a positive number of batches, fewer than two checkpoints kept, ranges that are not
/// ascending.
ResilienceSpec read_resilience(YamlMap& map, const RunClock& clock = {});
/// Writes the keys for read_resilience, except those at their defaults.
void resilience_to_yaml(const ResilienceSpec& spec, YAML::Emitter& out);

}  // namespace wt
