#include "bench/formats/merge_profiles.hpp"

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "configs/machine/fingerprint.hpp"

namespace wt {
namespace {

// Appends a value to "a + b" unless it is already one of them.
std::string joined(const std::string& values, const std::string& value) {
  if (values.empty() || value.empty()) return values + value;
  return (" + " + values + " + ").find(" + " + value + " + ") == std::string::npos ? values + " + " + value : values;
}

void check_same_kind(const Measurement& a, const Measurement& b, const std::string& where) {
  if (a.unit == b.unit && a.smaller_is_better == b.smaller_is_better && a.evidence.kind == b.evidence.kind) return;
  const auto shown = [](const Measurement& m) {
    return fmt::format("{} ({} is better, {})", m.unit, m.smaller_is_better ? "smaller" : "bigger",
                       to_string(m.evidence.kind));
  };
  throw_usage("merge: found '{}' in {} and, in {}, in {}, allowed one unit, direction and evidence; rename one of them",
              a.name(), shown(a), where, shown(b));
}

}  // namespace

Profile merge(const std::vector<Profile>& profiles, const std::vector<std::string>& names) {
  const auto name = [&](std::size_t i) { return i < names.size() ? names[i] : fmt::format("profile {}", i + 1); };
  if (profiles.empty()) throw_usage("merge: found no profile, allowed one or more; name the files to merge");
  Profile all;
  all.fingerprint = profiles[0].fingerprint;
  std::string parts;
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const Fingerprint& facts = profiles[i].fingerprint;
    auto differing = differences(profiles[0].fingerprint, facts);
    // Run facts may differ, but samples of two commits must not be mixed.
    const auto commit = [](const Fingerprint& from) { return value_or(from, "commit"); };
    if (commit(facts) != commit(profiles[0].fingerprint))
      differing.push_back({"commit", commit(profiles[0].fingerprint), commit(facts)});
    if (!differing.empty())
      throw_usage(
          "merge: found different fingerprints in {} and {} ({}), allowed the same machine and software; compare them "
          "with the gate instead",
          name(0), name(i), to_string(differing));
    for (const auto& [key, value] : facts) all.fingerprint[key] = joined(all.fingerprint[key], value);
    parts += (parts.empty() ? "" : " ") + digest(profiles[i]);
    all.failures.insert(all.failures.end(), profiles[i].failures.begin(), profiles[i].failures.end());
    for (const Measurement& m : profiles[i].measurements) {
      const auto [found, is_new] = place.emplace(m.name(), all.measurements.size());
      if (is_new) {
        all.measurements.push_back(m);
      } else {
        check_same_kind(all.measurements[found->second], m, name(i));
        Measurement& known = all.measurements[found->second];
        known.pool(m);
        known.evidence.source = joined(known.evidence.source, m.evidence.source);
      }
    }
  }
  if (profiles.size() > 1)
    all.fingerprint[kMergedFrom] = parts;  // identifies the data that a machine model is made from
  return all;
}

}  // namespace wt
