#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "configs/spec/support/error.hpp"
#include "trainer/data/sample_order.hpp"
#include "trainer/data/sampler.hpp"

using Catch::Contains;
using Ids = std::vector<std::int64_t>;
using wt::Sampler;
using wt::SamplerOptions;
using wt::SamplerState;
using wt::ShuffleAlgorithm;

namespace {

struct Case {
  Ids sizes;
  SamplerOptions options;
  std::int64_t batch = 1;
};

Case random_case(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  Case drawn;
  for (auto shards = pick(1, 9); shards > 0; --shards) drawn.sizes.push_back(pick(3, 40));
  const std::int64_t samples = std::accumulate(drawn.sizes.begin(), drawn.sizes.end(), std::int64_t{0});
  drawn.options.algorithm = static_cast<ShuffleAlgorithm>(pick(0, 4));
  drawn.options.block_size = pick(0, 1) == 0 ? 0 : pick(2, 100);
  drawn.options.num_canonical_nodes = pick(1, 3);
  drawn.options.shuffle_seed = static_cast<std::uint64_t>(pick(0, 1 << 30));
  drawn.batch = pick(1, static_cast<int>(samples));
  return drawn;
}

}  // namespace

TEST_CASE("a sampler restored at any step goes on with the same ids") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Case drawn = random_case(seed);
    Sampler whole(drawn.sizes, drawn.options);
    std::vector<SamplerState> states;
    std::vector<Ids> batches;
    for (int step = 0; step < 25; ++step) {
      states.push_back(whole.state());
      batches.push_back(whole.next_batch(drawn.batch));
    }
    for (std::size_t step = 0; step < states.size(); step += 1 + seed % 3) {
      SamplerOptions fresh;  // what the state holds need not be told again
      fresh.algorithm = drawn.options.algorithm;
      fresh.block_size = drawn.options.block_size;
      Sampler resumed(drawn.sizes, fresh);
      resumed.restore(
          wt::sampler_state_from_json(nlohmann::json::parse(wt::to_json(states[step]).dump()), "checkpoint"));
      for (std::size_t later = step; later < batches.size(); ++later)
        REQUIRE(resumed.next_batch(drawn.batch) == batches[later]);
      REQUIRE(resumed.state() == whole.state());
    }
  }
}

TEST_CASE("an epoch hands out every sample once, less the tail that fills no batch") {
  for (unsigned seed = 100; seed < 160; ++seed) {
    const Case drawn = random_case(seed);
    Sampler sampler(drawn.sizes, drawn.options);
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
    Sampler sampler({30, 30}, {});
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
  const SamplerOptions options = {ShuffleAlgorithm::py1s, 0, 2, 7, 1};
  Sampler sampler({10, 5}, options);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const Ids order = wt::epoch_order(Ids{10, 5}, {ShuffleAlgorithm::py1s, 2, 7, epoch, 0});
    CHECK(sampler.next_batch(6) == Ids(order.begin(), order.begin() + 6));
    CHECK(sampler.next_batch(6) == Ids(order.begin() + 6, order.begin() + 12));
  }
  CHECK(sampler.state() == SamplerState{1, 12, 2, 7, 1});
}

TEST_CASE("states and batches that cannot be are errors") {
  Sampler sampler({10, 5}, {});
  const SamplerState before = sampler.state();
  CHECK_THROWS_WITH(sampler.restore({0, 16, 1, 1, 1}), Contains("sample_in_epoch: found 16") && Contains("15"));
  CHECK_THROWS_WITH(sampler.restore({0, 0, 99, 1, 1}), Contains("num_canonical_nodes 99"));
  CHECK_THROWS_WITH(sampler.restore({0, 0, 1, 1, 0}), Contains("initial_physical_nodes: found 0"));
  CHECK_THROWS_WITH(sampler.restore({0, 0, 1, ~std::uint64_t{0}, 1}), Contains("shuffle_seed"));
  CHECK(sampler.state() == before);
  CHECK_THROWS_WITH(sampler.next_batch(16), Contains("found 16 samples"));
  CHECK_THROWS_WITH(sampler.next_batch(0), Contains("found 0 samples"));
  auto document = wt::to_json(before);
  document["epoch"] = -1;
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("file: epoch: found -1"));
  document["epoch"] = 1.5;
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("file: epoch: found 1.5"));
  document.erase("epoch");
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("file: found no key epoch"));
  document["epoch"] = 0;
  document["extra"] = 0;
  CHECK_THROWS_WITH(wt::sampler_state_from_json(document, "file"), Contains("more than five keys"));
}
