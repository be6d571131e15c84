// What a run is, setting by setting, in the words of its file. A checkpoint carries it, so that no run goes on as
// another one. The keys are those that run_to_yaml writes: nobody keeps a list of them by hand, and one that is new
// counts as part of what the run is until the table in run_settings.cpp says why it may change.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "configs/files/run.hpp"

namespace wt {

/// Dotted keys ("optimizer.lr") and their values; one that stands at its default may be missing. Without those that
/// change nothing of what is trained, such as save_interval.
using RunSettings = std::map<std::string, std::string>;
RunSettings run_settings(const RunSpec& run);

struct SettingChange {
  std::string key;
  std::string was, now;  ///< "not set" where it is missing
  bool allowed = false;  ///< the run goes on with it, and says so; else it would be another run
};
/// In the order of their keys.
std::vector<SettingChange> changed_settings(const RunSettings& was, const RunSettings& now);

}  // namespace wt
