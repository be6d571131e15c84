// Slow nodes of a run on a trace. The job waits for its slowest node. Only for replay_trace.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/months/fault_trace.hpp"
#include "sim/months/node_pool.hpp"

namespace wt::detail {

class SlowPhases {
 public:
  explicit SlowPhases(FaultTrace& trace) : trace_(trace) {
    for (const FaultLaw& law : trace.laws()) {
      if (!slows(law)) continue;
      any_ = true;
    }
  }

  double factor() const { return factor_; }
  std::int64_t count() const { return count_; }
  std::int64_t lasts(const TraceEvent& e) const {
    const FaultLaw& law = trace_.law(e);
    return lognormal_ns(law.lasts_s, law.sigma, e.key, TraceDraw::lasts);
  }
  /// A node that the event slows trains, and was neither repaired nor replaced since.
  bool affects_job(const TraceEvent& e, const NodePool& pool) const {
    const EntityTree::Nodes nodes = trace_.nodes_of(e);
    for (std::int64_t node = nodes.first; node < nodes.first + nodes.count; ++node)
      if (pool.trains_since(node, e.at)) return true;
    return false;
  }

  /// Advances to `now`. Returns until when the factor stays the same. A phase ends at the latest when none of its slow
  /// nodes trains any more.
  std::int64_t pass(std::int64_t now, const NodePool& pool) {
    if (!any_) return kNever;
    std::int64_t until = kNever;
    for (;; ++passed_) {
      const TraceEvent* e = trace_.event(passed_);
      if (!e) break;
      if (!slows(trace_.law(*e)) || !affects_job(*e, pool)) {
        if (e->at > now) break;
        continue;
      }
      if (e->at > now) {
        until = e->at;
        break;
      }
      ++count_;
      const bool found = trace_.law(*e).effect == FaultLaw::Effect::slow_replaced;
      phases_.push_back({trace_.law(*e).factor, e->at + lasts(*e), found, *e});
    }
    std::erase_if(phases_, [&](const Phase& p) { return (!p.found && p.until <= now) || !affects_job(p.event, pool); });
    factor_ = 1;
    for (const Phase& p : phases_) {
      factor_ = std::max(factor_, p.factor);
      if (!p.found) until = std::min(until, p.until);
    }
    if (const TraceEvent* e = trace_.event(passed_)) until = std::min(until, std::max(now + 1, e->at));
    return until;
  }

  /// When the first of the nodes to be replaced is detected.
  std::int64_t found() const {
    std::int64_t out = kNever;
    for (const Phase& p : phases_)
      if (p.found) out = std::min(out, p.until);
    return out;
  }
  /// Ends the phases of all nodes that are to be replaced. Calls `leaves(event)` for each.
  template <typename Leaves>
  void exchange(const Leaves& leaves) {
    for (const Phase& p : phases_)
      if (p.found) leaves(p.event);
    std::erase_if(phases_, [](const Phase& p) { return p.found; });
  }

 private:
  struct Phase {
    double factor;
    std::int64_t until;
    bool found;
    TraceEvent event;
  };
  static bool slows(const FaultLaw& law) {
    return law.effect == FaultLaw::Effect::slow || law.effect == FaultLaw::Effect::slow_replaced;
  }

  FaultTrace& trace_;
  bool any_ = false;
  double factor_ = 1;
  std::size_t passed_ = 0;
  std::int64_t count_ = 0;
  std::vector<Phase> phases_;
};

}  // namespace wt::detail
