// Times of a training run's collectives, priced by the constants that published measurements of collectives give
// (collective_model.hpp): its groups differ from those of a benchmark in that several share a node's adapters.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/collectives/collective_fit.hpp"
#include "sim/measurements/run_rows.hpp"
#include "sim/program/program.hpp"

namespace wt {

class RunFabric {
 public:
  explicit RunFabric(const std::vector<CollectiveRow>& reference);

  /// One group: `ranks` of it, `in_node` of them on each node that it touches.
  struct Group {
    std::int64_t ranks = 1, in_node = 1;
    std::int64_t nodes() const { return (ranks + in_node - 1) / in_node; }
  };
  /// Ranks `stride` apart, of NVLink domains with `per_domain` GPUs.
  static Group group(std::int64_t ranks, std::int64_t stride, std::int64_t per_domain);

  /// Seconds of a collective by the convention of Collective::bytes. 0 for one rank. Messages larger than any measured
  /// on this fabric keep the bandwidth of the largest one. Throws Error{usage} where the GPU has no data sheet.
  double seconds(OpKind kind, double bytes, const Group& group, const RunRow& run) const;
  /// Seconds of `bytes` from one GPU to another, on the same node or not.
  double send_s(double bytes, bool over_nodes, const RunRow& run) const;

 private:
  std::map<std::string, CollectiveFit> fits_;  ///< by problem()
  std::map<std::string, double> largest_;      ///< bytes measured on a fabric, by its text
};

/// GPUs that one NVLink switch connects: a node's, or a rack's of 72 (NVL72).
std::int64_t nvlink_domain(const RunRow& run);

/// Adapters of a node in the words that fabric.hpp understands ("8x400G IB"), from what a source says of its
/// interconnect; what is usual for this GPU where it says nothing.
struct FabricText {
  std::string fabric, note;
  bool assumed = false;
};
FabricText fabric_text(const RunRow& run);

}  // namespace wt
