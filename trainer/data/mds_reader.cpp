#include "trainer/data/mds_reader.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"

namespace wt {
namespace {

StreamSpec local_stream(const std::filesystem::path& directory) {
  StreamSpec spec;
  spec.local = directory.string();
  return spec;
}

}  // namespace

MdsReader::MdsReader(const std::filesystem::path& directory, const std::string& column)
    : folder_(local_stream(directory), column, {}) {
  std::int64_t end = 0;
  for (std::size_t i = 0; i < folder_.shards().size(); ++i) {
    folder_.prepare(i, true);
    shards_.push_back(folder_.open(i, true));
    ends_.push_back(end += folder_.shards()[i].samples);
  }
}

std::vector<std::int64_t> MdsReader::shard_sizes() const { return mapped(folder_.shards(), &MdsShard::samples); }

std::vector<std::int32_t> MdsReader::tokens(std::int64_t index) const {
  if (index < 0 || index >= size())
    throw_usage("{}: found sample {}, allowed are 0 to {}; use the sampler of this dataset", folder_.folder().string(),
                index, size() - 1);
  const auto at = static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  return shards_[at]->tokens(static_cast<std::size_t>(index - ends_[at] + folder_.shards()[at].samples));
}

}  // namespace wt
