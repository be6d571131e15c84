// The one time of a collective: what plans ask and what `windtunnel validate collectives` judges. It knows constants
// that were fitted to published times (sim/fit) and, where there are some, a profile's points: measured times with the
// machine they were taken on. Looked up in this order, and the answer says which it was:
//   exact      a measurement of this machine, this kind and this many ranks on this many nodes; between two sizes a
//              power law
//   fitted     constants of the link (link_constants.hpp), refined by what was measured on this machine: of this
//              form of collective, else the share of the bandwidth that another form reached over the same links;
//              without any, the constants of this link, then those of the nearest
// More bytes never take less, a faster network or NVLink never makes anything slower, and nothing is faster than its
// wires. A site's own fabric speaks only for machines that name it: whatever else a user's cluster is, it gets what is
// usual for its kind of link. Ranks that communicate by CPU have their own fit (cpu_collectives.hpp).
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
  /// Of configs/constants/collectives.json, read once a process.
  static const CollectiveEstimator& published();

  /// The same, where these were measured on the machine that is asked about. Measured ones (Evidence) put aside others
  /// of the same form that are not.
  CollectiveEstimator with_own(std::vector<CollectivePoint> points) const;

  /// Seconds split into latency and load. Throws Error{usage} where no point says anything of this form on one node, or
  /// over several.
  CollectiveEstimate estimate(const CollectiveQuestion& question) const;
  /// Of that time where nothing else is on the links.
  double seconds(const CollectiveQuestion& question, bool python = false) const;

  /// Why the points say nothing of this, though time() has a figure: fewer than three of its form, or a small message
  /// where none over this transport was measured, as latencies do not carry over. Empty where they do.
  std::string blind_spot(const CollectiveQuestion& question) const;
  /// Whether a link of this kind was ever measured.
  bool knows_link(const CollectiveQuestion& question) const;
  /// Whether times of a fabric by this name were published.
  bool knows_fabric(const std::string& fabric) const { return largest_.count(fabric) > 0; }
  /// Throws Error{usage} where it names a fabric of which no time was published.
  void check_fabric(const CollectiveMachine& machine) const;
  /// What times rest on where some were measured on this machine, a sentence a form; nothing otherwise.
  std::vector<std::string> basis() const;

 private:
  using Form = std::pair<CollectiveForm, bool>;  ///< over several nodes
  using Curve = std::vector<CollectivePoint>;    ///< one kind, ranks and nodes; bytes and seconds ascending
  struct Own {
    std::vector<Curve> curves;
    std::map<std::string, LinkConstants::Constants> constants;  ///< by link
    double share = 1;  ///< what bandwidth was reached, over that of the published constants
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
  std::map<std::string, std::string> link_of_;  ///< of a fabric, where other jobs share it
  std::map<std::string, double> largest_;       ///< bytes measured on a fabric
  std::map<Form, std::shared_ptr<const Own>> own_;
  std::optional<std::vector<CpuCollective>> cpu_;
};

/// Messages below this are mostly latency, of which measurements of larger ones, or of other transports, say nothing.
constexpr double kSmallMessage = 64.0 * (1 << 20);

/// What a stack's own way with its network makes of a time: all of it `factor` times, but no faster than its wires.
CollectiveEstimate slowed(CollectiveEstimate estimate, double factor, const CollectiveQuestion& question);

}  // namespace wt
