// Data sets of a run that would cache shards in one folder: a limit counts those of one data set alone, so that with
// two neither would be kept.
#pragma once
#include "configs/files/evaluation_spec.hpp"

namespace wt {

/// A folder in which both cache what they fetch, one of them at least under a cache_limit, unless they are the same
/// streams under the same limit; "" = there is none. Looks at no disk.
std::string limited_cache_of_both(const DatasetSpec& a, const DatasetSpec& b);

/// Throws Error{usage} for an evaluation set that has such a folder with the data trained on, or with a set before it.
void check_caches(const YamlMap& map, const EvaluationSpec& evaluation, const DatasetSpec& trained);

}  // namespace wt
