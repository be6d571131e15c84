// What a whole comparison comes to: counts, exit status, one sentence.
#include <fmt/core.h>

#include <algorithm>

#include "bench/gate/gate.hpp"
#include "configs/spec/error.hpp"

namespace wt {

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::slower:
      return "slower";
    case Verdict::missing:
      return "missing";
    case Verdict::incomparable:
      return "incomparable";
    case Verdict::inconclusive:
      return "inconclusive";
    case Verdict::faster:
      return "faster";
    case Verdict::fresh:
      return "new";
    case Verdict::same:
      return "same";
  }
  return "inconclusive";
}

std::size_t GateResult::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [&](const GateRow& row) { return row.verdict == verdict; }));
}

int GateResult::exit_status() const {
  const std::size_t one_sided = count(Verdict::missing) + count(Verdict::fresh);
  const bool none_compared = rows.size() == one_sided;
  if (!differences.empty() || none_compared) return static_cast<int>(Code::undecided);
  if (count(Verdict::slower) > 0 || (count(Verdict::missing) > 0 && !options.allow_missing))
    return static_cast<int>(Code::finding);
  if (count(Verdict::incomparable) > 0 || (options.strict && count(Verdict::inconclusive) > 0))
    return static_cast<int>(Code::undecided);
  return 0;
}

std::string GateResult::sentence() const {
  if (!differences.empty())
    return fmt::format("Not comparable: the fingerprints differ in {}.", to_string(differences));
  const std::size_t one_sided = count(Verdict::missing) + count(Verdict::fresh);
  if (rows.size() == one_sided) return "Nothing was compared: the profiles have no benchmark in common.";
  const std::size_t slower = count(Verdict::slower), missing = count(Verdict::missing);
  std::string text = slower == 0 ? "No regression" : fmt::format("{} regression{}", slower, slower == 1 ? "" : "s");
  text += fmt::format(" in {} benchmark{} compared", rows.size() - one_sided, rows.size() - one_sided == 1 ? "" : "s");
  for (Verdict verdict : {Verdict::faster, Verdict::inconclusive, Verdict::incomparable, Verdict::fresh})
    if (count(verdict) > 0) text += fmt::format(", {} {}", count(verdict), to_string(verdict));
  if (missing > 0) text += fmt::format(", {} missing{}", missing, options.allow_missing ? " (allowed)" : "");
  return text + ".";
}

}  // namespace wt
