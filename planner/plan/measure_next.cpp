#include "planner/plan/measure_next.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "planner/plan/plan.hpp"
#include "sim/statistics/evenly.hpp"

namespace wt {
namespace {

constexpr double kMinute_s = 60;

/// Minutes of nccl-tests with its defaults (5 warm-up and 20 timed calls, 1 KiB to 8 GiB by doublings), on at most the
/// number of nodes that a site lends for a test.
std::optional<double> collective_minutes(const PlanInputs& inputs, OpKind kind, bool between) {
  const ClusterSpec& c = inputs.study.cluster;
  if (c.shared_cores()) return std::nullopt;
  constexpr std::int64_t kMostNodes = 16;
  constexpr double kSmallest = 1 << 10, kLargest = 8.0 * (1 << 30), kCalls = 25;
  const std::int64_t nodes = between ? std::min(kMostNodes, c.nodes) : 1, ranks = nodes * c.gpus_per_node;
  const double Bps = between ? c.nic_per_gpu_Bps() : c.nvswitch_Bps;
  double seconds = 0;
  for (double bytes = kSmallest; bytes <= kLargest; bytes *= 2) {
    const CollectiveEstimate estimate = inputs.times->collective(kind, bytes, ranks, nodes);
    seconds += kCalls * (estimate.latency_s + bytes / (estimate.efficiency * Bps));
  }
  return seconds / kMinute_s;
}

/// Missing shapes by kernel; empty if the study's GPUs are of several kinds.
std::map<Kernel, std::vector<MissingShape>> missing_shapes(const PlanInputs& inputs, const Plan& plan) {
  std::map<Kernel, std::vector<MissingShape>> out;
  const StudySpec& s = inputs.study;
  if (!s.cluster.shared_cores() && s.cluster.one_gpu(s.gpus).empty()) return out;
  std::vector<Layout> layouts;
  for (const std::size_t i : plan.robust.layouts) layouts.push_back(plan.search.candidates[i].layout);
  for (const MissingShape& shape : layout_shapes(inputs, layouts).missing) out[shape.item.kernel].push_back(shape);
  return out;
}

class Worths {
 public:
  Worths(const PlanInputs& inputs, const Plan& plan, int samples)
      : inputs_(inputs), plan_(plan), samples_(samples), shapes_(missing_shapes(inputs, plan)) {}

  Worth of(const VariedClass& varied) const {
    const RegretTable& table = plan_.robust.table;
    const auto& [low, high] = varied.scenarios;
    Worth out = worth(varied.times.name,
                      value_of_knowing({table.steps_s[low], table.steps_s[0], table.steps_s[high]}, plan_.robust.chosen,
                                       inputs_.study.search.tie, plan_.robust.given_up()));
    const std::size_t chosen = plan_.robust.chosen;
    out.width = amount_of(table.steps_s[high][chosen] - table.steps_s[low][chosen]);
    out.joint = !varied.times.single();
    measured_by(varied.times, out);
    return out;
  }

  /// All recorded loads are equally likely.
  Worth of_loads() const {
    const RobustChoice& r = plan_.robust;
    std::vector<std::vector<double>> steps_s;
    double least_s = r.table.steps_s[0][r.chosen], most_s = least_s;
    for (const std::size_t scenario : r.loads) {
      steps_s.push_back(r.table.steps_s[scenario]);
      least_s = std::min(least_s, steps_s.back()[r.chosen]);
      most_s = std::max(most_s, steps_s.back()[r.chosen]);
    }
    const std::vector<double> alike(steps_s.size(), 1 / static_cast<double>(steps_s.size()));
    Worth out =
        worth("expert loads", value_of_knowing(steps_s, alike, r.chosen, inputs_.study.search.tie, r.given_up()));
    out.width = amount_of(most_s - least_s);
    out.how = "a recording of this model's routing";
    return out;
  }

 private:
  bool energy() const { return inputs_.study.prefer == Prefer::energy; }
  /// The share of the chosen layout's step at predicted times; the objective scales with it.
  double share_of(double step_s) const { return step_s / plan_.robust.table.steps_s[0][plan_.robust.chosen]; }
  double amount_of(double step_s) const {
    return share_of(step_s) * (energy() ? plan_.cost.energy->p50 : plan_.schedule.days());
  }

  Worth worth(const std::string& what, const ValueOfKnowing& known) const {
    Worth out;
    out.what = what;
    out.changes = known.changes;
    out.saves = amount_of(known.saves_s);
    if (energy()) return out;
    out.saves_gpu_hours = share_of(known.saves_s) * plan_.cost.gpu_hours.p50;
    if (plan_.cost.money) out.saves_money = share_of(known.saves_s) * plan_.cost.money->p50;
    return out;
  }

  void measured_by(const TimeClass& times, Worth& out) const {
    if (!times.kernels.empty()) {
      double seconds = 0;
      for (const Kernel kernel : times.kernels)
        if (const auto found = shapes_.find(kernel); found != shapes_.end())
          for (const MissingShape& shape : found->second) {
            seconds += estimated_s(shape, !inputs_.study.cluster.shared_cores(), samples_);
            out.shapes.push_back(shape);
          }
      const bool several_kinds = !inputs_.study.cluster.others.empty();
      out.how = !out.shapes.empty() ? "windtunnel bench --for STUDY"
                : several_kinds     ? "windtunnel bench, on each kind of node"
                                    : "nothing: its profiles have these shapes";
      if (!out.shapes.empty()) out.minutes = seconds / kMinute_s;
    } else if (times.slowdown) {
      out.how = "windtunnel bench collectives, on two GPUs";
    } else {
      double minutes = 0;
      for (const auto& [kind, between] : times.collectives)
        if (const auto one = collective_minutes(inputs_, kind, between)) minutes += *one;
      out.how = inputs_.study.cluster.shared_cores() ? "windtunnel bench collectives" : "nccl-tests, windtunnel import";
      if (minutes > 0) out.minutes = minutes;
    }
  }

  const PlanInputs& inputs_;
  const Plan& plan_;
  int samples_;
  std::map<Kernel, std::vector<MissingShape>> shapes_;
};

std::string sentence_of(const MeasureNext& next, const RobustChoice& robust, double tie) {
  if (robust.layouts.size() == 1) return "Nothing to measure for the choice: one layout alone was simulated";
  std::string out;
  if (next.rows.empty() || !(next.rows.front().saves > 0)) {
    out = fmt::format(
        "No time that was varied would change the layout: whatever one of them turns out to be, it stays within {:.1f} "
        "% of the best. Measuring narrows the {} alone",
        100 * std::max(tie, robust.given_up()), next.unit == "days" ? "finish date" : "energy");
  } else {
    const auto measurable = std::ranges::find_if(next.rows, &Worth::measurable);
    const Worth& first = measurable == next.rows.end() ? next.rows.front() : *measurable;
    out = fmt::format(
        "Measure {} first: knowing it would change the layout in {:.0f} % of cases and saves {} in the mean, {}{}",
        first.what, 100 * first.changes, amount_text(first.saves, next.unit),
        first.minutes ? fmt::format("for {:.2g} minutes of ", *first.minutes) : "by ", first.how);
  }
  if (!robust.not_reached.empty())
    out += fmt::format(". The budget of simulations did not reach {}", fmt::join(robust.not_reached, ", "));
  return out;
}

}  // namespace

std::string amount_text(double amount, const std::string& unit) {
  return amount < 100 ? fmt::format("{:.2g} {}", amount, unit) : fmt::format("{:.0f} {}", amount, unit);
}

MeasureNext measure_next(const PlanInputs& inputs, const Plan& plan, int samples) {
  MeasureNext out;
  if (inputs.study.prefer == Prefer::energy) out.unit = "kWh";
  const Worths worths(inputs, plan, samples);
  for (const VariedClass& varied : plan.robust.classes) out.rows.push_back(worths.of(varied));
  if (!plan.robust.loads.empty()) out.rows.push_back(worths.of_loads());
  const auto rank = [](const Worth& w) {
    const auto rate = [&](double saves) { return w.minutes ? saves / std::max(*w.minutes, 1e-9) : saves; };
    return std::tuple(w.saves > 0, !w.joint, w.minutes.has_value(), rate(w.saves > 0 ? w.saves : w.width));
  };
  std::ranges::stable_sort(out.rows, [&](const Worth& a, const Worth& b) { return rank(a) > rank(b); });
  out.sentence = sentence_of(out, plan.robust, inputs.study.search.tie);
  return out;
}

WorthMinutes worth_minutes(const MeasureNext& next, double seconds, bool on_gpu, int samples) {
  WorthMinutes out;
  for (const Worth& row : next.rows) {
    if (row.shapes.empty() || row.joint) continue;
    std::vector<MissingShape> shapes = row.shapes;
    const auto takes_s = [&] {
      double sum = 0;
      for (const MissingShape& shape : shapes) sum += estimated_s(shape, on_gpu, samples);
      return sum;
    };
    while (!shapes.empty() && out.seconds + takes_s() > seconds) shapes = evenly(row.shapes, shapes.size() - 1);
    if (shapes.empty()) {
      out.left_out.push_back(row);
      continue;
    }
    out.seconds += takes_s();
    out.taken.push_back({row, std::move(shapes)});
  }
  return out;
}

}  // namespace wt
