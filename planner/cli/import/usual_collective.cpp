#include "planner/cli/import/usual_collective.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "configs/base/enum_words.hpp"
#include "configs/files/find.hpp"
#include "sim/cost/calibrate/calibration.hpp"
#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/cost/collectives/interconnect.hpp"
#include "sim/fit/collective_rows_as_points.hpp"

namespace wt {
namespace {

constexpr double kSameSize = 1.5;       // published sweeps double their sizes
constexpr double kSameAdapters = 1.25;  // rates of adapters differ by factors of two
constexpr double kSameNodes = 2;
constexpr std::size_t kFewest = 3;  // published measurements that say what is usual where the model says nothing

bool within(double a, double b, double factor) { return a <= factor * b && b <= factor * a; }

TestedMachine machine_for(const NcclTests& tests, const ClusterSpec* cluster) {
  if (cluster) return {machine_of(*cluster), ""};
  const Interconnect interconnect = interconnect_of("", tests.gpu, tests.gpus_per_host);
  return {machine_of(tests.gpu, interconnect), interconnect.assumed(tests.ranks())};
}

}  // namespace

std::string to_string(Usual usual) { return word_for(usual, std::array{"not known", "normal", "slow", "fast"}); }

UsualCollectives::UsualCollectives(const NcclTests& tests, const ClusterSpec* cluster)
    : tests_(tests),
      machine_(machine_for(tests, cluster)),
      rack_(machine_.machine.nvlink_domain > gpus_of_host(tests.gpu) ? machine_.machine.nvlink_domain : 0),
      kind_(detail::collective_kind(tests.test)),
      group_{tests.ranks(), tests.nodes(rack_)} {
  // Every rank sends to the next; the slowest message is the one between two nodes.
  if (kind_ == OpKind::send) group_ = {2, std::min<std::int64_t>(group_.nodes, 2)};
  if (kind_) published_ = points_of(read_collective_rows(configs_folder() / "measurements" / "collectives.csv"));
}

bool UsualCollectives::similar(const CollectivePoint& point, double bytes) const {
  const CollectiveQuestion here{*kind_, bytes, group_, machine_.machine};
  if (!point.unusable.empty() || point.python || point.kind != *kind_ || !within(point.bytes, bytes, kSameSize) ||
      point.machine.transport == kSharedTransport || point.machine.generation != here.machine.generation ||
      (point.group.nodes > 1) != here.many())
    return false;
  if (!here.many())
    return point.group.ranks == group_.ranks && link_load(point.question()).link == link_load(here).link;
  return transport_family(point.machine.transport) == transport_family(here.machine.transport) &&
         within(point.machine.nic_Bps, here.machine.nic_Bps, kSameAdapters) &&
         within(static_cast<double>(point.group.nodes), static_cast<double>(group_.nodes), kSameNodes) &&
         within(point.group.fewest(), group_.fewest(), kSameNodes);
}

UsualCollective UsualCollectives::of(std::int64_t bytes, double seconds) const {
  UsualCollective out;
  if (!kind_) {
    out.unpredicted = "no model of " + tests_.test;
    return out;
  }
  const auto size = static_cast<double>(bytes);
  const CollectiveQuestion question{*kind_, size, group_, machine_.machine};
  const CollectiveEstimator& estimator = CollectiveEstimator::published();
  out.unpredicted = estimator.blind_spot(question);
  const double moved = size * tests_.bus_factor() * tests_.buffer_factor();
  if (out.unpredicted.empty()) {
    const double usual_s = estimator.seconds(question), spread = estimator.estimate(question).relative_spread;
    out.low_Bps = moved / (usual_s * (1 + spread)), out.high_Bps = moved / (usual_s * (1 - spread));
  }
  std::set<std::string> origins;
  for (const CollectivePoint& point : published_) {
    if (!similar(point, size)) continue;
    origins.insert(point.origin);
    const double Bps = point.bytes * bus_share(point.kind, static_cast<double>(point.group.ranks)) / point.seconds;
    ++(Bps < moved / seconds ? out.below : out.above);
  }
  out.origins = origins.size();
  const double here_Bps = moved / seconds;
  if (out.low_Bps > 0)
    out.usual = here_Bps < out.low_Bps ? Usual::slow : here_Bps > out.high_Bps ? Usual::fast : Usual::normal;
  else if (out.below + out.above >= kFewest)
    out.usual = out.below == 0 ? Usual::slow : out.above == 0 ? Usual::fast : Usual::normal;
  return out;
}

}  // namespace wt
