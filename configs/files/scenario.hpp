// Fault scenarios: which faults occur where and when, how the run should recover, and what must hold afterwards. A
// drill injects them into the trainer's ranks; the simulated months replay the same file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"

namespace wt {

struct RunSpec;

/// What fails together. A drill uses the machine's virtual nodes (NodeShape), simulated months the cluster's nodes.
enum class FaultDomain {
  rank,     ///< one process and its device
  node,     ///< all ranks of one node
  rack,     ///< all nodes of one rack
  leaf,     ///< all nodes under one leaf switch; only simulated
  rail,     ///< the NICs with one number on all nodes; only simulated
  replica,  ///< all ranks of one data-parallel replica (HSDP)
  storage,  ///< the checkpoints that all ranks see
  store,    ///< the process with the rendezvous store
  agent,    ///< the process that starts and watches the ranks
  all       ///< every rank
};
std::string to_string(FaultDomain domain);

/// The ranks or processes that an event affects.
struct Victims {
  FaultDomain domain = FaultDomain::rank;
  /// Index of the affected member of the domain, from 0. None: every member alike at a rate, or as the trace says.
  /// Storage, store, agent and all have no index.
  std::optional<std::int64_t> index;
  double share = 0;  ///< > 0: a fixed random share of the members for the whole run, each with independent events
};

/// When an event occurs: at a place in a step, at a time, at random, or as listed in a trace.
struct FaultTime {
  enum class By { step, time, rate, trace };
  /// Place in a step. `op` names an op. A save writes data, then its manifest, then `latest`: `checkpoint` is while
  /// data is written, `manifest` is between manifest and `latest`. `reload` and `restart` are the load and the start of
  /// a later generation.
  enum class Place { begin, op, checkpoint, manifest, reload, restart };
  /// Phase of an op: before it is issued; a collective issued but not yet waited for; during the wait.
  enum class Phase { before, issued, waiting };

  By by = By::step;
  std::int64_t step = 0;  ///< from 1; for a save the step in its name; 0 at reload and restart
  Place place = Place::begin;
  std::string op;  ///< id of an op of the step program ("mb0.L1.experts.bwd")
  Phase phase = Phase::before;
  bool saved = false;             ///< in a step: only after the preceding save, written in the background, is complete
  double after = 0;               ///< at a checkpoint: the share of the rank's bytes written before the event, 0..1
  double time_s = 0;              ///< wall time since the run began
  double per_1000_node_days = 0;  ///< expected events over the domain's members
  double shape = 1;               ///< Weibull; 1 = exponential
  std::filesystem::path trace;    ///< CSV with the columns time_s,index,lasts_s
};

/// The place as in files: "begin", "checkpoint", an op's id.
std::string to_string(const FaultTime& place);
std::string to_string(FaultTime::Phase phase);

enum class FaultKind {
  kill,            ///< SIGKILL
  abort,           ///< SIGABRT
  segfault,        ///< SIGSEGV
  exit,            ///< the process ends with a status
  exception,       ///< an exception is thrown out of the step
  hang,            ///< the process is stopped (SIGSTOP), or its main thread never returns
  slow,            ///< computation takes longer by a factor
  damage,          ///< a checkpoint's file is changed; a second event must cause it to be read
  corrupt,         ///< numbers in memory change silently
  disk_full,       ///< writes fail with ENOSPC
  file_too_large,  ///< writes fail with EFBIG
  partition,       ///< the affected ranks lose their connections to all others
  maintenance      ///< a signal announces the end: the run saves and ends
};
std::string to_string(FaultKind kind);

enum class FileDamage { flip_bit, truncate, zero, remove, exchange, old_manifest, stale_latest };
std::string to_string(FileDamage damage);
/// Which copy of a checkpoint.
enum class CopyLevel { storage, local, peer };
std::string to_string(CopyLevel level);
enum class TensorKind { gradient, weight, moment, activation };
std::string to_string(TensorKind tensor);

/// The fault itself. Only the fields of its kind are used.
struct FaultEffect {
  FaultKind kind = FaultKind::kill;
  bool takes_local_copies = false;  ///< kill: checkpoints in the node's memory are lost, too
  int status = 0;                   ///< exit
  bool thread = false;              ///< hang: only the main thread hangs; the watch thread continues
  double factor = 1;                ///< slow: > 1
  FileDamage damage = FileDamage::flip_bit;
  CopyLevel level = CopyLevel::storage;  ///< damage: of that level's newest checkpoint
  TensorKind tensor = TensorKind::gradient;
  std::int64_t layer = 0;    ///< corrupt: index of a block of the model
  std::int64_t element = 0;  ///< corrupt: index in the rank's part of the tensor, modulo its size
  std::optional<int> bit;    ///< corrupt: bit of the element's format, 0..31; none = the whole tensor becomes zero
  double bytes = 0;          ///< disk_full, file_too_large: what can still be written
  int signal = 15;           ///< maintenance: SIGTERM or SIGUSR1
  double notice_s = 60;      ///< maintenance: time from the signal to SIGKILL
};

enum class DetectedBy { exit, peer, watchdog, heartbeat, metric, verify, human };
std::string to_string(DetectedBy by);

struct FaultEvent {
  Victims who;
  FaultTime when;
  int generation = 0;  ///< restarts of the ranks before the event; > 0: it occurs during the recovery from another
  int repeats = 1;     ///< occurs in this many consecutive generations
  FaultEffect what;
  std::optional<double> lasts_s;  ///< duration of a hang, a slowdown, a repair; none = forever
  std::optional<Provenance> cause;
  std::optional<DetectedBy> detected_by;
  std::optional<double> detected_within_s;  ///< in a drill the limit, in simulated months the time
};

/// Reactions to a loss of ranks; the first possible one of a list is taken.
enum class Recovery { restart, spare, shrink, without_replica, wait };
std::string to_string(Recovery recovery);

struct RecoveryPolicy {
  std::vector<Recovery> on_loss{Recovery::restart};
  std::int64_t min_replicas = 1;             ///< without_replica, shrink: replicas that must remain
  std::int64_t retries_same_place = 1;       ///< restarts of the same ranks on the same nodes after the same failure
  std::optional<std::int64_t> max_restarts;  ///< none = the default of `train`
};

/// Virtual nodes of a drill on one machine.
struct NodeShape {
  std::int64_t ranks = 1;     ///< of each node
  std::int64_t per_rack = 0;  ///< nodes of a rack; 0 = one rack for all
  std::int64_t spares = 0;    ///< additional spare nodes
};

/// What must hold after recovery. Always checked in addition: every event occurred, each sample was trained on once and
/// in order, a repeated step gave the same bits, and no process or file is left behind.
struct Expectation {
  /// Losses and state equal the undisturbed run's bit by bit; or as close as layouts are to each other, where the world
  /// changed on the way; or the state at the end is another one, and losses are the same until the first strike, where
  /// the fault changes numbers that nobody compares; or nothing is asked, where it may.
  enum class State { bitwise, layouts, changed, any };
  State state = State::bitwise;
  bool finishes = true;  ///< false: the run must end with an error
  std::optional<std::int64_t> restarts;
  std::int64_t relaunches = 0;  ///< new calls of `train`, because its agent died or it ended on request
  std::vector<std::int64_t>
      resumed_after;  ///< for each recovery the step that it resumed from; a shorter list: the first recoveries
  std::optional<std::int64_t> steps_lost;             ///< steps that were repeated, over all recoveries
  std::vector<CopyLevel> level;                       ///< for each recovery the level that it loaded from, likewise
  std::optional<std::vector<std::int64_t>> excluded;  ///< nodes that the run no longer uses at its end
  std::string says;                                   ///< text that the run's report of the failure contains
  std::optional<double>
      within_s;  ///< limit of each uninterrupted recovery, from detection to the end of the first step
};
std::string to_string(Expectation::State state);

struct Scenario {
  std::string name;
  std::string run;  ///< a preset of configs/runs or a file; empty = only for simulated months
  NodeShape nodes;
  RecoveryPolicy policy;
  std::vector<FaultEvent> events;
  Expectation expect;
  std::filesystem::path file;
};

/// Reads a preset of configs/faults or a file. Throws Error{usage} with file, line, found and allowed: keys, impossible
/// combinations of kind, domain and place, contradictory policies.
Scenario read_scenario(const std::string& name_or_file);
Scenario read_scenario_file(const std::filesystem::path& file);
/// Writes a file for read_scenario_file.
std::string scenario_to_yaml(const Scenario& scenario);

/// A rank and its place, to match events.
struct RankPlace {
  std::int64_t rank = 0, node = 0, rack = 0, replica = 0;
  int generation = 0;
};
/// Whether the event affects this rank in this generation. False for storage, store and agent.
bool strikes(const FaultEvent& event, const RankPlace& place);

/// Throws Error{usage} for what real training of the run cannot do: events by rate, time or trace, domains that are
/// only simulated, members, steps, saves and ops that the run does not have, more spares than nodes, a policy that
/// needs missing replicas or nodes. `op_ids`: the ops of one step of any rank; `collectives`: those that communicate.
void check_drill(const Scenario& scenario, const RunSpec& run, const std::vector<std::string>& op_ids,
                 const std::vector<std::string>& collectives);

}  // namespace wt
