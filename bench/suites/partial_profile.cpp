#include "bench/suites/partial_profile.hpp"

#include <algorithm>
#include <iterator>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "configs/machine/fingerprint.hpp"

namespace wt {
namespace {

const char* const kDone = "run.done";  // finished suites, each followed by a blank

/// Run facts that must agree to continue a bench: machine, build, and the requested measurements.
constexpr const char* kSame[] = {"commit",     "host",        "gpu_uuid",          "run.name",
                                 "run.models", "run.largest", "run.seed",          "run.samples",
                                 "run.quick",  "run.store",   "run.store_endpoint"};

std::vector<FingerprintDifference> what_differs(const Fingerprint& before, const Fingerprint& now) {
  std::vector<FingerprintDifference> out = differences(before, now);
  for (const char* key : kSame)
    if (const std::string was = value_or(before, key), is = value_or(now, key); was != is)
      out.push_back({key, was, is});
  return out;
}

bool of_ranks(const Measurement& m) { return m.shape.count("ranks") > 0; }

}  // namespace

PartialProfile::PartialProfile(const std::filesystem::path& output, std::map<std::string, std::string> facts)
    : profile_{std::move(facts), {}} {
  if (output.empty()) return;
  file_ = output.string() + ".partial";
  if (!std::filesystem::exists(file_)) return;
  Profile before;
  try {
    before = read_profile(file_);
  } catch (const Error& e) {
    fmt::print(stderr, "windtunnel bench: starts anew: {}\n", e.what());
    return;
  }
  if (const auto found = what_differs(before.fingerprint, profile_.fingerprint); !found.empty()) {
    fmt::print(stderr, "windtunnel bench: starts anew, as {} is not of this machine, build and command: {}\n",
               file_.string(), to_string(found));
    return;
  }
  profile_.measurements = std::move(before.measurements);
  kernels_ = static_cast<std::size_t>(
      std::ranges::count_if(profile_.measurements, [](const Measurement& m) { return !of_ranks(m); }));
  if (before.fingerprint.count(kDone)) profile_.fingerprint[kDone] = before.fingerprint.at(kDone);
  fmt::print(stderr, "windtunnel bench: continues from {}, which has {} measurements\n", file_.string(),
             profile_.measurements.size());
}

void PartialProfile::put_kernels(const Profile& kernels) {
  std::vector<Measurement> all = kernels.measurements;
  std::copy(profile_.measurements.begin() + static_cast<std::ptrdiff_t>(kernels_), profile_.measurements.end(),
            std::back_inserter(all));
  kernels_ = kernels.measurements.size();
  profile_.measurements = std::move(all);
  profile_.failures = kernels.failures;  // the kernels' failures come first
  save();
}

void PartialProfile::put(Profile all) {
  profile_ = std::move(all);
  save();
}

void PartialProfile::set_done(const std::string& suite) {
  profile_.fingerprint[kDone] += suite + " ";
  save();
}

bool PartialProfile::done(const std::string& suite) const {
  const auto found = profile_.fingerprint.find(kDone);
  return found != profile_.fingerprint.end() && (" " + found->second).find(" " + suite + " ") != std::string::npos;
}

void PartialProfile::add_facts(const std::map<std::string, std::string>& facts) {
  for (const auto& [key, value] : facts) profile_.fingerprint[key] = value;
}

void PartialProfile::save() const {
  if (!file_.empty()) write_profile(profile_, file_);
}

Profile PartialProfile::finish() {
  profile_.fingerprint.erase(kDone);
  std::error_code ignored;
  if (!file_.empty()) std::filesystem::remove(file_, ignored);
  return profile_;
}

}  // namespace wt
