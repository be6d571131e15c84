#include "sim/cost/collectives/collective_estimator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "configs/files/fitted_constants.hpp"

namespace wt {
namespace {

constexpr double kLeastLatency_s = 1e-6;
constexpr std::size_t kFewestPoints = 3;  // as many as there are constants
constexpr double kUnknownLink = 2, kFromAnotherForm = 1.5;

/// Message latency on the measured clusters, by transport: 2.7-2.8 us with ib_write_bw over InfiniBand NDR (Vultr's
/// B200). EFA and TCPX have the latencies that cluster files assume, so that those change nothing.
double reference_hop_s(const std::string& transport) {
  static const std::map<std::string, double> known = {{"EFA v1", 15e-6}, {"EFA v2", 10e-6}, {"EFA v3", 8e-6},
                                                      {"EFA v4", 8e-6},  {"EFA", 10e-6},    {"TCPX", 20e-6}};
  return value_or(known, transport, 2.7e-6);
}

bool same_rates(const CollectiveMachine& a, const CollectiveMachine& b) {
  return a.nvlink_Bps == b.nvlink_Bps && a.nic_Bps == b.nic_Bps;
}

/// Times that fall with the bytes are noise: such neighbours get their geometric mean (pool adjacent violators).
void make_monotone(std::vector<CollectivePoint>& curve) {
  struct Pool {
    double log_sum;
    std::size_t count;
    double mean() const { return log_sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (const CollectivePoint& p : curve) {
    pools.push_back({std::log(p.seconds), 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      pools[pools.size() - 2].log_sum += pools.back().log_sum;
      pools[pools.size() - 2].count += pools.back().count;
      pools.pop_back();
    }
  }
  std::size_t at = 0;
  for (const Pool& pool : pools)
    for (std::size_t i = 0; i < pool.count; ++i) curve[at++].seconds = std::exp(pool.mean());
}

std::string words(CollectiveForm form, bool many) {
  static const char* const names[] = {"all-reduces", "gathers, scatters, broadcasts and messages", "all-to-alls"};
  return fmt::format("{} {}", names[static_cast<int>(form)], many ? "over nodes" : "inside a node");
}

}  // namespace

CollectiveEstimator::CollectiveEstimator(CollectiveConstants published)
    : link_of_(std::move(published.link_of)), largest_(std::move(published.largest_bytes)) {
  for (FormConstants& each : published.forms)
    published_[{each.form, each.many}] = std::make_shared<const FormConstants>(std::move(each));
}

const CollectiveEstimator& CollectiveEstimator::published() {
  static const CollectiveEstimator all(fitted_constants<CollectiveConstants>("collectives"));
  return all;
}

CollectiveEstimator CollectiveEstimator::with_own(std::vector<CollectivePoint> points) const {
  CollectiveEstimator out = *this;
  std::map<Form, std::vector<CollectivePoint>> forms;
  for (CollectivePoint& p : points) forms[{form_of(p.kind), p.group.nodes > 1}].push_back(std::move(p));
  for (auto& [form, own] : forms) {
    const auto measured = [](const CollectivePoint& p) { return p.evidence == Evidence::measured; };
    if (std::ranges::any_of(own, measured)) std::erase_if(own, std::not_fn(measured));
    out.refine(form, std::move(own));
  }
  return out;
}

void CollectiveEstimator::refine(const Form& form, std::vector<CollectivePoint> points) {
  Own out;
  std::map<std::tuple<OpKind, std::int64_t, std::int64_t>, std::map<double, CollectivePoint>> curves;
  std::map<std::string, std::vector<TimedLoad>> by_link;
  for (const CollectivePoint& p : points) {
    curves[{p.kind, p.group.ranks, p.group.nodes}][p.bytes] = p;
    by_link[link_load(p.question()).link].push_back(timed(p));
  }
  for (const auto& [group, sizes] : curves) {
    Curve& curve = out.curves.emplace_back();
    for (const auto& [bytes, p] : sizes) curve.push_back(p);
    make_monotone(curve);
  }
  const auto known = published_.find(form);
  if (known == published_.end())
    throw_runtime("times of collectives: no published time of {}", words(form.first, form.second));
  double log_share = 0;
  for (const auto& [link, times] : by_link) {
    const LinkConstants::Constants usual = known->second->links.constants(link, "");
    const LinkConstants::Constants refined = known->second->links.refined(usual, times);
    log_share += std::log(refined.share / usual.share);
    out.constants[link] = refined;
  }
  out.share = std::exp(log_share / static_cast<double>(by_link.size()));
  out.points = std::move(points);
  own_[form] = std::make_shared<const Own>(std::move(out));
}

const FormConstants& CollectiveEstimator::of(const CollectiveQuestion& q) const {
  const auto found = published_.find({form_of(q.kind), q.many()});
  if (found == published_.end()) throw_usage("no measurement of {}", words(form_of(q.kind), q.many()));
  return *found->second;
}

const CollectiveEstimator::Own* CollectiveEstimator::own(const CollectiveQuestion& q) const {
  const auto found = own_.find({form_of(q.kind), q.many()});
  return found == own_.end() ? nullptr : found->second.get();
}

const CollectiveEstimator::Curve* CollectiveEstimator::curve(const CollectiveQuestion& q) const {
  if (const Own* known = own(q))
    for (const Curve& each : known->curves)
      if (each.front().kind == q.kind && each.front().group.ranks == q.group.ranks &&
          each.front().group.nodes == q.group.nodes)
        return &each;
  return nullptr;
}

LinkConstants::Constants CollectiveEstimator::constants(const CollectiveQuestion& q, const LinkLoad& load) const {
  const auto shared = q.many() ? link_of_.find(q.machine.fabric) : link_of_.end();
  const LinkConstants& known = of(q).links;
  LinkConstants::Constants out =
      known.constants(shared == link_of_.end() ? load.link : shared->second, q.many() ? q.machine.fabric : "");
  if (const Own* measured = own(q)) {
    if (const auto found = measured->constants.find(load.link); found != measured->constants.end())
      return found->second;
    out.share *= measured->share;
    return out;
  }
  // The bandwidth of another form over the same links applies to this form. Its latency does not.
  for (const CollectiveForm other : {CollectiveForm::gather, CollectiveForm::reduce, CollectiveForm::exchange})
    if (const auto found = own_.find({other, q.many()}); found != own_.end()) {
      out.share *= found->second->share;
      break;
    }
  return out;
}

double CollectiveEstimator::model_s(const CollectiveQuestion& q, bool python) const {
  const LinkLoad load = link_load(q);
  double seconds = of(q).links.seconds(load, constants(q, load), python);
  if (q.many() && q.machine.hop_s > 0) {
    seconds += load.hops * (q.machine.hop_s - reference_hop_s(q.machine.transport));
    seconds = std::max(seconds, kLeastLatency_s + load.transfer_s);
  }
  return seconds;
}

double CollectiveEstimator::time_s(const CollectiveQuestion& q, bool python) const {
  const Curve* known = curve(q);
  if (known == nullptr) {
    const auto most = q.many() ? largest_.find(q.machine.fabric) : largest_.end();
    if (most == largest_.end() || q.bytes <= most->second) return model_s(q, python);
    const CollectiveQuestion measured{q.kind, most->second, q.group, q.machine};
    return model_s(measured, python) * q.bytes / most->second;
  }
  // The measurement includes the latency and the fabric of this network. Only the link rates may be another cluster's.
  CollectiveMachine own = q.machine;
  own.nvlink_Bps = known->front().machine.nvlink_Bps;
  own.nic_Bps = known->front().machine.nic_Bps;
  const CollectiveQuestion here{q.kind, q.bytes, q.group, own};
  const double other_machine = same_rates(q.machine, own) ? 1 : model_s(q, false) / model_s(here, false);
  const auto above = std::ranges::lower_bound(*known, q.bytes, {}, &CollectivePoint::bytes);
  if (above != known->end() && above != known->begin()) {
    const CollectivePoint &from = *std::prev(above), &to = *above;
    const double share = std::log(q.bytes / from.bytes) / std::log(to.bytes / from.bytes);
    return other_machine * from.seconds * std::pow(to.seconds / from.seconds, share);
  }
  const CollectivePoint& end = above == known->end() ? known->back() : known->front();
  const CollectiveQuestion at_end{q.kind, end.bytes, q.group, own};
  return other_machine * end.seconds * model_s(here, false) / model_s(at_end, false);
}

CollectiveEstimate CollectiveEstimator::estimate(const CollectiveQuestion& q) const {
  CollectiveEstimate out{.relative_spread = 0, .evidence = Evidence::derived};
  if (q.group.ranks <= 1) return out;
  if (cpu_) return estimate_by_cpu(*cpu_, q.kind, q.bytes, q.group.ranks);
  out.algorithm = nccl_all_reduce(q.machine, q.bytes, q.group.ranks, q.group.nodes);
  out.latency_s = time_s({q.kind, 1, q.group, q.machine}, false);
  if (q.bytes > 0) {
    // No transfer is faster than the wire: where the latency of a one-byte message leaves less time, it is reduced.
    const double seconds = time_s(q, false), least = least_s(q, out.algorithm);
    out.latency_s = std::max(std::min(out.latency_s, seconds - least), kLeastLatency_s);
    out.efficiency = wire_s(q, out.algorithm) / std::max(seconds - out.latency_s, least);
  }
  out.root = Evidence::published;
  out.lookup = Lookup::fitted;
  out.relative_spread = of(q).spread[q.bytes < kSmallMessage ? 0 : 1];
  const bool itself = q.kind != OpKind::broadcast && q.kind != OpKind::send;
  if (const Curve* known = curve(q)) {
    const auto nearest = std::ranges::min_element(
        *known, {}, [&](const CollectivePoint& p) { return std::abs(std::log(p.bytes / std::max(1.0, q.bytes))); });
    out.lookup = Lookup::exact;
    out.evidence = nearest->evidence;
    out.root = nearest->root.value_or(nearest->evidence);
    out.relative_spread = nearest->relative_spread;
    if (!same_rates(known->front().machine, q.machine)) {
      out.lookup = Lookup::fitted;
      out.evidence = Evidence::derived;
      out.relative_spread *= kFromAnotherForm;
    }
  } else if (const Own* measured = own(q)) {
    out.root = measured->points.front().root.value_or(measured->points.front().evidence);
  } else if (!own_.empty()) {
    out.relative_spread *= kFromAnotherForm;
  } else if (!knows_link(q)) {
    out.relative_spread *= kUnknownLink;
  } else if (itself) {
    out.evidence = Evidence::published;
  }
  out.relative_spread = std::min(out.relative_spread, kWidestSpread);
  return out;
}

double CollectiveEstimator::seconds(const CollectiveQuestion& q, bool python) const {
  if (q.group.ranks <= 1) return 0;
  const CollectiveEstimate alone = estimate(q);
  const double host_s = python ? of(q).links.python_s() : 0;
  return host_s + alone.latency_s + alone.cpu_s + (cpu_ ? 0 : wire_s(q, alone.algorithm) / alone.efficiency);
}

std::string CollectiveEstimator::blind_spot(const CollectiveQuestion& q) const {
  const auto known = published_.find({form_of(q.kind), q.many()});
  const std::string form = fmt::format("{}, {}", to_string(form_of(q.kind)), q.many() ? "many nodes" : "one node");
  if (known == published_.end() || known->second->points < kFewestPoints)
    return fmt::format("fewer than {} measurements of {} on other clusters", kFewestPoints, form);
  const std::set<std::string>& transports = known->second->small_transports;
  const bool small =
      q.bytes >= kSmallMessage || (q.many() ? transports.count(q.machine.transport) > 0 : !transports.empty());
  if (small) return "";
  return fmt::format("no other cluster {} measured below 64 MiB: latencies do not carry over",
                     q.many() ? "over " + q.machine.transport : "of one node");
}

bool CollectiveEstimator::knows_link(const CollectiveQuestion& q) const {
  return of(q).links.knows_link(link_load(q).link);
}

void CollectiveEstimator::check_fabric(const CollectiveMachine& machine) const {
  if (machine.fabric.empty() || knows_fabric(machine.fabric)) return;
  std::string allowed;
  for (const auto& [name, bytes] : largest_) allowed += (allowed.empty() ? "'" : "', '") + name;
  throw_usage(
      "nic.fabric: found '{}', allowed are fabrics of configs/measurements/collectives.csv: {}'; leave it out for what "
      "is usual over {}",
      machine.fabric, allowed, machine.transport);
}

std::vector<std::string> CollectiveEstimator::basis() const {
  std::vector<std::string> out;
  if (own_.empty()) return out;
  for (const auto& [form, known] : published_) {
    const auto measured = own_.find(form);
    if (measured != own_.end()) {
      const std::vector<CollectivePoint>& points = measured->second->points;
      const auto [fewest, most] =
          std::ranges::minmax_element(points, {}, [](const CollectivePoint& p) { return p.group.nodes; });
      out.push_back(fmt::format("Times of {}: {} points of the profile ({}{}), first {}.",
                                words(form.first, form.second), points.size(), to_string(points.front().evidence),
                                !form.second ? ""
                                : fewest->group.nodes == most->group.nodes
                                    ? fmt::format(", {} nodes", most->group.nodes)
                                    : fmt::format(", {} to {} nodes", fewest->group.nodes, most->group.nodes),
                                points.front().source));
      continue;
    }
    const auto other =
        std::ranges::find_if(own_, [across = form.second](const auto& each) { return each.first.second == across; });
    out.push_back(fmt::format(
        "Times of {}: none in the profile; published ones{}.", words(form.first, form.second),
        other == own_.end() ? ""
                            : fmt::format(", their bandwidth {:.2f} times what is usual, as measured {} reached here",
                                          other->second->share, words(other->first.first, form.second))));
  }
  return out;
}

CollectiveEstimate slowed(CollectiveEstimate estimate, double factor, const CollectiveQuestion& q) {
  estimate.latency_s *= factor;
  if (q.bytes <= 0) return estimate;
  const double wire = wire_s(q, estimate.algorithm);
  estimate.efficiency = wire / std::max(wire / estimate.efficiency * factor, least_s(q, estimate.algorithm));
  return estimate;
}

}  // namespace wt
