#include "sim/months/fault_trace.hpp"

#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "sim/months/run_events.hpp"

namespace wt {
namespace {

std::int64_t described(std::int64_t size, FaultDomain domain) {
  if (size < 1)
    throw_usage(
        "faults: found events of a {}, which the cluster does not describe; needs {}", to_string(domain),
        domain == FaultDomain::rack ? "nodes_per_rack in the cluster" : "a cluster with NICs and leaf switches");
  return size;
}

std::uint64_t key_of(std::uint64_t seed, std::int64_t law, std::int64_t entity, std::int64_t count) {
  std::uint64_t key = seed;
  for (const std::int64_t part : {law, entity, count}) key = splitmix64(key + static_cast<std::uint64_t>(part));
  return key;
}

constexpr std::int64_t kIsBad = -1, kLast = -2;  // counts that are no faults

/// Mean seconds between faults of one entity. A share b of bad entities has f times the rate of the others, and the
/// mean rate of all is 1 / mean_s.
double mean_of(const FaultLaw& law, std::uint64_t seed, std::int64_t index, std::int64_t entity) {
  if (law.bad_share <= 0) return law.mean_s;
  const double good_s = law.mean_s * (1 - law.bad_share + law.bad_share * law.bad_factor);
  const bool bad = uniform_of(key_of(seed, index, entity, kIsBad), TraceDraw::gap) < law.bad_share;
  return bad ? good_s / law.bad_factor : good_s;
}

/// The residual of a gap at a random time (forward recurrence time of a renewal process), by inversion of P(1/shape,
/// (t/scale)^shape), P the regularized incomplete gamma function. Exponential gaps have no memory.
std::int64_t rest_of_gap_ns(double mean_s, double shape, double u) {
  const double scale_ns = detail::weibull_scale_ns(mean_s, shape);
  if (shape == 1) return detail::weibull_ns(scale_ns, 1, u);
  // In double, because long double is several times slower and a trace has one such gap per entity.
  const boost::math::policies::policy<boost::math::policies::promote_double<false>> in_double;
  const double t = scale_ns * std::pow(boost::math::gamma_p_inv(1 / shape, u, in_double), 1 / shape);
  return t < static_cast<double>(detail::kNever) ? std::llround(t) : detail::kNever;
}

}  // namespace

double uniform_of(std::uint64_t key, TraceDraw draw) {
  return static_cast<double>(splitmix64(key ^ splitmix64(static_cast<std::uint64_t>(draw))) >> 11) * 0x1p-53;
}

std::int64_t lognormal_ns(double mean_s, double sigma, std::uint64_t key, TraceDraw draw) {
  if (sigma <= 0) return detail::ns(mean_s);
  const double normal = std::sqrt(2.0) * boost::math::erf_inv(2 * uniform_of(key, draw) - 1 + 0x1p-53);
  return detail::ns(std::min(kLongest_s, mean_s * std::exp(sigma * normal - sigma * sigma / 2)));
}

std::int64_t EntityTree::count(FaultDomain domain) const {
  const auto parts = [&](std::int64_t size) { return ceil_div(all_nodes(), described(size, domain)); };
  switch (domain) {
    case FaultDomain::rank:
      return all_nodes() * ranks_per_node;
    case FaultDomain::node:
      return all_nodes();
    case FaultDomain::rack:
      return parts(nodes_per_rack);
    case FaultDomain::leaf:
      return parts(nodes_per_leaf);
    case FaultDomain::rail:
      return described(rails, domain);
    case FaultDomain::replica:
      return replicas;
    case FaultDomain::all:
      return 1;
    default:
      throw_usage("faults: found events of a {} with a law; allowed: rank, node, rack, leaf, rail, all",
                  to_string(domain));
  }
}

EntityTree::Nodes EntityTree::nodes_of(FaultDomain domain, std::int64_t entity) const {
  const auto part = [&](std::int64_t size) {
    return Nodes{entity * size, std::min(size, all_nodes() - entity * size)};
  };
  switch (domain) {
    case FaultDomain::rank:
      return {entity / ranks_per_node, 1};
    case FaultDomain::node:
      return {entity, 1};
    case FaultDomain::rack:
      return part(nodes_per_rack);
    case FaultDomain::leaf:
      return part(nodes_per_leaf);
    case FaultDomain::replica:
      return {entity * (nodes / replicas), nodes / replicas};
    default:
      return {0, all_nodes()};
  }
}

std::int64_t EntityTree::nodes_of_whole(FaultDomain domain) const {
  if (domain == FaultDomain::rack) return nodes_per_rack;
  if (domain == FaultDomain::leaf) return nodes_per_leaf;
  return nodes_of(domain, 0).count;
}

EntityTree entity_tree(const ClusterSpec& c, std::int64_t spares) {
  return {c.nodes, spares, c.gpus_per_node, c.nodes_per_rack, c.nodes_per_leaf, c.nic_count};
}

FaultTrace::FaultTrace(const EntityTree& tree, const std::vector<FaultLaw>& laws,
                       const std::vector<ScheduledFault>& scheduled, std::uint64_t seed)
    : tree_(tree), laws_(laws), seed_(seed) {
  for (std::size_t law = 0; law < laws.size(); ++law) {
    if (laws[law].mean_s <= 0) continue;
    const std::int64_t entities = tree.count(laws[law].domain);
    for (std::int64_t entity = 0; entity < entities; ++entity)
      push(static_cast<std::int32_t>(law), static_cast<std::int32_t>(entity), 0, 0);
  }
  for (const ScheduledFault& fault : scheduled) {
    const FaultLaw& law = laws.at(static_cast<std::size_t>(fault.law));
    const std::int64_t entities = tree.count(law.domain);
    if (fault.entity < 0 || fault.entity >= entities)
      throw_usage("faults: found {} {} hit at {}, needs a number below {}", to_string(law.domain), fault.entity,
                  format_seconds(fault.at_s), entities);
    const std::int64_t at = detail::ns(fault.at_s);
    next_.push({{at, fault.law, fault.entity, key_of(seed, fault.law, fault.entity, at)}, kLast});
  }
}

void FaultTrace::push(std::int32_t index, std::int32_t entity, std::int64_t from, std::int64_t count) {
  const FaultLaw& law = laws_[static_cast<std::size_t>(index)];
  const std::uint64_t key = key_of(seed_, index, entity, count);
  const double u = uniform_of(key, TraceDraw::gap);
  const double part = as_double(tree_.nodes_of(law.domain, entity).count) / as_double(tree_.nodes_of_whole(law.domain));
  const double mean_s = mean_of(law, seed_, index, entity) / part;
  const std::int64_t gap = law.periodic ? detail::ns(mean_s)
                           : count == 0
                               ? rest_of_gap_ns(mean_s, law.shape, u)
                               : detail::weibull_ns(detail::weibull_scale_ns(mean_s, law.shape), 1 / law.shape, u);
  if (gap < detail::kNever && from + gap < detail::ns(kLongest_s))
    next_.push({{from + gap, index, entity, key}, count});
}

const TraceEvent* FaultTrace::event(std::size_t i) {
  while (made_.size() <= i) {
    if (next_.empty()) return nullptr;
    const Next next = next_.top();
    next_.pop();
    made_.push_back(next.event);
    if (next.count != kLast) push(next.event.law, next.event.entity, next.event.at, next.count + 1);
  }
  return &made_[i];
}

}  // namespace wt
