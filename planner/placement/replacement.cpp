#include "planner/placement/replacement.hpp"

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"

namespace wt {

ReplacementStudy study_replacement(const LoadWindows& windows, std::int64_t layers, std::int64_t expert_ranks,
                                   const SlotOptions& slots, const ReplacementCosts& costs) {
  const auto& loads = windows.loads;
  const auto count = static_cast<std::int64_t>(loads.size());
  if (count < 2 || windows.steps < 1)
    throw_usage("drift: found {} windows of {} steps, needs two of a step or more: one to place by, others to judge by",
                count, windows.steps);
  const auto placed = [&](std::int64_t first, std::int64_t end, const Placement& from) {
    SlotOptions options = slots;
    options.from = from;
    return fill_slots(std::vector<LoadScenario>(loads.begin() + first, loads.begin() + end), layers, expert_ranks,
                      options);
  };
  const Placement first = placed(0, 1, {});
  const auto judged = [&](std::int64_t every) {
    ReplacementOption out{.every_steps = every * windows.steps, .load = 0, .with_moves_s = 0};
    Placement now = first;
    double moving_s = 0;
    for (std::int64_t w = 1; w < count; ++w) {
      if (every > 0 && w % every == 0) {
        Placement next = placed(w - every, w, now);
        if (next != now) moving_s += costs.move_s(now, next), ++out.moves;
        now = std::move(next);
      }
      const LoadScenario& window = loads[static_cast<std::size_t>(w)];
      out.step_s += costs.step_s(window, now) / as_double(count - 1);
      out.load += slots_load(window, now, layers, expert_ranks) / as_double(count - 1);
    }
    if (out.moves > 0) out.move_s = moving_s / as_double(out.moves);
    out.with_moves_s = out.step_s + moving_s / as_double((count - 1) * windows.steps);
    return out;
  };
  ReplacementStudy out{.windows = count - 1, .window_steps = windows.steps, .options = {judged(0)}};
  for (std::int64_t every = 1; every < count; every *= 2) {
    out.options.push_back(judged(every));
    if (out.options.back().with_moves_s < out.options[out.chosen].with_moves_s) out.chosen = out.options.size() - 1;
  }
  return out;
}

}  // namespace wt
