#include "trainer/data/mixture.hpp"

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"

using Catch::Contains;
using wt::BatchingMethod;
using wt::DatasetSpec;
using wt::Mixture;

namespace {

/// 1000 samples of stream big, 10 of stream small.
const std::vector<std::vector<std::int64_t>> kSizes = {{600, 400}, {10}};

DatasetSpec big_and_small(double big, double small) {
  DatasetSpec dataset;
  dataset.streams.resize(2);
  dataset.streams[0].name = "big", dataset.streams[1].name = "small";
  dataset.streams[0].proportion = big, dataset.streams[1].proportion = small;
  return dataset;
}

Mixture mixture(const DatasetSpec& dataset, std::int64_t batch, std::int64_t batches) {
  return wt::mixture_of(dataset, kSizes, {100, 300}, batch, batches, {});
}

}  // namespace

TEST_CASE("a mixture says what it draws, and warns of what is read too often") {
  DatasetSpec dataset = big_and_small(1, 1);
  dataset.epoch_size = 1000;
  const Mixture mix = mixture(dataset, 10, 200);  // two epochs
  REQUIRE(mix.parts.size() == 1);
  CHECK(mix.parts[0].epoch_batches == 100);
  CHECK(mix.parts[0].epoch_dropped == 0);
  CHECK(mix.parts[0].streams[1].epoch_draws == 500);
  CHECK(mix.parts[0].streams[1].share == Approx(0.5));
  CHECK(*mix.parts[0].streams[1].token_share == Approx(0.75));  // three times as long
  CHECK(mix.seen[0] == Approx(1));
  CHECK(mix.seen[1] == Approx(100));
  REQUIRE(mix.warnings.size() == 1);
  CHECK_THAT(mix.warnings[0], Contains("stream 'small' is read 100.0 times"));
}

TEST_CASE("what is never read, dropped, or shuffled alone is said") {
  DatasetSpec dataset = big_and_small(1, 0.0001);
  dataset.epoch_size = 100, dataset.shuffle_seed = 1, dataset.shuffle_block_size = 500;
  const Mixture mix = mixture(dataset, 60, 5);
  CHECK(mix.parts[0].epoch_dropped == 40);
  std::string all;
  for (const std::string& warning : mix.warnings) all += warning + "\n";
  CHECK_THAT(all, Contains("40 of 100 samples of an epoch fill no batch"));
  CHECK_THAT(all, Contains("a shard of 600 samples, more than a shuffle block of 500"));
  const bool none = mix.parts[0].streams[1].epoch_draws == 0;  // the left-over sample goes to either
  CHECK((all.find("stream 'small' is never read") != std::string::npos) == none);
}

TEST_CASE("parts are those of the curriculum that the run reaches") {
  DatasetSpec dataset = big_and_small(9, 1);
  dataset.batching_method = BatchingMethod::stratified;
  dataset.curriculum = {{4, {1, 1}}, {50, {1, 9}}};
  const Mixture mix = mixture(dataset, 10, 20);
  REQUIRE(mix.parts.size() == 2);
  CHECK(mix.parts[0].batches == 4);
  CHECK(mix.parts[1].first == 4);
  CHECK(mix.parts[1].batches == 16);
  CHECK(mix.parts[0].streams[0].run_draws == Approx(4 * 9));
  CHECK(mix.parts[1].streams[0].run_draws == Approx(16 * 5));
  CHECK(mix.seen[1] == Approx((4 * 1 + 16 * 5) / 10.));
}
