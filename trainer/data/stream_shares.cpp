#include "trainer/data/stream_shares.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "configs/base/error.hpp"
#include "trainer/data/numpy_random.hpp"

namespace wt {
namespace {

/// numpy.sum of doubles: eight partial sums, and halves for more than 128 numbers; other orders round differently.
double numpy_sum(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n < 8) return std::accumulate(values.begin(), values.end(), 0.0);
  if (n > 128) {
    const std::size_t half = n / 2 - n / 2 % 8;
    return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
  }
  std::array<double, 8> sums{};
  std::copy_n(values.begin(), 8, sums.begin());
  const std::size_t whole = n - n % 8;
  for (std::size_t i = 8; i < whole; ++i) sums[i % 8] += values[i];
  double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (std::size_t i = whole; i < n; ++i) sum += values[i];
  return sum;
}

/// Turns weights into shares; samples left over by rounding down are assigned at random.
EpochShares relative_shares(std::vector<double> weights, std::int64_t epoch_size, std::uint64_t seed) {
  EpochShares out{epoch_size, {}};
  const double sum = numpy_sum(weights);
  std::int64_t left = epoch_size;
  for (const double weight : weights) {
    StreamShare& share = out.streams.emplace_back();
    share.proportion = weight / sum;
    share.choose = static_cast<std::int64_t>(static_cast<double>(epoch_size) * share.proportion);
    left -= share.choose;
  }
  for (const std::int64_t stream : NumpyRandom(seed).choice(static_cast<std::int64_t>(weights.size()), left))
    ++out.streams[static_cast<std::size_t>(stream)].choose;
  return out;
}

EpochShares absolute_shares(const DatasetSpec& dataset, std::span<const std::int64_t> samples) {
  EpochShares out;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const StreamSpec& stream = dataset.streams[i];
    StreamShare& share = out.streams.emplace_back();
    share.choose = stream.repeat   ? static_cast<std::int64_t>(*stream.repeat * static_cast<double>(samples[i]))
                   : stream.choose ? *stream.choose
                                   : samples[i];
    out.epoch_size += share.choose;
  }
  for (StreamShare& share : out.streams)
    share.proportion = static_cast<double>(share.choose) / static_cast<double>(out.epoch_size);
  return out;
}

void check_streams(const DatasetSpec& dataset, std::span<const std::int64_t> samples,
                   std::span<const double> proportions) {
  if (samples.size() != dataset.streams.size() || samples.empty() ||
      (!proportions.empty() && proportions.size() != samples.size()))
    throw_usage(
        "data set: found {} streams, sizes of {} and {} changed proportions, allowed is one of each a stream; name "
        "every stream once",
        dataset.streams.size(), samples.size(), proportions.size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i] < 1)
      throw_usage("stream '{}': found no samples in {}, allowed is at least one; leave the stream out or write it anew",
                  dataset.streams[i].name, dataset.streams[i].local_folder());
}

}  // namespace

EpochShares epoch_shares(const DatasetSpec& dataset, std::span<const std::int64_t> samples,
                         std::span<const double> proportions) {
  check_streams(dataset, samples, proportions);
  bool relative = !proportions.empty(), absolute = false;
  std::vector<double> weights(proportions.begin(), proportions.end());
  for (const StreamSpec& stream : dataset.streams) {
    absolute = absolute || stream.repeat || stream.choose;
    relative = relative || stream.proportion;
    if (proportions.empty() && stream.proportion) weights.push_back(*stream.proportion);
  }
  const std::int64_t all = std::accumulate(samples.begin(), samples.end(), std::int64_t{0});
  EpochShares out;
  if (relative) {
    out = relative_shares(std::move(weights), dataset.epoch_size.value_or(all), dataset.shuffle_seed);
  } else if (dataset.epoch_size && !absolute) {
    out = relative_shares({samples.begin(), samples.end()}, *dataset.epoch_size, dataset.shuffle_seed);
  } else {
    out = absolute_shares(dataset, samples);
  }
  if (out.epoch_size < 1)
    throw_usage("data set: found an epoch of no samples, allowed is at least one; raise repeat or choose");
  for (std::size_t i = 0; i < samples.size(); ++i)
    out.streams[i].repeat = static_cast<double>(out.streams[i].choose) / static_cast<double>(samples[i]);
  return out;
}

}  // namespace wt
