// The time of an op: what the simulator and the estimator ask, and what the machine model answers. Each answer says
// how it was found and on which evidence it rests.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"
#include "sim/cost/ops/all_reduce.hpp"
#include "sim/program/program.hpp"

namespace wt {

/// How a time was found, best first.
enum class Lookup { exact, staircase, fitted, roofline };
std::string to_string(Lookup lookup);

struct TimeEstimate {
  double seconds = 0;
  double low_s = 0, high_s = 0;  ///< 80 % interval
  Lookup lookup = Lookup::roofline;
  Evidence evidence = Evidence::assumed;  ///< how it was come by; of several items, the costliest's
  /// Seconds by the root of their evidence, summing to `seconds`: a time that follows from a published time counts as
  /// published, derived is only what has no root. All zero = all of it on `evidence`.
  EvidenceShares by_evidence{};
  bool seen_in_steps = false;  ///< from traces of training steps: its interval has what steps are off by

  EvidenceShares shares() const;  ///< by_evidence over its sum
  TimeEstimate& operator*=(double factor);
  TimeEstimate& operator+=(const TimeEstimate& other);  ///< seconds, interval and roots; lookup and evidence stay
};

/// The widest that a collective's interval gets: half of it over the time.
inline constexpr double kWidestSpread = 0.9;

/// A collective is a latency term plus load on shared resources. On machines whose ranks communicate by CPU (Gloo), the
/// load is CPU time of the host's cores; on GPU clusters it is bytes on NVSwitch, NIC and uplink pools, which the
/// cluster model shares out, slowed by an efficiency that depends on the message size.
struct CollectiveEstimate {
  double latency_s = 0;
  double cpu_s = 0;              ///< CPU seconds each rank's transport threads spend (0 on GPU clusters)
  double efficiency = 1.0;       ///< share of the pools' nominal bandwidth that a transfer of this size reaches, <= 1
  double relative_spread = 0.1;  ///< half width of the 80 % interval over the value
  Evidence evidence = Evidence::assumed;
  std::optional<Evidence> root = {};      ///< evidence of what it follows from; none = `evidence`
  AllReduce algorithm = AllReduce::ring;  ///< of an all-reduce: what its load on the pools follows
  Lookup lookup = Lookup::fitted;
};

/// What collectives in flight take from the computation beside them on a GPU: their kernels hold multiprocessors and
/// move bytes through its memory.
struct CommunicationSlowdown {
  double share = 0;          ///< of the compute rate, in [0, 1), however many are in flight
  double low = 0, high = 0;  ///< 80 % interval
  Evidence evidence = Evidence::derived;
  std::string source;
};

/// Of every GPU whose profiles have no measured one. Computation that takes 1 + x times its seconds has lost x / (1 +
/// x) of its rate; low end: 16 of an H100's 132 multiprocessors and nothing of its memory.
CommunicationSlowdown published_slowdown();

/// What holds for all ops of a machine, as a stack uses it.
struct MachineTraits {
  /// True where the issuing thread computes itself (CPU): ops issued after a segment start after it.
  bool synchronous_host = false;
  /// Whether a shard group's gathers and reductions have a communicator each and run beside each other, as in our
  /// trainer; else they share one, which runs one collective at a time in the order of issue. Hosts always have two.
  bool separate_reduce_group = true;
  /// Share of a tensor group's bytes that is not hidden behind its products: what a program built for these times
  /// sends.
  double tensor_traffic = 1;
  /// Relative standard deviation of an op's seconds from one call to the next on the same rank; 0: not known.
  double variation = 0;
  /// Zero where ranks communicate by CPU: transport threads and computation share the cores there.
  CommunicationSlowdown communication_slowdown = {};
  /// What a rank's computation takes where that many share a host's cores, over what it takes alone: caches are
  /// refilled after every slice of the scheduler. Where it was measured; empty on GPUs.
  std::map<std::int64_t, double> crowding = {};
  TimeEstimate once_a_step = {};  ///< what a step takes beside its ops: loss, logging, data
  /// Which collectives' times rest on measurements of this machine and which do not, a sentence each; empty where none
  /// do.
  std::vector<std::string> basis_of_collectives = {};

  /// Between measured numbers of ranks on a line, beyond the last as there; 1 where nothing was measured.
  double crowding_of(std::int64_t ranks) const;
};

/// What an op's sizes are bound to on a rank.
struct BoundRows {
  double sum = 0;                          ///< rows that the rank receives: Amount::per_row counts these
  std::span<const double> by_expert = {};  ///< as they fall on the groups of a grouped product; empty: as many on each
  BoundRows(double rows, std::span<const double> groups = {}) : sum(rows), by_expert(groups) {}
  /// Whether the item is a product over these groups.
  bool spread_over(const WorkItem& item) const {
    return item.kernel == Kernel::grouped_gemm && static_cast<std::int64_t>(by_expert.size()) == item.dims[2];
  }
};

/// FLOP a byte from which arithmetic limits a product or attention, between the ridges of A100 (153), H200 (206) and
/// H100 (295): peak over memory bandwidth of their data sheets.
inline constexpr double kComputeBoundIntensity = 200;

/// A clock or power state, over the one that times are of.
struct Clock {
  double speed = 1;
  /// Time of an item over its time at speed 1: 1 / speed where arithmetic limits it, else 1. Faster clocks take routed
  /// rows for many: else the row with which arithmetic begins to limit would make the item faster.
  double factor(const WorkItem& item, double rows) const;
};

/// What a time rests on.
struct TimeBasis {
  std::string name;         ///< the class of kernels: "gemm/forward/bf16"
  std::int64_t points = 0;  ///< measurements behind it; 0 = none, a roofline
  std::string source;       ///< of the first of them
};

class OpCost {
 public:
  virtual ~OpCost() = default;
  virtual const MachineTraits& traits() const = 0;
  /// One work item, rows bound; with rows by expert it takes as long as without, or longer. Throws Error{usage} naming
  /// the benchmark to run when nothing is known and assumptions are not allowed.
  virtual TimeEstimate item(const WorkItem& item, const BoundRows& rows) const = 0;
  /// A whole segment or copy: its items, and what the op takes beyond them (from traces).
  TimeEstimate segment(const Op& op, const BoundRows& rows) const { return segment(op, rows, Clock{}); }
  virtual TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const = 0;
  /// `bytes` by the convention of Collective::bytes; ranks of the group over `nodes` nodes.
  virtual CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const = 0;
  /// Times on nodes of that kind of the cluster (ClusterSpec::of_kind); these, unless the kinds' GPUs or adapters
  /// differ. Who computes and what communication takes from it are the same on all kinds.
  virtual const OpCost& on(std::size_t /*kind*/) const { return *this; }
  /// What a dispatcher makes of the time of an all-to-all over `nodes` nodes that has routed rows of `row_bytes` each.
  virtual CollectiveEstimate row_exchange(CollectiveEstimate estimate, Dispatcher /*dispatcher*/, double /*row_bytes*/,
                                          std::int64_t /*nodes*/) const {
    return estimate;
  }
  /// Seconds of the host to issue a layer's op, by the layout's dispatcher and CUDA graphs; 0 where hosts never hold up
  /// a step, or the op's time has it.
  virtual double launch_s(const Op& /*op*/, const Layout& /*layout*/) const { return 0; }
  /// Seconds until the GPU has done `gpu_s` of work that the host needs `launch_s` to issue.
  virtual double issued_s(double gpu_s, double /*launch_s*/) const { return gpu_s; }
  /// Of item()'s time.
  virtual TimeBasis explain(const WorkItem& item, const BoundRows& /*rows*/) const {
    return {to_string(item.kernel), 0, ""};
  }
};

}  // namespace wt
