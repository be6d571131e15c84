#include "trainer/data/sample_order.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "configs/base/error.hpp"
#include "tests/fixtures/shuffled_samples.hpp"
#include "tests/fixtures/streaming_partition.hpp"
#include "trainer/data/sample_sequence.hpp"
#include "trainer/data/shuffle.hpp"

using Ids = std::vector<std::int64_t>;
using wt::ShuffleAlgorithm;

namespace {

Ids shuffled(ShuffleAlgorithm algorithm, std::int64_t epoch) {
  return wt::test::shuffle_samples(Ids{5, 4, 3}, {algorithm, 2, 9176, epoch, 8});
}

/// A batch of one rank of a partition with one worker.
Ids batch(const wt::test::Partition& partition, std::int64_t node, std::int64_t rank, std::int64_t index) {
  Ids ids;
  for (std::int64_t i = 0; i < partition.shape.batch_size; ++i) ids.push_back(partition.at(node, rank, 0, index, i));
  return ids;
}

/// Shuffled samples of step `step` as Streaming deals them, over all ranks, sorted.
Ids streaming_step(const wt::test::PartitionShape& shape, const Ids& shuffle, std::int64_t step) {
  const wt::test::Partition partition = wt::test::partition_orig(shape);
  Ids ids;
  for (std::int64_t node = 0; node < shape.physical_nodes; ++node) {
    for (std::int64_t rank = 0; rank < shape.ranks_per_node; ++rank) {
      for (const std::int64_t id : batch(partition, node, rank, step))
        ids.push_back(shuffle.at(static_cast<std::size_t>(id)));
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

// Shuffle and partition vectors: printed by mosaicml-streaming's own functions with NumPy 2.4.6.

TEST_CASE("the five shuffles give Streaming's order") {
  CHECK(shuffled(ShuffleAlgorithm::naive, 0) == Ids{2, 5, 10, 9, 8, 1, 6, 7, 11, 3, 0, 4});
  CHECK(shuffled(ShuffleAlgorithm::naive, 1) == Ids{4, 3, 10, 2, 8, 7, 6, 9, 5, 1, 11, 0});
  CHECK(shuffled(ShuffleAlgorithm::py1s, 0) == Ids{7, 6, 5, 10, 11, 9, 8, 0, 1, 2, 3, 4});
  CHECK(shuffled(ShuffleAlgorithm::py1s, 1) == Ids{7, 5, 6, 9, 11, 10, 2, 0, 3, 4, 1, 8});
  CHECK(shuffled(ShuffleAlgorithm::py2s, 0) == Ids{8, 6, 7, 10, 9, 11, 5, 0, 1, 2, 3, 4});
  CHECK(shuffled(ShuffleAlgorithm::py2s, 1) == Ids{8, 6, 7, 11, 10, 9, 5, 2, 0, 3, 4, 1});
  CHECK(shuffled(ShuffleAlgorithm::py1br, 0) == Ids{7, 6, 9, 5, 10, 11, 4, 1, 8, 2, 3, 0});
  CHECK(shuffled(ShuffleAlgorithm::py1br, 1) == Ids{7, 5, 9, 10, 11, 6, 4, 8, 3, 1, 2, 0});
  CHECK(shuffled(ShuffleAlgorithm::py1e, 0) == Ids{7, 5, 6, 10, 11, 9, 2, 8, 1, 4, 0, 3});
  CHECK(shuffled(ShuffleAlgorithm::py1e, 1) == Ids{7, 5, 9, 11, 6, 10, 4, 1, 3, 2, 8, 0});
}

TEST_CASE("many shards over three nodes give Streaming's order") {
  // Sum of id * (place + 1) over 3,700 samples: a long golden vector in one number.
  const auto weigh = [](ShuffleAlgorithm algorithm) {
    Ids sizes;
    for (std::int64_t i = 0; i < 37; ++i) sizes.push_back(64 + 2 * i);
    const Ids ids = wt::test::shuffle_samples(sizes, {algorithm, 3, (std::uint64_t{1} << 32) + 5, 4, 300});
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) sum += ids[i] * static_cast<std::int64_t>(i + 1);
    return sum;
  };
  CHECK(weigh(ShuffleAlgorithm::naive) == 12717430590);
  CHECK(weigh(ShuffleAlgorithm::py1s) == 13167396257);
  CHECK(weigh(ShuffleAlgorithm::py2s) == 13568195649);
  CHECK(weigh(ShuffleAlgorithm::py1br) == 13177298055);
  CHECK(weigh(ShuffleAlgorithm::py1e) == 13151343796);
}

TEST_CASE("a shuffle has every sample exactly once") {
  for (const std::int64_t nodes : {1, 2, 5, 12}) {
    for (const char* name : {"naive", "py1s", "py2s", "py1br", "py1e"}) {
      Ids order = wt::test::shuffle_samples(Ids{5, 0, 4, 3}, {wt::shuffle_algorithm_from_string(name), nodes, 1, 0, 4});
      std::sort(order.begin(), order.end());
      Ids all(12);
      std::iota(all.begin(), all.end(), 0);
      CHECK(order == all);
    }
  }
}

TEST_CASE("the order depends on seed and epoch, and the default is py1e with seed 9176") {
  const Ids sizes = {50, 50};
  const Ids order = wt::test::shuffle_samples(sizes, {});
  CHECK(order == wt::test::shuffle_samples(sizes, {ShuffleAlgorithm::py1e, 1, 9176, 0, 4'000'000}));
  CHECK(order != wt::test::shuffle_samples(sizes, {ShuffleAlgorithm::py1e, 1, 9176, 1, 0}));
  CHECK(order != wt::test::shuffle_samples(sizes, {ShuffleAlgorithm::py1e, 1, 9177, 0, 0}));
}

TEST_CASE("the default block is 4,000,000 samples over the canonical nodes, at least 2^18") {
  CHECK(wt::effective_block_size({ShuffleAlgorithm::py1e, 2, 0, 0, 0}) == 2'000'000);
  CHECK(wt::effective_block_size({ShuffleAlgorithm::py1e, 64, 0, 0, 0}) == 1 << 18);
  CHECK(wt::effective_block_size({ShuffleAlgorithm::py1e, 64, 0, 0, 77}) == 77);
}

TEST_CASE("orig deals each rank its range of a canonical node") {
  const auto partition = wt::test::partition_orig({16, 2, 1, 2, 1, 2});
  REQUIRE(partition.batches_per_worker == 4);
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK(batch(partition, 0, 0, i) == Ids{2 * i, 2 * i + 1});
    CHECK(batch(partition, 0, 1, i) == Ids{8 + 2 * i, 9 + 2 * i});
  }
}

TEST_CASE("orig drops what was seen") {
  const auto partition = wt::test::partition_orig({16, 2, 2, 2, 1, 2}, 8);
  REQUIRE(partition.batches_per_worker == 1);
  CHECK(batch(partition, 0, 0, 0) == Ids{4, 6});
  CHECK(batch(partition, 0, 1, 0) == Ids{5, 7});
  CHECK(batch(partition, 1, 0, 0) == Ids{12, 14});
  CHECK(batch(partition, 1, 1, 0) == Ids{13, 15});
}

TEST_CASE("orig fills up with repeats and -1") {
  const auto partition = wt::test::partition_orig({7, 1, 2, 2, 2, 1});
  CHECK(partition.ids == Ids{0, 4, 2, 6, 1, 5, 3, 5});
}

TEST_CASE("relaxed re-deals a run of two nodes to three") {
  const auto partition = wt::test::partition_relaxed({24, 2, 3, 2, 1, 2}, 0, 2);
  REQUIRE(partition.batches_per_worker == 2);
  CHECK(partition.ids == Ids{0, 2, 6, 8, 4, 1, 10, 7, 3, 5, 9, 11, 12, 14, 18, 20, 16, 13, 22, 19, 15, 17, 21, 23});
}

TEST_CASE("nodes that do not divide need relaxed, and relaxed needs the batch of the run's start") {
  CHECK_THROWS_WITH(wt::test::partition_orig({24, 2, 3, 2, 1, 2}), Catch::Contains("2 canonical and 3 physical"));
  CHECK_THROWS_WITH(wt::test::partition_relaxed({24, 2, 3, 2, 1, 1}, 0, 4), Catch::Contains("global batch of 6"));
  CHECK_THROWS_WITH(wt::test::partition_orig({24, 2, 2, 2, 1, 2}, 24), Catch::Contains("24 samples already seen"));
  CHECK_THROWS_AS(wt::test::partition_orig({24, 0, 2, 2, 1, 2}), wt::Error);
}

TEST_CASE("a step reads the samples that Streaming reads, on any number of ranks") {
  const Ids sizes = {37, 50, 41, 40};  // 168 samples
  constexpr std::int64_t kBatch = 24;
  const wt::ShuffleOptions options = {ShuffleAlgorithm::py1e, 4, 9176, 3, 60};
  const Ids shuffle = wt::test::shuffle_samples(sizes, options);
  wt::SampleSequence sequence(wt::read_nodes(std::make_shared<wt::EpochUnits>(sizes), options, true));
  Ids order;
  for (int i = 0; i < 168; ++i) order.push_back(sequence.next());
  using Pair = std::pair<std::int64_t, std::int64_t>;
  for (const auto& [nodes, ranks] : {Pair{1, 1}, {1, 8}, {2, 2}, {4, 3}, {4, 6}, {8, 3}}) {
    for (std::int64_t step = 0; step < 168 / kBatch; ++step) {
      Ids ours(order.begin() + step * kBatch, order.begin() + (step + 1) * kBatch);
      std::sort(ours.begin(), ours.end());
      CHECK(ours == streaming_step({168, 4, nodes, ranks, 1, kBatch / (nodes * ranks)}, shuffle, step));
    }
  }
}

TEST_CASE("ranks take contiguous parts of a global batch") {
  const Ids batch_ids = {9, 8, 7, 6, 5, 4};
  const auto part = wt::rank_samples(batch_ids, 1, 3);
  CHECK(Ids(part.begin(), part.end()) == Ids{7, 6});
  CHECK_THROWS_WITH(wt::rank_samples(batch_ids, 0, 4), Catch::Contains("6 samples for 4 ranks"));
  CHECK_THROWS_WITH(wt::rank_samples(batch_ids, 3, 3), Catch::Contains("rank 3 of 3"));
}

TEST_CASE("the global batch is kept by fewer replicas, whose ranks have unequally many samples") {
  const auto counts = [](std::int64_t batch, std::int64_t replicas, std::int64_t ranks) {
    Ids out;
    std::int64_t next = 0;
    for (std::int64_t rank = 0; rank < replicas * ranks; ++rank) {
      const wt::BatchShare share = wt::share_of_batch(batch, rank, replicas, ranks);
      CHECK(share.first == next);  // one after the other, without a gap
      next += share.count;
      out.push_back(share.count);
    }
    CHECK(next == batch);
    return out;
  };
  CHECK(counts(16, 3, 2) == Ids{3, 3, 3, 3, 2, 2});  // 8 rounds of 2: 3 + 3 + 2
  CHECK(counts(16, 3, 1) == Ids{6, 5, 5});
  CHECK(counts(12, 3, 2) == Ids{2, 2, 2, 2, 2, 2});
  CHECK(counts(4, 2, 2) == Ids{1, 1, 1, 1});
  CHECK_THROWS_WITH(wt::share_of_batch(16, 0, 3, 3), Catch::Contains("16 samples for 3 replicas of 3 ranks"));
  CHECK_THROWS_WITH(wt::share_of_batch(4, 0, 3, 2), Catch::Contains("4 samples for 3 replicas of 2 ranks"));
  CHECK_THROWS_WITH(wt::share_of_batch(16, 6, 3, 2), Catch::Contains("rank 6 of 6"));
}

TEST_CASE("shuffle options that cannot work are errors") {
  const Ids sizes = {2, 1};
  CHECK_THROWS_WITH(wt::test::shuffle_samples(sizes, {ShuffleAlgorithm::py1e, 4, 0, 0, 0}),
                    Catch::Contains("4 for 3 samples"));
  CHECK_THROWS_WITH(wt::test::shuffle_samples(sizes, {ShuffleAlgorithm::py1e, 0, 0, 0, 0}),
                    Catch::Contains("num_canonical_nodes 0"));
  CHECK_THROWS_WITH(wt::test::shuffle_samples(sizes, {ShuffleAlgorithm::py1e, 1, 0, -1, 0}),
                    Catch::Contains("epoch -1"));
  CHECK_THROWS_WITH(wt::test::shuffle_samples(sizes, {ShuffleAlgorithm::py1br, 1, 0, 0, 1}),
                    Catch::Contains("shuffle_block_size 1"));
}

TEST_CASE("shuffle algorithms have Streaming's names") {
  for (const char* const name : {"naive", "py1s", "py2s", "py1br", "py1e"}) {
    CHECK(wt::to_string(wt::shuffle_algorithm_from_string(name)) == name);
  }
  CHECK_THROWS_WITH(wt::shuffle_algorithm_from_string("py1x"), Catch::Contains("py1x") && Catch::Contains("py1e"));
  CHECK_THROWS_WITH(wt::shuffle_algorithm_from_string("py1b"), Catch::Contains("use py1br, which replaced it"));
}
