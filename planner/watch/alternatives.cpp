#include "planner/watch/alternatives.hpp"

#include <fmt/ranges.h>

#include "configs/base/enum_words.hpp"
#include "configs/base/quantity.hpp"

namespace wt {
namespace {

constexpr const char* kOptions[] = {"go on as it is", "spare", "shrink", "wait for repair"};

using Known = std::optional<double>;

/// "needs restart time, repair time", for the inputs that are missing.
std::string missing(std::initializer_list<std::pair<const char*, Known>> inputs) {
  std::vector<std::string> names;
  for (const auto& [name, value] : inputs)
    if (!value) names.emplace_back(name);
  return names.empty() ? "" : fmt::format("UNKNOWN without {}", fmt::join(names, ", "));
}

Alternative go_on(const LossFigures& f) {
  Alternative out{.option = RecoveryOption::go_on};
  if (f.remaining_s && f.slow_factor) out.lost_s = *f.remaining_s * (*f.slow_factor - 1);
  out.note = missing({{"remaining time", f.remaining_s}, {"slowdown", f.slow_factor}});
  if (!out.lost_s && f.slow_factor && f.restart_s && *f.slow_factor > 1)
    out.note += fmt::format("; pays against a spare with less than {} left",
                            format_seconds(*f.restart_s / (*f.slow_factor - 1)));
  return out;
}

Alternative spare(const LossFigures& f) {
  Alternative out{.option = RecoveryOption::spare, .possible = f.spare, .lost_s = f.restart_s};
  out.note = f.spare ? missing({{"restart time", f.restart_s}}) : "no spare is left";
  return out;
}

Alternative shrink(const LossFigures& f) {
  Alternative out{.option = RecoveryOption::shrink, .possible = f.shrunk_factor.has_value()};
  out.note = missing(
      {{"a layout of the planner", f.shrunk_factor}, {"restart time", f.restart_s}, {"remaining time", f.remaining_s}});
  if (!f.shrunk_factor || !f.restart_s) return out;
  const double r = *f.restart_s, slower = *f.shrunk_factor;
  if (f.remaining_s) out.lost_s = r + *f.remaining_s * (slower - 1);
  if (f.repair_s)
    out.note += fmt::format("{}{} where a human lets it grow again after the repair", out.note.empty() ? "" : "; ",
                            format_seconds(2 * r + *f.repair_s * (1 - 1 / slower)));
  else if (f.remaining_s)  // r + R (f - 1) < t + r
    out.note += fmt::format("pays against waiting for a repair that takes longer than {}",
                            format_seconds(*f.remaining_s * (slower - 1)));
  return out;
}

Alternative wait(const LossFigures& f) {
  Alternative out{.option = RecoveryOption::wait};
  if (f.repair_s && f.restart_s) out.lost_s = *f.repair_s + *f.restart_s;
  out.note = missing({{"repair time", f.repair_s}, {"restart time", f.restart_s}});
  return out;
}

}  // namespace

std::string to_string(RecoveryOption option) { return word_for(option, kOptions); }

std::optional<RecoveryOption> recovery_option_from(const std::string& words) {
  return enumerator_of<RecoveryOption>(words, kOptions);
}

std::vector<Alternative> alternatives(const LossFigures& figures) {
  std::vector<Alternative> out{go_on(figures), spare(figures), shrink(figures), wait(figures)};
  for (Alternative& each : out)
    if (each.lost_s && figures.remaining_s && *figures.remaining_s > 0)
      each.goodput = *figures.remaining_s / (*figures.remaining_s + *each.lost_s);
  return out;
}

std::optional<RecoveryOption> cheapest_option(const std::vector<Alternative>& alternatives) {
  const Alternative* best = nullptr;
  for (const Alternative& each : alternatives)
    if (each.possible && each.lost_s && (!best || *each.lost_s < *best->lost_s)) best = &each;
  return best ? std::optional(best->option) : std::nullopt;
}

}  // namespace wt
