// Failure-rate presets: how often nodes of a published cluster stopped a job, and how long each phase of recovery
// takes. Every number carries its evidence. Rates are events per 1000 node-days, nodes of `node_gpus` GPUs; counts are
// kept with their event class because published percentages contradict each other.
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

/// A time of a mean `value`: constant, or lognormal where the source gives a median, too.
struct SourcedTime : SourcedNumber {
  SourcedTime() = default;
  SourcedTime(SourcedNumber mean, double median_s = 0) : SourcedNumber(std::move(mean)), median(median_s) {}
  double median = 0;  ///< s; 0 = constant
  /// Of the logarithm: sqrt(2 ln(mean / median)), 0 = constant.
  double sigma() const;
};

/// Some nodes fail more often than the others.
struct BadNodes {
  double share = 0;   ///< of all nodes
  double factor = 1;  ///< their rate over that of a good node
};

struct FailureClass {
  std::string name;
  SourcedNumber per_1000_node_days;  ///< mean over good and bad nodes; of a rack: events per 1000 node-days of the job
  std::int64_t count = -1;           ///< events behind the rate, -1 = the source gives a rate only
  FaultDomain domain = FaultDomain::node;  ///< rank to rail, or all: what an event strikes at once
  double shape = 1;                        ///< of the Weibull law of the time between events of one entity
  BadNodes bad;
  SourcedTime duration;  ///< of an announced stop, beside save, restart and reload; 0 = it goes on at once
  /// Mean time between such events in a job on `nodes` nodes, 0 = never.
  double job_mean_s(std::int64_t nodes) const;
};

/// Seconds of each phase between a failure and the first new step.
struct RecoveryTimes {
  SourcedTime detect_s;      ///< failure until it is noticed and the job stopped
  SourcedTime reschedule_s;  ///< until healthy nodes are assigned
  SourcedTime restart_s;     ///< processes and communicators up
  SourcedTime reload_s;      ///< checkpoint loaded
  double total_s() const { return detect_s.value + reschedule_s.value + restart_s.value + reload_s.value; }
};
/// The time at a key of `parent`, with its evidence, and its mean where it is spread.
SourcedTime read_sourced_time(YamlMap& parent, const std::string& key);
/// The section `recovery` of a file. Throws Error{usage} where one of the four is missing.
RecoveryTimes read_recovery_times(YamlMap& file);

/// Nodes that become slower for a while. The job waits for its slowest node.
struct StragglerRates {
  FailureClass onset;
  SourcedNumber step_factor;   ///< step time of the job with one slow node over that without, >= 1; 0 = to be simulated
  SourcedNumber node_compute;  ///< from this: how fast the slow node computes, healthy = 1
  SourcedNumber duration_s;    ///< until it recovers by itself, or is found
  bool exchanged = false;      ///< found nodes are exchanged, with a checkpoint first
};

struct FailurePreset {
  std::string name;
  std::string title;
  std::int64_t node_gpus = 8;
  std::vector<FailureClass> failures;  ///< stop the job, work since the last checkpoint is lost
  std::vector<FailureClass> planned;   ///< announced stops: a checkpoint is taken first
  RecoveryTimes recovery;
  std::optional<StragglerRates> stragglers;
  std::optional<FailureClass> silent_errors;  ///< wrong results without an error message

  double failures_per_1000_node_days() const;
  double planned_per_1000_node_days() const;
  /// Mean time between failures of a job on `nodes` nodes: 1 / (nodes x rate). Do not trust it past about 2,000 nodes,
  /// where observed rates grow faster than the node count (common causes). Throws Error{usage} when nodes < 1.
  SourcedNumber job_mtbf_s(std::int64_t nodes) const;
  /// The same for planned stops; value 0 = none known.
  SourcedNumber planned_mtbs_s(std::int64_t nodes) const;
  /// How long such a stop lasts, mean over the classes beside save, restart and reload; 0 = it goes on at once.
  SourcedTime planned_duration_s() const;
};

/// A preset of configs/faults/rates or a file. Throws Error{usage} with file, line, found and allowed.
FailurePreset read_failures(const std::string& name_or_file);
FailurePreset read_failures_file(const std::filesystem::path& file);
/// The slow nodes of a preset or file; nothing for "none". Throws Error{usage} where the preset describes none.
std::optional<StragglerRates> read_stragglers(const std::string& name_or_file);
/// Its silent errors, likewise.
std::optional<FailureClass> read_silent_errors(const std::string& name_or_file);

}  // namespace wt
