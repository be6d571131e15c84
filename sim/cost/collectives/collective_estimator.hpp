// Times of collectives, for plans and for `windtunnel validate collectives`. They rest on constants that were fitted to
// published times (sim/fit) and, where a profile has them, on points: times measured on a known machine. The first of
// these that exists is used, and the answer names it:
//   exact      a measurement on this machine of this kind, number of ranks and number of nodes; between two sizes a
//              power law
//   fitted     constants of the link (link_constants.hpp), refined by this machine's measurements of the same form of
//              collective. Without these, the constants are scaled by the share of bandwidth that another form reached
//              over the same links. Without any measurements, published constants of the link; an unknown link has the
//              typical ones
// More bytes never take less time, a faster network or NVLink never makes a collective slower, and none is faster than
// its wires. A site's own fabric has its own constants, for machines that name this fabric. All other machines get the
// typical constants of their kind of link. Ranks that communicate by CPU have their own fit (cpu_collectives.hpp).
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/collectives/collective_constants.hpp"
#include "sim/cost/collectives/collective_points.hpp"
#include "sim/cost/collectives/collective_question.hpp"
#include "sim/cost/collectives/cpu_collectives.hpp"
#include "sim/cost/collectives/link_constants.hpp"
#include "sim/cost/ops/op_cost.hpp"

namespace wt {

class CollectiveEstimator {
 public:
  explicit CollectiveEstimator(CollectiveConstants published);
  explicit CollectiveEstimator(std::vector<CpuCollective> by_cpu) : cpu_(std::move(by_cpu)) {}
  /// The estimator of configs/constants/collectives.json, which is read once per process.
  static const CollectiveEstimator& published();

  /// A copy, refined by points of the machine that questions are about. If a form has points with measured evidence,
  /// its other points are dropped.
  CollectiveEstimator with_own(std::vector<CollectivePoint> points) const;

  /// Time as latency and load. Throws Error{usage} if there are no constants for this form, on one node or over
  /// several.
  CollectiveEstimate estimate(const CollectiveQuestion& question) const;
  /// Seconds of the same collective on idle links. `python`: adds the host time of a call from Python.
  double seconds(const CollectiveQuestion& question, bool python = false) const;

  /// Why measurements do not support an estimate: fewer than three of its form, or a small message over a transport
  /// without measured small messages, as latencies differ between transports. Empty if they support it.
  std::string blind_spot(const CollectiveQuestion& question) const;
  /// Whether a link of this kind was ever measured.
  bool knows_link(const CollectiveQuestion& question) const;
  /// Whether times of a fabric by this name were published.
  bool knows_fabric(const std::string& fabric) const { return largest_.count(fabric) > 0; }
  /// Throws Error{usage} if the machine names a fabric without published times.
  void check_fabric(const CollectiveMachine& machine) const;
  /// The evidence of times, one sentence per form. Empty if nothing was measured on this machine.
  std::vector<std::string> basis() const;

 private:
  using Form = std::pair<CollectiveForm, bool>;  ///< form; whether over several nodes
  using Curve = std::vector<CollectivePoint>;    ///< of one kind, ranks and nodes; bytes and seconds ascending
  struct Own {
    std::vector<Curve> curves;
    std::map<std::string, LinkConstants::Constants> constants;  ///< by link
    double share = 1;  ///< reached bandwidth over that of the published constants
    std::vector<CollectivePoint> points;
  };

  void refine(const Form& form, std::vector<CollectivePoint> points);
  const FormConstants& of(const CollectiveQuestion& question) const;
  const Own* own(const CollectiveQuestion& question) const;
  const Curve* curve(const CollectiveQuestion& question) const;
  LinkConstants::Constants constants(const CollectiveQuestion& question, const LinkLoad& load) const;
  double model_s(const CollectiveQuestion& question, bool python) const;
  double time_s(const CollectiveQuestion& question, bool python) const;

  std::map<Form, std::shared_ptr<const FormConstants>> published_;
  std::map<std::string, std::string> link_of_;  ///< CollectiveConstants::link_of
  std::map<std::string, double> largest_;       ///< CollectiveConstants::largest_bytes
  std::map<Form, std::shared_ptr<const Own>> own_;
  std::optional<std::vector<CpuCollective>> cpu_;
};

/// Bytes. Smaller messages are mostly latency: measurements of larger messages or of other transports do not predict
/// them.
constexpr double kSmallMessage = 64.0 * (1 << 20);

/// The estimate with a stack's network factor: all of it `factor` times, but no faster than its wires.
CollectiveEstimate slowed(CollectiveEstimate estimate, double factor, const CollectiveQuestion& question);

}  // namespace wt
