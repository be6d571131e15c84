// What a run does so that faults cost little: copies in the memory of nodes, checks of what was computed and saved,
// batches that are left out, and time to save before it ends. Keys of a run file.
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

/// Copies of the training state in the memory of nodes, beside the saves to storage.
struct LocalCheckpointSpec {
  std::int64_t interval = 0;     ///< steps between them; 0 = none
  std::filesystem::path folder;  ///< in the node's memory, such as /dev/shm; empty = in the output folder
  bool peer = true;              ///< a second copy on a node of another rack
  std::int64_t keep = 2;         ///< steps, beside the one that is being written
  friend bool operator==(const LocalCheckpointSpec&, const LocalCheckpointSpec&) = default;
};

/// Batches of the sample order, counted from 1.
struct BatchRange {
  std::int64_t first = 1, last = 1;  ///< both in it
  bool holds(std::int64_t batch) const { return first <= batch && batch <= last; }
  friend bool operator==(const BatchRange&, const BatchRange&) = default;
};

struct ResilienceSpec {
  LocalCheckpointSpec local;
  bool verify_saves = true;          ///< files are read back and compared before a checkpoint counts
  std::int64_t verify_interval = 0;  ///< steps between comparisons of what replicas hold; 0 = none
  std::vector<BatchRange> skipped;   ///< drawn and not trained on, ascending
  double grace_period_s = 60;        ///< from a notice to end until the ranks are killed
  bool skips(std::int64_t batch) const;
  friend bool operator==(const ResilienceSpec&, const ResilienceSpec&) = default;
};

/// Reads the keys local_checkpoints, verify_saves, verify_interval, skip_batches and grace_period. Throws Error{usage}:
/// an interval that is no number of batches or 0, fewer than two copies kept, ranges that are not ascending.
ResilienceSpec read_resilience(YamlMap& map, const RunClock& clock = {});
/// The keys that read_resilience reads back to the same, those with usual values left out.
void resilience_to_yaml(const ResilienceSpec& spec, YAML::Emitter& out);

}  // namespace wt
