// Times of ops. The simulator and the estimator ask for them; the machine model gives them. Each answer has its method
// and its evidence.
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
  Evidence evidence = Evidence::assumed;  ///< of the time; for several items, that of the costliest
  /// Seconds by the root of their evidence, with sum `seconds`. A time that follows from a published time counts as
  /// published; derived is only a time without a root. All zero = everything on `evidence`.
  EvidenceShares by_evidence{};
  bool seen_in_steps = false;  ///< from traces of training steps: the interval includes the error of whole steps

  EvidenceShares shares() const;  ///< by_evidence over its sum
  TimeEstimate& operator*=(double factor);
  TimeEstimate& operator+=(const TimeEstimate& other);  ///< adds seconds, interval and roots; lookup and evidence stay
};

/// The largest relative half width of a collective's interval.
inline constexpr double kWidestSpread = 0.9;

/// Time of a collective: a latency plus load on shared resources. For ranks that communicate by CPU (Gloo), the load is
/// CPU time of the host's cores. On GPU clusters it is bytes on NVSwitch, NIC and uplink pools. The cluster model
/// shares out these pools; an efficiency that depends on the message size slows the transfer down.
struct CollectiveEstimate {
  double latency_s = 0;
  double cpu_s = 0;              ///< CPU seconds each rank's transport threads spend (0 on GPU clusters)
  double efficiency = 1.0;       ///< share of the pools' nominal bandwidth that a transfer of this size reaches, <= 1
  double relative_spread = 0.1;  ///< half width of the 80 % interval over the value
  Evidence evidence = Evidence::assumed;
  std::optional<Evidence> root = {};      ///< evidence of its inputs; none = `evidence`
  AllReduce algorithm = AllReduce::ring;  ///< of an all-reduce: determines its load on the pools
  Lookup lookup = Lookup::fitted;
};

/// Share of a GPU's compute rate that collectives in flight take: their kernels hold multiprocessors and move bytes
/// through its memory.
struct CommunicationSlowdown {
  double share = 0;          ///< of the compute rate, in [0, 1), for any number of collectives
  double low = 0, high = 0;  ///< 80 % interval
  Evidence evidence = Evidence::derived;
  std::string source;
};

/// Slowdown of a GPU without a measured one. Computation that takes 1 + x times as long loses x / (1 + x) of its rate.
/// The low end is 16 of an H100's 132 multiprocessors, without any effect on memory.
CommunicationSlowdown published_slowdown();

/// Properties of a machine, as a stack uses it, that hold for all ops.
struct MachineTraits {
  /// True if the issuing thread itself computes (CPU): ops issued after a segment start after it.
  bool synchronous_host = false;
  /// Whether a shard group's gathers and reductions have a communicator each and may overlap, as in our trainer.
  /// Otherwise they share one, which runs one collective at a time in the order of issue. Hosts always have two.
  bool separate_reduce_group = true;
  /// Share of a tensor group's bytes that is not hidden behind its products. Programs for these times send only this
  /// share.
  double tensor_traffic = 1;
  /// Relative standard deviation of an op's seconds from one call to the next on the same rank; 0 = unknown.
  double variation = 0;
  /// Zero for ranks that communicate by CPU: there, transport threads and computation share the cores.
  CommunicationSlowdown communication_slowdown = {};
  /// By number of ranks that share a host's cores: computation time of a rank over its time alone. Caches are refilled
  /// after every slice of the scheduler. Measured numbers of ranks only; empty on GPUs.
  std::map<std::int64_t, double> crowding = {};
  TimeEstimate once_a_step = {};  ///< time of a step outside its ops: loss, logging, data
  /// One sentence per form of collective: whether its times rest on measurements of this machine. Empty if none do.
  std::vector<std::string> basis_of_collectives = {};

  /// Linear between measured numbers of ranks, constant beyond the largest; 1 if nothing was measured.
  double crowding_of(std::int64_t ranks) const;
};

/// Row counts of an op on one rank.
struct BoundRows {
  double sum = 0;                          ///< rows that the rank receives: Amount::per_row counts these
  std::span<const double> by_expert = {};  ///< rows of each group of a grouped product; empty = equal groups
  BoundRows(double rows, std::span<const double> groups = {}) : sum(rows), by_expert(groups) {}
  /// Whether by_expert gives the groups of this item.
  bool spread_over(const WorkItem& item) const {
    return item.kernel == Kernel::grouped_gemm && static_cast<std::int64_t>(by_expert.size()) == item.dims[2];
  }
};

/// FLOPs per byte above which arithmetic limits a product or attention. It lies between the ridges of A100 (153), H200
/// (206) and H100 (295): peak over memory bandwidth of their data sheets.
inline constexpr double kComputeBoundIntensity = 200;

/// A clock or power state, relative to that of the measured times.
struct Clock {
  double speed = 1;
  /// Time of an item over its time at speed 1: 1 / speed if arithmetic limits it, else 1. At a speed above 1, any
  /// number of routed rows counts as large. Otherwise an item would get faster with the row at which arithmetic begins
  /// to limit it.
  double factor(const WorkItem& item, double rows) const;
};

/// The measurements behind a time.
struct TimeBasis {
  std::string name;         ///< the class of kernels: "gemm/forward/bf16"
  std::int64_t points = 0;  ///< number of measurements; 0 = a roofline
  std::string source;       ///< of the first measurement
};

class OpCost {
 public:
  virtual ~OpCost() = default;
  virtual const MachineTraits& traits() const = 0;
  /// Time of one work item at these rows. With rows by expert it is never shorter than without. Throws Error{usage}
  /// with the benchmark to run if nothing is known and assumptions are not allowed.
  virtual TimeEstimate item(const WorkItem& item, const BoundRows& rows) const = 0;
  /// Time of a whole segment or copy: its items, and the time beyond them that traces show.
  TimeEstimate segment(const Op& op, const BoundRows& rows) const { return segment(op, rows, Clock{}); }
  virtual TimeEstimate segment(const Op& op, const BoundRows& rows, Clock clock) const = 0;
  /// `bytes` as defined at Collective::bytes; the group's `ranks` are on `nodes` nodes.
  virtual CollectiveEstimate collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const = 0;
  /// Times on nodes of this kind of the cluster (ClusterSpec::of_kind): this object, unless the kinds' GPUs or adapters
  /// differ. All kinds have the same host type and the same communication slowdown.
  virtual const OpCost& on(std::size_t /*kind*/) const { return *this; }
  /// Time of an all-to-all over `nodes` nodes with this dispatcher, for routed rows of `row_bytes` each.
  virtual CollectiveEstimate row_exchange(CollectiveEstimate estimate, Dispatcher /*dispatcher*/, double /*row_bytes*/,
                                          std::int64_t /*nodes*/) const {
    return estimate;
  }
  /// Seconds of the host to issue a layer's op, by the layout's dispatcher and CUDA graphs. 0 if the host never delays
  /// a step, or if the op's time includes them.
  virtual double launch_s(const Op& /*op*/, const Layout& /*layout*/) const { return 0; }
  /// Seconds until the GPU has done `gpu_s` of work that the host needs `launch_s` to issue.
  virtual double issued_s(double gpu_s, double /*launch_s*/) const { return gpu_s; }
  /// The basis of item()'s time.
  virtual TimeBasis explain(const WorkItem& item, const BoundRows& /*rows*/) const {
    return {to_string(item.kernel), 0, ""};
  }
};

}  // namespace wt
