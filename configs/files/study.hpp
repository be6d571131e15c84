// A study: a question to the planner. It names the model, the cluster, the number of tokens and the search space.
#pragma once
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "configs/files/adapted_modules.hpp"
#include "configs/files/cluster.hpp"
#include "configs/files/evidence.hpp"
#include "configs/files/failures.hpp"
#include "configs/files/layout.hpp"
#include "configs/files/measured_steps.hpp"
#include "configs/files/model.hpp"
#include "configs/files/precisions.hpp"
#include "configs/files/search_space.hpp"
#include "configs/files/storage_rates.hpp"

namespace wt {

/// The cost of a save. One replica writes. Its ranks copy their shards to host memory, which blocks training, and write
/// them in the background, at the storage's measured rate or otherwise at the cluster file's.
struct CheckpointSpec {
  double bytes_per_parameter = 12;  ///< fp32 master and two AdamW moments; for a frozen model only the master
  double copy_Bps = 25e9;           ///< one GPU to host memory, while all GPUs of a node copy
  bool copy_given = false;          ///< by the study; profiles do not replace it
  Provenance evidence;              ///< of the copy bandwidth
  double interval_s = 0;            ///< requested work between saves; 0 = the planner's best
  /// Local saves, in host memory of the node and a peer, between the others. They block as long as a save.
  double local_every_s = 0;   ///< work between local saves, 0 = none
  double local_survival = 0;  ///< share of failures after which they are intact
  Provenance local_evidence;  ///< of that share
  std::string store;          ///< address of the object store for saves; empty = the cluster's file system
  StorageRates rates;         ///< measured by the study's profiles; empty when the file is read
  std::string rates_note;     ///< why no measured rates apply; "" where they do
  bool elsewhere = false;     ///< on another cluster than the study's: its profiles' storage rows do not apply
};

/// Factors on measured values, 1 = unchanged: the inputs of sensitivities and what-ifs.
struct ScaleSpec {
  double compute_rate = 1;
  double clock = 1;  ///< of compute-bound kernels (clock or power state); memory-bound kernels keep their times
  double network_bandwidth = 1;  ///< NICs
  double network_latency = 1;    ///< of every collective
  double imbalance = 1;          ///< of the deviations of expert shares from their mean; 0 = balanced
  double mtbf = 1;
  double storage_bandwidth = 1;
};

/// The default failure rates: the largest published run on H100 (Llama 3 405B, 16,384 GPUs).
constexpr const char* kDefaultFailures = "llama3";

/// Announced stops, before which a checkpoint is taken.
struct MaintenanceSpec {
  double every_s = 0;  ///< wall time between them, 0 = none
  double duration_s = 0;
};

/// Errors without a message, checked for before each save.
struct SilentErrorSpec {
  std::string rate = "none";  ///< the failure preset or file with the rate, or "none"
  double verify_s = 0;        ///< time of a check
  double found_after_s = 0;   ///< mean training time until detection without checks; 0 = unknown
  Provenance evidence;        ///< of these times
};

/// The cost of a failure that stops one replica instead of the job (HSDP).
struct ReplicaLossSpec {
  double recover_s = 0;  ///< after the stall, until the replica is back; 0 = a failure stops the job
  double stall_s = 0;    ///< of all other replicas
  Provenance evidence;
};

/// Spare nodes with running processes.
struct HotSpareSpec {
  double activate_s = -1;  ///< from the decision until all ranks are ready to load; < 0 = no hot spares
  Provenance evidence;
};

/// Drift of expert loads: whether to move experts during the run.
struct DriftSpec {
  std::vector<std::string> loads;  ///< histograms in the order of time, or one recording; empty = not asked
  std::int64_t every = 0;          ///< steps per histogram, or per piece of the recording
  double pause_s = 0;              ///< cost of a move in addition to the transfer, such as a restart of the trainer
};

inline constexpr std::int64_t kMostSpares = 100'000;  ///< spare nodes; more is a typing error

/// What a plan minimises; equal plans are ordered by days. With a fixed number of GPUs, fewest days is least money,
/// too.
enum class Prefer { days, gpus, money, energy };
/// "days", "gpus", "money", "energy".
const std::vector<std::string>& prefer_names();

struct StudySpec {
  std::string name;
  ModelSpec model;
  std::optional<LoraSpec> lora;  ///< model.peft_config: adapters are trained, the model is frozen
  ClusterSpec cluster;           ///< with nodes = gpus / gpus_per_node
  std::int64_t gpus = 0;
  std::vector<std::string> profiles;   ///< measured on the cluster's machines: files or names in configs/profiles
  std::string stack;                   ///< of configs/stacks; may be empty only on shared cores
  std::string measured_file;           ///< absolute; "" = none
  std::vector<MeasuredStep> measured;  ///< steps of the user's own job, which correct the stack's times
  double tokens = 0;
  std::int64_t seq = 0;
  std::int64_t global_batch = 0;  ///< sequences a step
  PrecisionRecipe precision = precision_recipe("amp_bf16", "precision");
  std::vector<std::string> routing;  ///< histograms, families of them, "trained" or "balanced"
  DriftSpec drift;
  std::string failures;
  std::string recovery;    ///< measured recovery times that replace those of `failures`; empty = keep them
  std::string stragglers;  ///< the failure preset or file with the rates of slow nodes, or "none"
  MaintenanceSpec maintenance;
  SilentErrorSpec silent_errors;
  ReplicaLossSpec replica_loss;
  HotSpareSpec hot_spares;
  std::vector<std::string> faults;  ///< scenarios whose events are added to `failures` when policies are compared
  CheckpointSpec checkpoint;
  SearchSpec search;
  ScaleSpec scale;
  std::optional<PriceSpec> prices;  ///< the study's, otherwise the cluster's; none = GPU-hours have no price
  Prefer prefer = Prefer::days;
  std::optional<std::int64_t> spare_nodes;  ///< none = chosen with the cadence
  double repair_s = 86400;                  ///< time until a failed node is back
  std::int64_t runs = 1000;                 ///< simulated runs for the finish date
  std::uint64_t seed = 1;
  std::vector<std::string> assumptions;  ///< sentences of the study's author that a plan repeats
  std::filesystem::path data;            ///< MDS folder for the plan's run file; may be empty
  std::string text;                      ///< the file's bytes, for a hash of the configuration

  std::int64_t tokens_per_step() const { return global_batch * seq; }
  std::optional<AdapterShape> adapters() const {
    return lora ? std::optional(adapter_shape(model, *lora)) : std::nullopt;
  }
  /// Model FLOPs per token of the trained weights (adapted_modules.hpp).
  double flops_per_token() const { return wt::flops_per_token(model, adapters(), seq); }
  std::int64_t steps() const;  ///< rounded up
};

/// Strict; throws Error{usage} with file, line, found, allowed: unknown keys and presets, gpus that are not whole
/// nodes, keys with several values (study_options.hpp).
StudySpec read_study(const std::string& name_or_file);
/// The same for a text; relative names are looked up likewise. `asked` collects the dotted keys that were looked up.
StudySpec study_from_text(const std::string& text, const std::string& origin, std::set<std::string>* asked = nullptr);

/// Reads a preset or file of rates (`failures` of the study), with the recovery times of the study's `recovery` if it
/// names one. Throws Error{usage}.
FailurePreset failures_of(const StudySpec& study, const std::string& rates);

/// The study with all keys, defaults included; reads back to the same study. Optional sections (maintenance and others)
/// are written only where the study has them.
std::string study_yaml(const StudySpec& study);

/// Profiles in configs/profiles from a GPU with the same data sheet: "H100-SXM-80GB" matches "NVIDIA H100 80GB HBM3",
/// "H100-PCIe" does not. Empty when there are none, or the GPU has no known data sheet.
std::vector<std::string> profiles_for_gpu(const std::string& gpu_name);
/// Default loads: {"trained"}, those of trained models with the same kind of balancing; {"capacity-1.25"} for
/// a model with that capacity; {"balanced"} for dense models.
std::vector<std::string> routing_for_model(const ModelSpec& model);

}  // namespace wt
