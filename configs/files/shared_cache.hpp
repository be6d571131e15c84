// Finds data sets of a run that would cache shards in the same folder. A cache_limit counts only one data set's shards,
// so that two data sets together would exceed it.
#pragma once
#include "configs/files/evaluation_spec.hpp"

namespace wt {

/// A folder where both data sets cache shards, if at least one has a cache_limit, unless both have the same streams and
/// the same limit. "" = none. Does not look at the disk.
std::string limited_cache_of_both(const DatasetSpec& a, const DatasetSpec& b);

/// Throws Error{usage} for an evaluation set that shares such a folder with the training data or an earlier set.
void check_caches(const YamlMap& map, const EvaluationSpec& evaluation, const DatasetSpec& trained);

}  // namespace wt
