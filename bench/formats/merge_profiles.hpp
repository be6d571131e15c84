// Merges profiles of one machine and one build that come from several processes or repetitions.
#pragma once
#include <string>
#include <vector>

#include "configs/files/profile.hpp"

namespace wt {

/// Samples of measurements with the same name are appended in the given order. Counters become the sample-weighted
/// mean, those named max_... and min_... the maximum and minimum; throttling reasons are united. Differing run facts of
/// the fingerprint (date, host, ...) are joined with " + "; the commit must agree. The digests of the profiles become
/// the fact kMergedFrom. Throws Error{usage}: no profile, fingerprints that differ (with keys and values), a name with
/// two units, directions, or kinds of evidence. `names`: the profiles' names in errors; default "profile 1" and so on.
Profile merge(const std::vector<Profile>& profiles, const std::vector<std::string>& names = {});

}  // namespace wt
