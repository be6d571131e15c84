// Fault scenarios: what strikes whom and when, how the run is to recover, and what must hold afterwards. One file for
// both worlds: the drill really injects it into the trainer's ranks, and the simulated months replay it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"

namespace wt {

struct RunSpec;

/// What fails together. Of a drill the machine's virtual nodes (NodeShape), of simulated months those of the cluster.
enum class FaultDomain {
  rank,     ///< one process and its device
  node,     ///< all ranks of one node
  rack,     ///< all nodes of one rack
  leaf,     ///< all nodes under one leaf switch; simulated alone
  rail,     ///< the NICs of one number on all nodes; simulated alone
  replica,  ///< all ranks of one data-parallel replica (HSDP)
  storage,  ///< the checkpoints that all ranks see
  store,    ///< the process with the rendezvous store
  agent,    ///< the process that starts and watches the ranks
  all       ///< every rank
};
std::string to_string(FaultDomain domain);

/// Whom an event strikes.
struct Victims {
  FaultDomain domain = FaultDomain::rank;
  /// Number of the member, from 0, of an event at a step or a time. None: all alike at a rate, and those that a trace
  /// names. Storage, store, agent and all have none.
  std::optional<std::int64_t> index;
  double share = 0;  ///< > 0: this share of the members, the same ones for the whole run, each by a clock of its own
};

/// When an event strikes: at a place in a step, at a time, at random, or as a trace says.
struct FaultTime {
  enum class By { step, time, rate, trace };
  /// Where in a step. `op` has an id. A save writes data, then its manifest, then `latest`: `checkpoint` is while the
  /// data is written, `manifest` between the last two. Reload and restart strike a later generation as it loads or
  /// starts.
  enum class Place { begin, op, checkpoint, manifest, reload, restart };
  /// Of an op: before it is issued; a collective that is issued and not waited for; while it is waited for.
  enum class Phase { before, issued, waiting };

  By by = By::step;
  std::int64_t step = 0;  ///< counted from 1; of a save the step that it is named by; 0 at reload and restart
  Place place = Place::begin;
  std::string op;  ///< id of an op of the step program ("mb0.L1.experts.bwd")
  Phase phase = Phase::before;
  bool saved = false;             ///< in a step: once the save before it is whole, which it is written beside
  double after = 0;               ///< at a checkpoint: the share of the rank's bytes that is written before, 0..1
  double time_s = 0;              ///< wall time since the run began
  double per_1000_node_days = 0;  ///< expected strikes on the domain's members
  double shape = 1;               ///< Weibull; 1 = exponential
  std::filesystem::path trace;    ///< CSV with the columns time_s,index,lasts_s
};

/// The place as files write it: "begin", "checkpoint", an op's id.
std::string to_string(const FaultTime& place);
std::string to_string(FaultTime::Phase phase);

enum class FaultKind {
  kill,            ///< SIGKILL
  abort,           ///< SIGABRT
  segfault,        ///< SIGSEGV
  exit,            ///< the process ends with a status
  exception,       ///< an exception leaves the step
  hang,            ///< the process is stopped (SIGSTOP), or its main thread never returns
  slow,            ///< computation takes longer by a factor
  damage,          ///< a checkpoint's file is changed; another event makes it be read
  corrupt,         ///< numbers in memory are changed without a message
  disk_full,       ///< writing fails with ENOSPC
  file_too_large,  ///< writing fails with EFBIG
  partition,       ///< the victims' connections to all other ranks are cut
  maintenance      ///< a signal announces the end: save and end
};
std::string to_string(FaultKind kind);

enum class FileDamage { flip_bit, truncate, zero, remove, exchange, old_manifest, stale_latest };
std::string to_string(FileDamage damage);
/// Where a copy of a checkpoint lies.
enum class CopyLevel { storage, local, peer };
std::string to_string(CopyLevel level);
enum class TensorKind { gradient, weight, moment, activation };
std::string to_string(TensorKind tensor);

/// What happens. Of each kind only its own fields count.
struct FaultEffect {
  FaultKind kind = FaultKind::kill;
  bool takes_local_copies = false;  ///< kill: what the node's memory holds of checkpoints is gone, too
  int status = 0;                   ///< exit
  bool thread = false;              ///< hang: of the main thread alone; the watch thread lives
  double factor = 1;                ///< slow: > 1
  FileDamage damage = FileDamage::flip_bit;
  CopyLevel level = CopyLevel::storage;  ///< damage: of the newest checkpoint there
  TensorKind tensor = TensorKind::gradient;
  std::int64_t layer = 0;    ///< corrupt: of the model's blocks
  std::int64_t element = 0;  ///< corrupt: of the rank's part of it, counted around its end
  std::optional<int> bit;    ///< corrupt: 0..31, of the element's own bits; none = the whole tensor becomes zero
  double bytes = 0;          ///< disk_full, file_too_large: that can still be written
  int signal = 15;           ///< maintenance: SIGTERM or SIGUSR1
  double notice_s = 60;      ///< maintenance: from the signal to SIGKILL
};

enum class DetectedBy { exit, peer, watchdog, heartbeat, metric, verify, human };
std::string to_string(DetectedBy by);

struct FaultEvent {
  Victims who;
  FaultTime when;
  int generation = 0;  ///< restarts of the ranks before it can strike; > 0 strikes during the recovery from another
  int repeats = 1;     ///< strikes in so many generations, one after the other
  FaultEffect what;
  std::optional<double> lasts_s;  ///< of a hang, a slow phase, a repair; none = forever
  std::optional<Provenance> cause;
  std::optional<DetectedBy> detected_by;
  std::optional<double> detected_within_s;  ///< a limit for the drill, the time in the months
};

/// What to do when ranks are lost; the first that is possible.
enum class Recovery { restart, spare, shrink, without_replica, wait };
std::string to_string(Recovery recovery);

struct RecoveryPolicy {
  std::vector<Recovery> on_loss{Recovery::restart};
  std::int64_t min_replicas = 1;             ///< without_replica, shrink: as many must be left
  std::int64_t retries_same_place = 1;       ///< restarts with the same ranks on the same nodes after the same failure
  std::optional<std::int64_t> max_restarts;  ///< none = train's own
};

/// Virtual nodes of a drill on one machine.
struct NodeShape {
  std::int64_t ranks = 1;     ///< each
  std::int64_t per_rack = 0;  ///< nodes of a rack; 0 = all are in one
  std::int64_t spares = 0;    ///< further nodes that stand by
};

/// What must hold after recovery, beside what always must: every event struck, each sample was trained once and in
/// order, a step done twice gave the same bits, and nothing is left behind.
struct Expectation {
  /// Losses and state equal the undisturbed run's bit by bit; or as close as layouts are to each other, where the world
  /// changed on the way; or the state at the end is another one, and losses are the same until the first strike, where
  /// the fault changes numbers that nobody compares; or nothing is asked, where it may.
  enum class State { bitwise, layouts, changed, any };
  State state = State::bitwise;
  bool finishes = true;  ///< false: the run must end with an error
  std::optional<std::int64_t> restarts;
  std::int64_t relaunches = 0;  ///< times that train is called again, because its agent is gone or it ended on request
  std::vector<std::int64_t>
      resumed_after;  ///< the step that each recovery went on from; fewer: the first ones; none: any
  std::optional<std::int64_t> steps_lost;             ///< done and done again, over all recoveries
  std::vector<CopyLevel> level;                       ///< that each recovery loaded from, likewise
  std::optional<std::vector<std::int64_t>> excluded;  ///< nodes that the run ends without
  std::string says;                                   ///< in what the run says of the failure
  std::optional<double>
      within_s;  ///< each recovery that no other failure cut short, from detection to the first step's end
};
std::string to_string(Expectation::State state);

struct Scenario {
  std::string name;
  std::string run;  ///< a preset of configs/runs or a file; empty = for simulated months alone
  NodeShape nodes;
  RecoveryPolicy policy;
  std::vector<FaultEvent> events;
  Expectation expect;
  std::filesystem::path file;
};

/// A preset of configs/faults or a file. Throws Error{usage} with file, line, found and allowed: keys, combinations of
/// kind, domain and place that make no sense, contradictory policies.
Scenario read_scenario(const std::string& name_or_file);
Scenario read_scenario_file(const std::filesystem::path& file);
/// A file that reads back to the same scenario.
std::string scenario_to_yaml(const Scenario& scenario);

/// Where a rank is, for whom an event strikes.
struct RankPlace {
  std::int64_t rank = 0, node = 0, rack = 0, replica = 0;
  int generation = 0;
};
/// Whether the event strikes ranks at this place in this generation. False for storage, store and agent.
bool strikes(const FaultEvent& event, const RankPlace& place);

/// Throws Error{usage} for what cannot happen in real training of the run: events by rate, time or trace, domains that
/// are simulated alone, members, steps, saves and ops that it has not, more spares than nodes, a policy that needs
/// replicas or nodes that are not there. `op_ids`: of one step of any rank; `collectives`: those of them that
/// communicate.
void check_drill(const Scenario& scenario, const RunSpec& run, const std::vector<std::string>& op_ids,
                 const std::vector<std::string>& collectives);

}  // namespace wt
