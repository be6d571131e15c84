// The summary of a whole comparison: counts, exit status, one sentence.
#include <fmt/core.h>
#include <array>

#include <algorithm>
#include <limits>

#include "bench/gate/gate.hpp"
#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

/// Benchmarks that both profiles measured.
std::size_t compared(const GateResult& result) {
  return result.rows.size() - result.count(Verdict::failed) - result.count(Verdict::missing) -
         result.count(Verdict::fresh);
}

/// Of any inconclusive benchmark, on either side.
std::size_t fewest_samples(const GateResult& result) {
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const GateRow& row : result.rows)
    if (row.verdict == Verdict::inconclusive) fewest = std::min({fewest, row.base_n, row.current_n});
  return fewest;
}

}  // namespace

std::string to_string(Verdict verdict) {
  return word_for(verdict, std::array{"slower", "failed", "missing", "incomparable", "inconclusive",
                                      "slower, below the floor", "faster", "new", "same"});
}

std::size_t GateResult::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(rows, [&](const GateRow& row) { return row.verdict == verdict; }));
}

int GateResult::exit_status() const {
  if (!differences.empty()) return static_cast<int>(Code::undecided);
  if (std::ranges::any_of(rows,
                          [](const GateRow& row) { return row.verdict == Verdict::failed && !row.failed_before; }))
    return static_cast<int>(Code::finding);
  if (compared(*this) == 0) return static_cast<int>(Code::undecided);
  if (count(Verdict::slower) > 0 || (count(Verdict::missing) > 0 && !options.allow_missing))
    return static_cast<int>(Code::finding);
  if (count(Verdict::incomparable) > 0 || (options.strict && count(Verdict::inconclusive) > 0))
    return static_cast<int>(Code::undecided);
  return 0;
}

std::string GateResult::sentence() const {
  if (!differences.empty())
    return fmt::format("Not comparable: the fingerprints differ in {}.", to_string(differences));
  const std::size_t slower = count(Verdict::slower), failed = count(Verdict::failed), missing = count(Verdict::missing);
  if (compared(*this) == 0 && failed == 0 && unmeasured > 0)
    return fmt::format(
        "Nothing was compared: no side measured {} benchmark{}, and the profiles have no other in common.", unmeasured,
        unmeasured == 1 ? "" : "s");
  if (compared(*this) == 0 && failed == 0) return "Nothing was compared: the profiles have no benchmark in common.";
  const auto before =
      static_cast<std::size_t>(std::ranges::count_if(rows, [](const GateRow& row) { return row.failed_before; }));
  if (compared(*this) == 0 && failed == before)
    return fmt::format("Nothing was compared: {} benchmark{} failed on both sides.", failed, failed == 1 ? "" : "s");
  const std::size_t decided = compared(*this) - count(Verdict::inconclusive) - count(Verdict::incomparable);
  std::string text = slower > 0    ? fmt::format("{} regression{}", slower, slower == 1 ? "" : "s")
                     : decided > 0 ? "No regression"
                                   : "Nothing could be decided";
  text += fmt::format(" in {} benchmark{} compared", compared(*this), compared(*this) == 1 ? "" : "s");
  if (failed > 0) text += fmt::format(", {} failed", failed);
  for (Verdict verdict :
       {Verdict::faster, Verdict::below_floor, Verdict::inconclusive, Verdict::incomparable, Verdict::fresh})
    if (count(verdict) > 0) text += fmt::format(", {} {}", count(verdict), to_string(verdict));
  if (unmeasured > 0) text += fmt::format(", {} not judged because no side measured them", unmeasured);
  if (missing > 0) text += fmt::format(", {} missing{}", missing, options.allow_missing ? " (allowed)" : "");
  if (slower == 0 && decided == 0)
    if (const std::size_t fewest = fewest_samples(*this); fewest < options.min_samples)
      text += fmt::format("; {} a side, at least {} are needed", counted(static_cast<std::int64_t>(fewest), "sample"),
                          options.min_samples);
  return text + ".";
}

}  // namespace wt
