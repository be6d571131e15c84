// Failure-rate presets: how often nodes of a published cluster stopped a job, and how long each phase of recovery
// takes. Every number carries its evidence. Rates are events per 1000 node-days of nodes with `node_gpus` GPUs. Counts
// are kept with their event class because published percentages contradict each other.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/evidence.hpp"
#include "configs/files/scenario.hpp"

namespace wt {

class YamlMap;

/// A number and where it comes from.
struct SourcedNumber {
  double value = 0;
  Provenance evidence;
};

/// A time with mean `value`: constant, or lognormal where the source also gives a median.
struct SourcedTime : SourcedNumber {
  SourcedTime() = default;
  SourcedTime(SourcedNumber mean, double median_s = 0) : SourcedNumber(std::move(mean)), median(median_s) {}
  double median = 0;  ///< s; 0 = constant
  /// Standard deviation of the logarithm: sqrt(2 ln(mean / median)); 0 = constant.
  double sigma() const;
};

/// Nodes that fail more often than the others.
struct BadNodes {
  double share = 0;   ///< of all nodes
  double factor = 1;  ///< their rate over that of a good node
};

struct FailureClass {
  std::string name;
  SourcedNumber per_1000_node_days;  ///< mean over good and bad nodes; for a rack, events per 1000 node-days of the job
  std::int64_t count = -1;           ///< events from which the rate follows; -1 = the source gives only a rate
  FaultDomain domain = FaultDomain::node;  ///< what one event stops: from a rank to a rail, or the whole job
  double shape = 1;                        ///< Weibull shape of the time between events of one entity
  BadNodes bad;
  SourcedTime duration;  ///< of an announced stop, in addition to save, restart and reload; 0 = restart at once
  /// Mean time between such events of a job on `nodes` nodes; 0 = never.
  double job_mean_s(std::int64_t nodes) const;
};

/// The phases between a failure and the first new step, s.
struct RecoveryTimes {
  SourcedTime detect_s;      ///< from the failure until the job is stopped
  SourcedTime reschedule_s;  ///< until healthy nodes are assigned
  SourcedTime restart_s;     ///< until processes and communicators are up
  SourcedTime reload_s;      ///< until the checkpoint is loaded
  double total_s() const { return detect_s.value + reschedule_s.value + restart_s.value + reload_s.value; }
};
/// Reads a time with its evidence at a key of `parent`; of a spread time, also mean and median.
SourcedTime read_sourced_time(YamlMap& parent, const std::string& key);
/// Reads the section `recovery`. Throws Error{usage} where one of the four is missing.
RecoveryTimes read_recovery_times(YamlMap& file);

/// Nodes that become slower for some time. The whole job waits for its slowest node.
struct StragglerRates {
  FailureClass onset;
  SourcedNumber step_factor;   ///< step time with one slow node over that without, >= 1; 0 = simulate it
  SourcedNumber node_compute;  ///< input of that simulation: compute speed of the slow node, healthy = 1
  SourcedNumber duration_s;    ///< until it recovers by itself or is detected
  bool exchanged = false;      ///< detected nodes are replaced, after a checkpoint
};

struct FailurePreset {
  std::string name;
  std::string title;
  std::int64_t node_gpus = 8;
  std::vector<FailureClass> failures;  ///< stop the job; work since the last checkpoint is lost
  std::vector<FailureClass> planned;   ///< announced stops; a checkpoint is taken first
  RecoveryTimes recovery;
  std::optional<StragglerRates> stragglers;
  std::optional<FailureClass> silent_errors;  ///< wrong results without an error message

  double failures_per_1000_node_days() const;
  double planned_per_1000_node_days() const;
  /// Mean time between failures of a job on `nodes` nodes: 1 / (nodes x rate). Too long above about 2,000 nodes, where
  /// common causes make observed rates grow faster than the node count. Throws Error{usage} when nodes < 1.
  SourcedNumber job_mtbf_s(std::int64_t nodes) const;
  /// The same for planned stops; value 0 = none known.
  SourcedNumber planned_mtbs_s(std::int64_t nodes) const;
  /// Mean duration of a planned stop, in addition to save, restart and reload; 0 = restart at once.
  SourcedTime planned_duration_s() const;
};

/// Reads a preset of configs/faults/rates or a file. Throws Error{usage} with file, line, found and allowed.
FailurePreset read_failures(const std::string& name_or_file);
FailurePreset read_failures_file(const std::filesystem::path& file);
/// Slow nodes of a preset or file; nothing for "none". Throws Error{usage} where the preset describes none.
std::optional<StragglerRates> read_stragglers(const std::string& name_or_file);
/// Silent errors of a preset or file; the same rules.
std::optional<FailureClass> read_silent_errors(const std::string& name_or_file);

}  // namespace wt
