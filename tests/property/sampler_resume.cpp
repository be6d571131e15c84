#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "configs/base/error.hpp"
#include "tests/fixtures/shuffled_samples.hpp"
#include "trainer/data/sample_order.hpp"
#include "trainer/data/sampler.hpp"
#include "trainer/data/shuffle.hpp"

using Catch::Contains;
using Ids = std::vector<std::int64_t>;
using wt::BatchingMethod;
using wt::DatasetSpec;
using wt::Sampler;
using wt::SamplerState;
using wt::ShuffleAlgorithm;

namespace {

struct Case {
  std::vector<Ids> shards;
  DatasetSpec dataset;
  std::int64_t batch = 1;

  Sampler sampler() const { return Sampler(dataset, shards, {1, 2}); }
};

DatasetSpec streams(std::vector<std::optional<double>> proportions) {
  DatasetSpec dataset;
  for (const auto& proportion : proportions) {
    wt::StreamSpec& stream = dataset.streams.emplace_back();
    stream.name = std::to_string(dataset.streams.size());
    stream.local = stream.name;
    stream.proportion = proportion;
  }
  return dataset;
}

/// One stream in order of its samples, or several in any way.
Case random_case(unsigned seed, bool mixed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  Case drawn;
  drawn.dataset =
      streams(mixed ? std::vector<std::optional<double>>{1.5, 2.0, 0.7} : std::vector<std::optional<double>>{{}});
  for (std::size_t i = 0; i < drawn.dataset.streams.size(); ++i) {
    Ids& sizes = drawn.shards.emplace_back();
    for (auto shards = pick(1, 9); shards > 0; --shards) sizes.push_back(pick(12, 40));
  }
  DatasetSpec& d = drawn.dataset;
  if (mixed) d.batching_method = static_cast<BatchingMethod>(pick(0, 3));
  if (mixed) d.shuffle = pick(0, 3) > 0;
  d.shuffle_algorithm = static_cast<ShuffleAlgorithm>(pick(0, 4));
  if (pick(0, 1) == 1) d.shuffle_block_size = pick(20, 100);
  d.num_canonical_nodes = pick(1, 3);
  d.shuffle_seed = static_cast<std::uint64_t>(pick(0, 1 << 30));
  const std::int64_t samples = std::accumulate(drawn.shards[0].begin(), drawn.shards[0].end(), std::int64_t{0});
  drawn.batch = mixed ? 6 : pick(1, samples);
  return drawn;
}

SamplerState read_back(const SamplerState& state) {
  return wt::sampler_state_from_json(nlohmann::json::parse(wt::to_json(state).dump()), "checkpoint");
}

void check_resumes(const Case& drawn, std::size_t stride) {
  Sampler whole = drawn.sampler();
  std::vector<SamplerState> states;
  std::vector<Ids> batches;
  for (std::int64_t step = 0; step < 40; ++step) {
    states.push_back(whole.state());
    REQUIRE(whole.batches_drawn(whole.state(), drawn.batch) == step);
    batches.push_back(whole.next_batch(drawn.batch));
  }
  for (std::size_t step = 0; step < states.size(); step += stride) {
    Case fresh = drawn;  // what the state holds need not be told again
    fresh.dataset.num_canonical_nodes = 1, fresh.dataset.shuffle_seed = 1;
    Sampler resumed(fresh.dataset, fresh.shards);
    resumed.restore(read_back(states[step]));
    for (std::size_t later = step; later < batches.size(); ++later)
      REQUIRE(resumed.next_batch(drawn.batch) == batches[later]);
    REQUIRE(resumed.state() == whole.state());
  }
}

}  // namespace

TEST_CASE("a sampler restored at any step goes on with the same ids") {
  for (unsigned seed = 0; seed < 60; ++seed) check_resumes(random_case(seed, false), 1 + seed % 3);
}

TEST_CASE("so does one of a mixture, in every way to make batches") {
  for (unsigned seed = 0; seed < 60; ++seed) check_resumes(random_case(seed, true), 1 + seed % 5);
}

TEST_CASE("so does one with a curriculum, and each entry begins an epoch of its own mix") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Case drawn = random_case(seed, true);
    drawn.dataset.curriculum = {{7, {1, 1, 1}}, {20, {1, 3, 4}}};
    check_resumes(drawn, 1 + seed % 5);
    Sampler sampler = drawn.sampler();
    for (int step = 0; step < 8; ++step) sampler.next_batch(drawn.batch);
    REQUIRE(sampler.state().mixes.size() == 2);
    const std::int64_t epoch = sampler.state().mixes.back().epoch;
    REQUIRE(sampler.state().epoch == epoch);
    REQUIRE(sampler.state().sample_in_epoch == drawn.batch);
    DatasetSpec alone = drawn.dataset;  // the mix of the entry as a data set
    alone.curriculum.clear();
    for (wt::StreamSpec& stream : alone.streams) stream.proportion = 1;
    Sampler other(alone, drawn.shards, {1, 2});
    SamplerState state = other.state();
    state.epoch = epoch, state.sample_in_epoch = drawn.batch;
    other.restore(state);
    for (int step = 8; step < 12; ++step) REQUIRE(sampler.next_batch(drawn.batch) == other.next_batch(drawn.batch));
  }
}

TEST_CASE("a curriculum may grow at its end, and nothing that was used may change") {
  Case drawn = random_case(3, true);
  drawn.dataset.batching_method = BatchingMethod::random;
  drawn.dataset.curriculum = {{5, {1, 1, 1}}};
  Sampler sampler = drawn.sampler();
  for (int step = 0; step < 9; ++step) sampler.next_batch(6);
  const SamplerState state = read_back(sampler.state());
  Case other = drawn;
  other.dataset.curriculum.push_back({12, {2, 1, 1}});
  Sampler longer = other.sampler();
  longer.restore(state);
  for (int step = 9; step < 12; ++step) CHECK(longer.next_batch(6) == sampler.next_batch(6));
  CHECK(longer.next_batch(6) != sampler.next_batch(6));
  other.dataset.curriculum.back().at = 8;  // in the past
  Sampler late = other.sampler();
  late.restore(state);
  CHECK_THROWS_WITH(late.next_batch(6), Contains("change at batch 8, 9 batches are drawn"));
  const auto refused = [&](const Case& changed) { changed.sampler().restore(state); };
  other = drawn, other.dataset.curriculum[0].proportions[0] = 2;
  CHECK_THROWS_WITH(refused(other), Contains("curriculum: found"));
  other = drawn, other.dataset.curriculum[0].at = 6;
  CHECK_THROWS_WITH(refused(other), Contains("curriculum: found"));
  other = drawn, other.dataset.streams[0].proportion = 9;
  CHECK_THROWS_WITH(refused(other), Contains("curriculum: found"));
  other = drawn, other.dataset.curriculum.clear();
  CHECK_THROWS_WITH(refused(other), Contains("curriculum: found 0 entries that differ from the 2"));
}

TEST_CASE("an epoch hands out every sample once, less the tail that fills no batch") {
  for (unsigned seed = 100; seed < 160; ++seed) {
    Case drawn = random_case(seed, false);
    drawn.dataset.num_canonical_nodes = 1;  // more repeat a sample of the shorter ones
    Sampler sampler = drawn.sampler();
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<std::int64_t> seen;
      for (std::int64_t i = 0; i < sampler.num_samples() / drawn.batch; ++i) {
        const Ids batch = sampler.next_batch(drawn.batch);
        REQUIRE(static_cast<std::int64_t>(batch.size()) == drawn.batch);
        seen.insert(batch.begin(), batch.end());
        REQUIRE(sampler.state().epoch == epoch);
      }
      REQUIRE(static_cast<std::int64_t>(seen.size()) == sampler.num_samples() / drawn.batch * drawn.batch);
      REQUIRE((*seen.begin() >= 0 && *seen.rbegin() < sampler.num_samples()));
    }
  }
}

TEST_CASE("the parts of all ranks are the global batch, for any world size") {
  for (const std::int64_t world : {1, 2, 3, 4, 6, 12}) {
    Sampler sampler(streams({{}}), {{30, 30}});
    const Ids batch = sampler.next_batch(12);
    Ids joined;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const auto part = wt::rank_samples(batch, rank, world);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    CHECK(joined == batch);
  }
}

TEST_CASE("batches are the epoch's order, cut") {
  DatasetSpec dataset = streams({{}});
  dataset.shuffle_algorithm = ShuffleAlgorithm::py1s, dataset.shuffle_seed = 7;
  Sampler sampler(dataset, {{10, 5}});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const Ids order = wt::test::shuffle_samples(Ids{10, 5}, {ShuffleAlgorithm::py1s, 1, 7, epoch, 0});
    CHECK(sampler.next_batch(6) == Ids(order.begin(), order.begin() + 6));
    CHECK(sampler.next_batch(6) == Ids(order.begin() + 6, order.begin() + 12));
  }
  CHECK(sampler.state() == SamplerState{1, 12, 1, 7, 1, {}, {}});
}

TEST_CASE("states and batches that cannot be are errors") {
  Sampler sampler(streams({{}}), {{10, 5}});
  const SamplerState before = sampler.state();
  const auto restore = [&](std::int64_t sample, std::int64_t nodes, std::uint64_t seed, std::int64_t physical) {
    sampler.restore({0, sample, nodes, seed, physical, {}, {}});
  };
  CHECK_THROWS_WITH(restore(17, 1, 1, 1), Contains("sample_in_epoch: found 17") && Contains("15"));
  CHECK_THROWS_WITH(restore(0, 99, 1, 1), Contains("num_canonical_nodes 99"));
  CHECK_THROWS_WITH(restore(0, 1, 1, 0), Contains("initial_physical_nodes: found 0"));
  CHECK_THROWS_WITH(restore(0, 1, ~std::uint64_t{0}, 1), Contains("shuffle_seed"));
  CHECK(sampler.state() == before);
  CHECK_THROWS_WITH(sampler.next_batch(16), Contains("found 16 samples"));
  CHECK_THROWS_WITH(sampler.next_batch(0), Contains("found 0 samples"));
  auto document = wt::to_json(before);
  CHECK(document.size() == 5);  // Streaming's own readers take no more
  document["epoch"] = -1;
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("file: epoch: found -1"));
  document["epoch"] = 1.5;
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("file: epoch: found 1.5"));
  document.erase("epoch");
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("file: found no key epoch"));
  document["epoch"] = 0;
  document["extra"] = 0;
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("more than five keys"));
  document.erase("extra");
  document["mixes"] = 3;
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("file: mixes: found 3"));
  document["mixes"] = {{{"at", 0}, {"epoch", 0}, {"proportions", {-1}}}};
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("the proportion -1"));
  document.erase("mixes");
  document["batch_world"] = {{"nodes", 0}, {"ranks_per_node", 1}};
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("batch_world: nodes: found 0"));
}
