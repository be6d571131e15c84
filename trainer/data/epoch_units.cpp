#include "trainer/data/epoch_units.hpp"

#include <algorithm>
#include <numeric>

#include "trainer/data/shard_sampling.hpp"

namespace wt {

EpochUnits::EpochUnits(std::span<const UnitStream> streams, const UnitOptions& options) {
  const auto epoch_seed = options.seed + static_cast<std::uint64_t>(options.epoch);
  const bool balanced = options.method == SamplingMethod::balanced;
  NumpyRandom random(balanced ? epoch_seed : options.seed);
  for (const UnitStream& stream : streams) {
    const std::vector<std::int64_t> chosen = samples_of_shards(stream.shard_sizes, stream.choose, options.granularity,
                                                               balanced && options.shuffle ? epoch_seed : options.seed);
    std::int64_t first = stream.first_id;
    for (std::size_t shard = 0; shard < chosen.size(); ++shard) {
      const std::int64_t size = stream.shard_sizes[shard];
      if (size == 0) continue;
      units_.insert(units_.end(), static_cast<std::size_t>(chosen[shard] / size), {first, size, size, -1});
      if (const std::int64_t part = chosen[shard] % size; part > 0) {
        units_.push_back({first, part, size, static_cast<std::int64_t>(draws_.size())});
        draws_.push_back(random);
        random.skip_choice(size, part);
      }
      first += size;
    }
    samples_ += stream.choose;
  }
}

EpochUnits::EpochUnits(std::span<const std::int64_t> shard_sizes) {
  for (const std::int64_t size : shard_sizes) {
    units_.push_back({samples_, size, size, -1});
    samples_ += size;
  }
}

void EpochUnits::append_ids(std::size_t unit, std::vector<std::int64_t>& ids) const {
  const SampleUnit& u = units_[unit];
  if (u.draw < 0) {
    ids.resize(ids.size() + static_cast<std::size_t>(u.count));
    std::iota(ids.end() - u.count, ids.end(), u.first_id);
    return;
  }
  NumpyRandom random = draws_[static_cast<std::size_t>(u.draw)];
  std::vector<std::int64_t> chosen = random.choice(u.shard_samples, u.count);
  std::ranges::sort(chosen);
  for (const std::int64_t sample : chosen) ids.push_back(u.first_id + sample);
}

}  // namespace wt
