// The summary of a whole comparison: counts, exit status, one sentence.
#include <fmt/core.h>
#include <array>

#include <algorithm>

#include "bench/gate/gate.hpp"
#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"

namespace wt {
namespace {

/// Benchmarks that both profiles measured.
std::size_t compared(const GateResult& result) {
  return result.rows.size() - result.count(Verdict::failed) - result.count(Verdict::missing) -
         result.count(Verdict::fresh);
}

}  // namespace

std::string to_string(Verdict verdict) {
  return word_for(verdict,
                  std::array{"slower", "failed", "missing", "incomparable", "inconclusive", "faster", "new", "same"});
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
  std::string text = slower == 0 ? "No regression" : fmt::format("{} regression{}", slower, slower == 1 ? "" : "s");
  text += fmt::format(" in {} benchmark{} compared", compared(*this), compared(*this) == 1 ? "" : "s");
  if (failed > 0) text += fmt::format(", {} failed", failed);
  for (Verdict verdict : {Verdict::faster, Verdict::inconclusive, Verdict::incomparable, Verdict::fresh})
    if (count(verdict) > 0) text += fmt::format(", {} {}", count(verdict), to_string(verdict));
  if (unmeasured > 0) text += fmt::format(", {} not judged because no side measured them", unmeasured);
  if (missing > 0) text += fmt::format(", {} missing{}", missing, options.allow_missing ? " (allowed)" : "");
  return text + ".";
}

}  // namespace wt
