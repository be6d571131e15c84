// Putting several profiles of one machine and one build together: several processes, several repetitions.
#pragma once
#include <string>
#include <vector>

#include "configs/files/profile.hpp"

namespace wt {

/// Samples of measurements of the same name are appended in the order given; counters become the sample-weighted mean,
/// those named max_... and min_... the largest and the smallest; reasons of throttling are joined.
/// Run facts of the fingerprint (date, host, ...) that differ are joined with " + "; the commit must agree. Of several
/// profiles the digests become the fact kMergedFrom.
/// Throws Error{usage} when there is no profile, when fingerprints differ (naming the keys and both values), or when
/// one name has two units, directions, or kinds of evidence.
/// `names`: what errors call the profiles; "profile 1" and so on where it is shorter.
Profile merge(const std::vector<Profile>& profiles, const std::vector<std::string>& names = {});

}  // namespace wt
