// Op factors from the traces of training runs.
#include <algorithm>
#include <cmath>
#include <map>

#include "configs/base/error.hpp"
#include "configs/files/recompute_mask.hpp"
#include "sim/cost/calibrate/calibration.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/walk.hpp"
#include "sim/statistics/non_negative_fit.hpp"

namespace wt::detail {
namespace {

/// Share of an op's calls that the mean leaves out at either end, because they may have stalled. Means are used because
/// a step's time is a sum over its ops. Over eleven runs on two cores, means missed 0.2 % of a step's computation,
/// medians 2.6 %: they leave out what the tails add.
constexpr double kStalled = 0.02;
constexpr double kSeveralSizes = 1.5;  // largest over smallest prediction, from which an overhead is fitted

struct Trace {
  double items_s = 0;
  double seconds = 0;
  std::vector<double> samples;
  Evidence evidence = Evidence::assumed;
  std::string source;
};

/// From a kernel such as "op:attention.fwd", and shape key "group".
OpKey op_key(const Measurement& m) {
  const std::size_t dot = m.kernel.rfind('.');
  const std::string name = m.kernel.substr(3, dot == std::string::npos ? std::string::npos : dot - 3);
  const std::string suffix = dot == std::string::npos ? "" : m.kernel.substr(dot);
  OpKey key;
  bool found = false;
  for (int i = 0; i <= static_cast<int>(Action::reduce_loss); ++i)
    if (to_string(static_cast<Action>(i)) == name) {
      key.action = static_cast<Action>(i);
      found = true;
    }
  const std::int64_t group = shape_value(m, "group");
  if (!found || (suffix != ".fwd" && suffix != ".bwd" && suffix != ".rec") ||
      group > static_cast<std::int64_t>(Group::adapter))
    throw_usage(
        "profile, measurement '{}': found an op that no step program has, allowed are 'op:' + action + .fwd, .rec or "
        ".bwd with a group of 0 to 6; record the trace again with a trainer of this version",
        m.name());
  key.direction = suffix == ".fwd" ? Direction::forward : suffix == ".bwd" ? Direction::backward : Direction::recompute;
  key.group = static_cast<Group>(group);
  return key;
}

/// The op with this key and the most work items. An op with the same key may have none, such as a gather that moves
/// nothing.
const Op* find_op(const Program& program, const OpKey& key) {
  const Op* best = nullptr;
  for_each_op(program.nodes, [&](const Op& op, const LoopsAround&) {
    if (OpKey{op.action, op.direction, op.group} == key && (!best || op.work.size() > best->work.size())) best = &op;
  });
  return best;
}

struct TracedItems {
  double seconds = 0;
  bool routed = false;  ///< the items' rows change from call to call
};

/// Predicted time of the traced op's items. Throws Error{usage} with the reason if it cannot be predicted.
TracedItems items_of(const Measurement& m, const OpKey& key, const MachineModel& model) {
  const auto value = [&](const char* name) { return shape_value(m, name); };
  if (m.shape.contains("adapters")) throw_usage("a trace of adapters, whose ops do less than full training's");
  ModelSpec spec;
  spec.name = "traced run";
  spec.layers = value("layers"), spec.d_model = value("d_model"), spec.heads = value("n_heads");
  spec.kv_heads = value("kv_heads"), spec.head_dim = value("head_dim"), spec.ffn = value("ffn");
  spec.experts = value("experts"), spec.top_k = value("top_k"), spec.vocab = value("vocab");
  if (const auto modules = m.shape.find("mtp_layers"); modules != m.shape.end()) spec.mtp_layers = modules->second;
  Layout layout;
  layout.replicate = value("replicate"), layout.shard = value("shard"), layout.expert = value("expert_ranks");
  layout.microbatch = value("microbatch");
  const auto again = m.shape.find("recompute");  // of the op's layer; for older traces the whole block
  layout.recompute = recompute_of_mask(again != m.shape.end()                  ? again->second
                                       : key.direction == Direction::recompute ? 1
                                                                               : 0);
  ProgramOptions options;
  options.seq = value("seq");
  options.precision = m.dtype == "bf16" ? Precision::bf16 : Precision::fp32;
  const ProgramSet set = build_program_set(spec, layout, options);
  const Op* op = find_op(set.programs.front(), key);
  if (!op) throw_usage("the step program of its shape has no such op");
  return {model.items_of(*op, static_cast<double>(value("rows"))).seconds,
          std::ranges::any_of(op->work, [](const WorkItem& item) { return item.rows.per_row != 0; })};
}

/// Relative standard deviation from one call to the next, from differences of neighbours (von Neumann 1941). It leaves
/// out slow phases of the machine, which affect all ranks alike, and differences between two profiles. For normally
/// distributed times it is some 6 % low, because calls at both ends are left out.
double variation(const std::vector<double>& samples, const std::vector<std::size_t>& joins) {
  const auto [least, most] = trimmed_range(samples, kStalled);
  const auto usual = [least = least, most = most](double seconds) { return least <= seconds && seconds <= most; };
  double squares = 0, differences = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (!usual(samples[i]) || !usual(samples[i - 1]) || std::ranges::find(joins, i) != joins.end()) continue;
    squares += std::pow(samples[i] - samples[i - 1], 2) / 2, ++differences;
  }
  return differences > 0 ? std::sqrt(squares / differences) / trimmed_mean(samples, kStalled) : 0;
}

OpFactor fit_factor(const std::vector<Trace>& traces) {
  double smallest = -1, largest = 0;
  for (const Trace& t : traces) {
    smallest = smallest < 0 ? t.items_s : std::min(smallest, t.items_s);
    largest = std::max(largest, t.items_s);
  }
  const bool several = largest > kSeveralSizes * smallest || !(largest > 0);
  std::vector<std::vector<double>> features;
  std::vector<double> seconds;
  for (const Trace& t : traces) {
    features.push_back({t.items_s, several ? 1.0 : 0.0});
    seconds.push_back(t.seconds);
  }
  const std::vector<double> c = fit_relative(features, seconds);
  OpFactor out;
  out.factor = c[0];
  out.overhead_s = c[1];
  out.evidence = Evidence::measured;
  std::vector<double> ratios;
  for (const Trace& t : traces) {
    const double predicted = out.overhead_s + out.factor * t.items_s;
    for (double sample : t.samples)
      if (predicted > 0) ratios.push_back(sample / predicted);
    out.evidence = std::max(out.evidence, t.evidence);
  }
  std::tie(out.low_ratio, out.high_ratio) = ratio_interval(ratios);
  out.points = static_cast<std::int64_t>(traces.size());
  out.source = traces.front().source;
  return out;
}

}  // namespace

void calibrate_ops(const std::vector<Sample>& samples, Calibration& out) {
  if (samples.empty()) return;
  const MachineModel model(out.data);
  std::map<OpKey, std::vector<Trace>> traces;
  std::map<std::string, std::pair<int, std::string>> failed;
  double varied_s = 0, varying_s = 0;
  for (const Sample& sample : samples) {
    const Measurement& m = sample.measurement;
    const OpKey key = op_key(m);
    if (!(m.median() > 0)) continue;  // the op is shorter than a tick of its clock
    try {
      const auto sharing = m.shape.find("host_ranks");
      const double crowding = sharing == m.shape.end() ? 1 : model.traits().crowding_of(sharing->second);
      const TracedItems items = items_of(m, key, model);
      Trace trace{items.seconds, trimmed_mean(m.samples, kStalled) / crowding, m.samples, m.evidence.kind,
                  m.evidence.source};
      for (double& seconds : trace.samples) seconds /= crowding;
      if (const double all_s = trace.seconds * static_cast<double>(m.samples.size());
          !items.routed && m.samples.size() > sample.joins.size() + 1)
        varied_s += all_s * variation(m.samples, sample.joins), varying_s += all_s;
      traces[key].push_back(std::move(trace));
    } catch (const Error& error) {
      auto& entry = failed[to_string(key)];
      if (++entry.first == 1) entry.second = m.name() + ": " + error.what();
    }
  }
  if (varying_s > 0) {
    out.data.variation = varied_s / varying_s;
    if (out.data.synchronous_host)
      out.notes.push_back(fmt::format("ops vary by {:.1f} % from call to call", 100 * out.data.variation));
  }
  for (const auto& [key, why] : failed)
    out.notes.push_back(fmt::format("left out: {} trace(s) of op {}; the first: {}", why.first, key, why.second));
  for (const auto& [key, points] : traces) {
    if (points.empty()) continue;
    const OpFactor factor = fit_factor(points);
    std::vector<double> measured, predicted, held_out;
    for (std::size_t i = 0; i < points.size(); ++i) {
      measured.push_back(points[i].seconds);
      predicted.push_back(factor.overhead_s + factor.factor * points[i].items_s);
      if (points.size() < 3) continue;
      std::vector<Trace> rest = points;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      const OpFactor without = fit_factor(rest);
      const double guess = without.overhead_s + without.factor * points[i].items_s;
      if (guess > 0) held_out.push_back(points[i].seconds / guess);
    }
    out.residuals.push_back(residual_row(to_string(key), "op", measured, predicted, held_out));
    const bool has_items = std::ranges::any_of(points, [](const Trace& t) { return t.items_s > 0; });
    if (has_items && (factor.factor < kLowestCredibleFactor || factor.factor > kHighestCredibleFactor))
      out.notes.push_back(
          fmt::format("op {}: factor {:.2f} over its items is outside {} .. {}; its benchmarks do not describe it",
                      to_string(key), factor.factor, kLowestCredibleFactor, kHighestCredibleFactor));
    out.data.ops[key] = factor;
  }
}

}  // namespace wt::detail
