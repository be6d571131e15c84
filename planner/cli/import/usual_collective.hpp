// What a collective usually takes on a fabric: by the model of its machine, and by the published measurements of
// similar fabrics. `windtunnel import` judges nccl-tests by both.
#pragma once
#include <string>
#include <vector>

#include "bench/formats/nccl_tests.hpp"
#include "configs/files/cluster.hpp"
#include "sim/cost/collectives/collective_points.hpp"

namespace wt {

/// The machine that the tests ran on: the cluster's, or where there is none the usual one with such GPUs.
struct TestedMachine {
  CollectiveMachine machine;
  std::string assumed;  ///< facts that nothing said, in words; "" = none
};

enum class Usual { unknown, normal, slow, fast };
std::string to_string(Usual usual);

/// Of one size. Bandwidths are bus bandwidths.
struct UsualCollective {
  double low_Bps = 0, high_Bps = 0;  ///< 80 % interval of the model; 0 = it has none
  std::string unpredicted = {};      ///< why not
  std::size_t origins = 0;           ///< of the published measurements
  std::size_t below = 0, above = 0;  ///< published measurements with less and with more bandwidth
  /// Slow or fast: outside of the model's interval; without one, below or above all of at least three published ones.
  Usual usual = Usual::unknown;
};

class UsualCollectives {
 public:
  /// Throws Error{usage} where the GPU has no data sheet and there is no cluster.
  UsualCollectives(const NcclTests& tests, const ClusterSpec* cluster);

  const TestedMachine& machine() const { return machine_; }
  /// GPUs of a rack behind one NVLink switch; 0 where the switch is a host's.
  std::int64_t rack() const { return rack_; }
  UsualCollective of(std::int64_t bytes, double seconds) const;

 private:
  bool similar(const CollectivePoint& point, double bytes) const;

  const NcclTests& tests_;
  TestedMachine machine_;
  std::int64_t rack_;
  std::optional<OpKind> kind_;
  RankGroup group_;
  std::vector<CollectivePoint> published_;
};

}  // namespace wt
