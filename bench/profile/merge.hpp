// Putting several profiles of one machine and one build together: several processes, several repetitions.
#pragma once
#include <vector>

#include "configs/spec/profile.hpp"

namespace wt {

/// Samples of measurements of the same name are appended in the order given; counters become the sample-weighted mean.
/// Run facts of the fingerprint (date, host, ...) that differ are joined with " + "; the commit must agree.
/// Throws Error{usage} when there is no profile, when fingerprints differ (naming the keys and both values), or when
/// one name has two units, directions, or kinds of evidence.
Profile merge(const std::vector<Profile>& profiles);

}  // namespace wt
