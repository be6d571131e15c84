// Runs as a watch sees them: the steps of a run that something happens to, the rules it is watched by, and the ends of
// the actions that a ladder asks for.
#pragma once
#include <fmt/core.h>

#include <functional>
#include <string>

#include "planner/watch/ladder.hpp"

namespace wt::test {

/// The shipped rules with short windows: a signal needs four steps, a verification as many.
inline WatchRules short_rules() {
  WatchRules rules = read_watch_rules("default");
  rules.window = 4, rules.verify_steps = 4, rules.rollback = {10, 20};
  for (SignalRule& rule : rules.signals)
    if (rule.metric != WatchedMetric::silence) rule.steps = 4;
  return rules;
}

/// Steps of 1 s, 0.2 s of them exposed communication, with falling loss; `change` has its way with each.
inline TrainingObservation made_up_run(int steps, const std::function<void(TrainingStep&)>& change = {}) {
  TrainingObservation out;
  double now = 1e9;
  for (int i = 1; i <= steps; ++i) {
    TrainingStep s{.step = i,
                   .step_s = 1 + 0.01 * (i % 3),
                   .loss = 5 - 0.01 * i,
                   .exposed_communication_s = 0.2,
                   .expert_imbalance = 1.1};
    s.grad_norm = 1;
    if (change) change(s);
    s.unix_s = now += s.step_s;
    out.steps.push_back(s);
  }
  out.now_unix_s = out.last_sign_unix_s = now;
  return out;
}

/// A verdict on nodes n0, n1, ... that cordons these, as sure as that.
inline HealthVerdict sweep_of(int nodes, const std::vector<std::string>& guilty, double sure = 0.9999) {
  HealthVerdict out;
  out.comparisons = static_cast<std::size_t>(nodes);
  for (int i = 0; i < nodes; ++i) {
    NodeVerdict node{.node = fmt::format("n{}", i), .state = NodeState::healthy, .findings = {}};
    if (std::find(guilty.begin(), guilty.end(), node.node) != guilty.end()) {
      node.state = NodeState::cordon;
      node.findings = {{NodeState::cordon, node.node, "compute", "GPU-0: 50 % slower", "run diagnostics", sure}};
    }
    out.nodes.push_back(node);
  }
  return out;
}

}  // namespace wt::test
