// A study: a question to the planner. Which model, on which cluster, for how many tokens, and what the search may vary.
#pragma once
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/adapted_modules.hpp"
#include "configs/files/cluster.hpp"
#include "configs/files/evidence.hpp"
#include "configs/files/failures.hpp"
#include "configs/files/layout.hpp"
#include "configs/files/model.hpp"
#include "configs/files/search_space.hpp"
#include "configs/files/storage_rates.hpp"

namespace wt {

/// What a save costs. One replica writes; its ranks copy their shards to host memory (which blocks training) and write
/// them in the background at what was measured of the storage, else at what the cluster says of it.
struct CheckpointSpec {
  double bytes_per_parameter = 12;  ///< fp32 master and two AdamW moments; of a frozen model the master
  double copy_Bps = 25e9;           ///< one GPU to host memory, while all of a node copy
  bool copy_given = false;          ///< by the study, and not to be taken from its profiles
  Provenance evidence;              ///< of the copy bandwidth
  double interval_s = 0;            ///< work between saves that is asked for; 0 = the best
  /// Copies in host memory of the node and a peer, between the saves; they block as long as a save does.
  double local_every_s = 0;   ///< work between them, 0 = none
  double local_survival = 0;  ///< share of failures that leave them intact
  Provenance local_evidence;  ///< of that share
  std::string store;          ///< address of the object store that saves go to; empty = the cluster's file system
  StorageRates rates;         ///< measured of it by the study's profiles; empty as the file is read
  std::string rates_note;     ///< why nothing measured counts; "" where something does
  bool elsewhere = false;     ///< on another cluster than the study's: storage rows of its profiles say nothing
};

/// Factors on what was measured, 1 = as it is: the inputs of sensitivities and what-ifs.
struct ScaleSpec {
  double compute_rate = 1;
  double clock =
      1;  ///< of computation that arithmetic limits (clock or power state); what moves memory keeps its times
  double network_bandwidth = 1;  ///< NICs
  double network_latency = 1;    ///< of every collective
  double imbalance = 1;          ///< of expert shares around their mean; 0 = balanced
  double mtbf = 1;
  double storage_bandwidth = 1;
};

/// The failure rates where nobody says any: the largest published run on H100 (Llama 3 405B, 16,384 GPUs).
constexpr const char* kDefaultFailures = "llama3";

/// Stops known beforehand, so that a checkpoint is taken first.
struct MaintenanceSpec {
  double every_s = 0;  ///< wall time between them, 0 = none
  double duration_s = 0;
};

/// Errors without a message, looked for before each save.
struct SilentErrorSpec {
  std::string rate = "none";  ///< the failure preset or file that says how often, or "none"
  double verify_s = 0;
  double found_after_s = 0;  ///< without the verification, mean training time; 0 = not known
  Provenance evidence;       ///< of these times
};

/// What a failure costs where it stops one replica, not the job (HSDP).
struct ReplicaLossSpec {
  double recover_s = 0;  ///< after the stall, until it is back; 0 = a failure stops the job
  double stall_s = 0;    ///< of all others
  Provenance evidence;
};

/// Spare nodes with their processes up.
struct HotSpareSpec {
  double activate_s = -1;  ///< from the decision to all ranks ready to load; < 0 = nobody says, there are none
  Provenance evidence;
};

/// Loads of experts as they drift: whether to place experts anew while the run goes on.
struct DriftSpec {
  std::vector<std::string> loads;  ///< histograms in the order of time, or one recording; empty = not asked
  std::int64_t every = 0;          ///< steps that each histogram stands for, or into which the recording is cut
  double pause_s = 0;              ///< that a move costs beside the moving: a restart, where the trainer needs one
};

inline constexpr std::int64_t kMostSpares = 100'000;  ///< nodes that stand by; more is a slip of the pen

/// What a plan makes smallest, of equal ones days; of given GPUs the fewest days are the least money, too.
enum class Prefer { days, gpus, money, energy };
/// "days", "gpus", "money", "energy".
const std::vector<std::string>& prefer_names();

struct StudySpec {
  std::string name;
  ModelSpec model;
  std::optional<LoraSpec> lora;  ///< model.peft_config: adapters are trained, the model is frozen
  ClusterSpec cluster;           ///< with nodes = gpus / gpus_per_node
  std::int64_t gpus = 0;
  std::vector<std::string> profiles;  ///< measured on the cluster's machines: files or names in configs/profiles
  std::string stack;                  ///< of configs/stacks, that runs it; empty on shared cores alone
  double tokens = 0;
  std::int64_t seq = 0;
  std::int64_t global_batch = 0;  ///< sequences a step
  Precision precision = Precision::bf16;
  std::vector<std::string> routing;  ///< histograms, families of them, "trained" or "balanced"
  DriftSpec drift;
  std::string failures;
  std::string recovery;    ///< what a drill measured, in place of the times of `failures`; empty = theirs
  std::string stragglers;  ///< the failure preset or file whose slow nodes the run has, or "none"
  MaintenanceSpec maintenance;
  SilentErrorSpec silent_errors;
  ReplicaLossSpec replica_loss;
  HotSpareSpec hot_spares;
  std::vector<std::string> faults;  ///< scenarios whose events the compared policies meet beside `failures`
  CheckpointSpec checkpoint;
  SearchSpec search;
  ScaleSpec scale;
  std::optional<PriceSpec> prices;  ///< the study's, else the cluster's; none = GPU-hours have no price
  Prefer prefer = Prefer::days;
  std::optional<std::int64_t> spare_nodes;  ///< ready to take over; none = as many as the cadence wants
  double repair_s = 86400;                  ///< a failed node is away so long
  std::int64_t runs = 1000;                 ///< simulated runs behind the finish date
  std::uint64_t seed = 1;
  std::vector<std::string> assumptions;  ///< sentences of the study's author that a plan has to repeat
  std::filesystem::path data;            ///< MDS folder, for the plan file; may be empty
  std::string text;                      ///< the file's bytes: what a hash of the configuration covers

  std::int64_t tokens_per_step() const { return global_batch * seq; }
  std::optional<AdapterShape> adapters() const {
    return lora ? std::optional(adapter_shape(model, *lora)) : std::nullopt;
  }
  /// Model FLOPs of what is trained (adapted_modules.hpp).
  double flops_per_token() const { return wt::flops_per_token(model, adapters(), seq); }
  std::int64_t steps() const;  ///< rounded up
};

/// Strict; throws Error{usage} with file, line, found, allowed: unknown keys and presets, gpus that are no whole nodes,
/// keys with several values (study_options.hpp).
StudySpec read_study(const std::string& name_or_file);
/// Relative names inside are looked up as read_study does. `asked` gets the dotted keys that were looked for.
StudySpec study_from_text(const std::string& text, const std::string& origin, std::set<std::string>* asked = nullptr);

/// A preset or file of rates (`failures` of the study), with the times of `recovery` where the study names one. Throws
/// Error{usage}.
FailurePreset failures_of(const StudySpec& study, const std::string& rates);

/// The study with every key that it was planned with, those left out at their defaults: reading it gives the same
/// study. Sections that ask for more than usual (maintenance and the like) are there only where it has them.
std::string study_yaml(const StudySpec& study);

/// Profiles in configs/profiles that were taken on a GPU with the same data sheet: "H100-SXM-80GB" has those of
/// "NVIDIA H100 80GB HBM3", "H100-PCIe" has not. Empty when none is there, and for a GPU without a known data sheet.
std::vector<std::string> profiles_for_gpu(const std::string& gpu_name);
/// Loads where nobody says any: {"trained"}, as models train that are balanced as this one; {"balanced"} for dense
/// models alone.
std::vector<std::string> routing_for_model(const ModelSpec& model);

}  // namespace wt
