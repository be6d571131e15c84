// How many samples an MDS index counts, without the rest of it: what an epoch is, before anything of a data set is
// opened. trainer/data reads the whole of it.
#pragma once
#include <cstdint>
#include <istream>
#include <optional>

namespace wt {

/// The sum of "samples" over the entries of "shards"; none: the text is no JSON object with shards that each say how
/// many, or ends early. One pass, a megabyte of memory: 500,000 shards, which have 160 MB, take less than a second.
std::optional<std::int64_t> samples_in_index(std::istream& in);

}  // namespace wt
