#include "trainer/data/epoch_batches.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <numeric>

#include "configs/base/error.hpp"
#include "trainer/data/numpy_random.hpp"
#include "trainer/data/sampler.hpp"
#include "trainer/data/shard_sampling.hpp"

using Catch::Contains;
using Ids = std::vector<std::int64_t>;
using wt::BatchingMethod;
using wt::DatasetSpec;
using wt::Sampler;

namespace {

/// Stream a has shards of 5, 4 and 3 samples, ids 0 to 11; stream b of 6 and 2, ids 12 to 19.
const std::vector<Ids> kShards = {{5, 4, 3}, {6, 2}};

DatasetSpec two_streams(const std::function<void(wt::StreamSpec& a, wt::StreamSpec& b)>& weigh = [](auto&, auto&) {}) {
  DatasetSpec dataset;
  dataset.streams.resize(2);
  dataset.streams[0].name = "a", dataset.streams[1].name = "b";
  dataset.num_canonical_nodes = 2, dataset.shuffle_block_size = 8;
  weigh(dataset.streams[0], dataset.streams[1]);
  return dataset;
}

DatasetSpec three_to_one(BatchingMethod method) {
  DatasetSpec dataset = two_streams([](auto& a, auto& b) { a.proportion = .75, b.proportion = .25; });
  dataset.epoch_size = 16, dataset.batching_method = method;
  return dataset;
}

DatasetSpec chosen(std::int64_t of_a, std::int64_t of_b) {
  return two_streams([&](auto& a, auto& b) { a.choose = of_a, b.choose = of_b; });
}

/// The rest of the epoch that the sampler is in.
std::vector<Ids> epoch_of(Sampler sampler, std::int64_t batch, std::int64_t epoch = 0, std::int64_t sample = 0) {
  wt::SamplerState state = sampler.state();
  state.epoch = epoch, state.sample_in_epoch = sample;
  sampler.restore(state);
  std::vector<Ids> out;
  while (true) {
    Ids next = sampler.next_batch(batch);
    if (sampler.state().epoch != epoch) return out;
    out.push_back(std::move(next));
  }
}

std::string refusal(const DatasetSpec& dataset, std::int64_t batch, const std::vector<Ids>& shards = kShards,
                    const wt::BatchWorld& world = {}) {
  try {
    Sampler(dataset, shards, world).next_batch(batch);
  } catch (const wt::Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

// Vectors: generate_work of mosaicml-streaming 0.13.0 with NumPy 2.4.6, one node, one rank, one worker unless said.

TEST_CASE("random batches mix streams by chance") {
  CHECK(epoch_of({three_to_one(BatchingMethod::random), kShards}, 4) ==
        std::vector<Ids>{{0, 15, 7, 16}, {6, 19, 8, 17}, {11, 4, 10, 3}, {5, 1, 9, 2}});
}

TEST_CASE("stratified batches have as many samples of each stream") {
  CHECK(epoch_of({three_to_one(BatchingMethod::stratified), kShards}, 4) ==
        std::vector<Ids>{{7, 8, 6, 15}, {2, 5, 1, 16}, {10, 4, 11, 19}, {0, 9, 3, 17}});
}

TEST_CASE("a global batch is of one stream") {
  CHECK(epoch_of({three_to_one(BatchingMethod::per_stream), kShards}, 4) ==
        std::vector<Ids>{{7, 8, 6, 2}, {5, 1, 10, 4}, {15, 16, 19, 17}, {11, 0, 9, 3}});
}

TEST_CASE("a rank's batch is of one stream, and depends on nodes and ranks") {
  const DatasetSpec dataset = three_to_one(BatchingMethod::device_per_stream);
  CHECK(epoch_of({dataset, kShards, {1, 2}}, 4) ==
        std::vector<Ids>{{7, 6, 8, 2}, {5, 10, 15, 19}, {16, 17, 1, 4}, {11, 9, 0, 3}});
  CHECK(epoch_of({dataset, kShards, {2, 1}}, 4) ==
        std::vector<Ids>{{7, 6, 8, 2}, {5, 10, 1, 4}, {15, 19, 16, 17}, {11, 9, 0, 3}});
}

TEST_CASE("a part of a stream is drawn from its shards, a few samples of one at once") {
  CHECK(epoch_of({chosen(10, 6), kShards}, 4) ==
        std::vector<Ids>{{2, 16, 7, 19}, {6, 17, 8, 18}, {11, 4, 10, 12}, {5, 14, 9, 3}});
  DatasetSpec grains = chosen(10, 6);
  grains.sampling_granularity = 3;
  CHECK(epoch_of({grains, kShards}, 4) ==
        std::vector<Ids>{{2, 14, 1, 19}, {7, 15, 0, 18}, {11, 4, 6, 12}, {8, 13, 5, 3}});
}

TEST_CASE("balanced sampling draws anew each epoch") {
  DatasetSpec dataset = chosen(3, 2);
  CHECK(epoch_of({dataset, kShards}, 5, 1) == std::vector<Ids>{{15, 19, 11, 3, 11}});
  dataset.sampling_method = wt::SamplingMethod::fixed;
  CHECK(epoch_of({dataset, kShards}, 5, 1) == std::vector<Ids>{{11, 12, 8, 13, 8}});
  CHECK(epoch_of({dataset, kShards}, 5, 2) == std::vector<Ids>{{11, 13, 8, 4, 8}});
}

TEST_CASE("canonical nodes are read in turn without a shuffle, too") {
  DatasetSpec dataset = two_streams();
  dataset.shuffle = false;
  CHECK(epoch_of({dataset, kShards}, 4) ==
        std::vector<Ids>{{0, 10, 1, 11}, {2, 12, 3, 13}, {4, 14, 5, 15}, {6, 16, 7, 17}, {8, 18, 9, 19}});
}

TEST_CASE("a canonical node of fewer samples repeats its last") {
  DatasetSpec dataset = two_streams();  // 20 samples over three nodes: 6, 7 and 7
  dataset.num_canonical_nodes = 3, dataset.shuffle_algorithm = wt::ShuffleAlgorithm::py1s;
  CHECK(epoch_of({dataset, kShards}, 4) ==
        std::vector<Ids>{{7, 12, 18, 6}, {2, 19, 5, 0}, {15, 11, 3, 13}, {10, 4, 16, 9}, {1, 14, 9, 8}});
}

TEST_CASE("an epoch goes on at any of its samples") {
  CHECK(epoch_of({three_to_one(BatchingMethod::random), kShards}, 4, 1, 6) ==
        std::vector<Ids>{{6, 15, 0, 3}, {9, 1, 11, 13}});
}

TEST_CASE("epoch_size without weights draws by the streams' sizes; repeat multiplies them") {
  DatasetSpec by_size = two_streams();
  by_size.epoch_size = 7;
  CHECK(epoch_of({by_size, kShards}, 7) == std::vector<Ids>{{10, 17, 8, 14, 9, 12, 9}});
  const DatasetSpec repeated = two_streams([](auto& a, auto& b) { a.repeat = 1.5, b.repeat = .3; });
  CHECK(epoch_of({repeated, kShards}, 10) ==
        std::vector<Ids>{{13, 2, 9, 3, 4, 4, 5, 0, 16, 11}, {3, 1, 11, 9, 8, 8, 6, 5, 7, 10}});
}

TEST_CASE("shares of an epoch: rounded down, and what is left over dealt by chance") {
  DatasetSpec dataset = two_streams([](auto& a, auto& b) { a.proportion = 2, b.proportion = 1; });
  dataset.epoch_size = 100;
  const wt::EpochShares shares = wt::epoch_shares(dataset, Ids{12, 8});
  CHECK(shares.epoch_size == 100);
  CHECK(shares.streams[0].choose + shares.streams[1].choose == 100);
  CHECK(shares.streams[0].choose >= 66);
  CHECK(shares.streams[1].choose >= 33);
  CHECK(shares.streams[0].proportion == Approx(2. / 3));
  CHECK(shares.streams[1].repeat == Approx(static_cast<double>(shares.streams[1].choose) / 8));
  CHECK(wt::epoch_shares(dataset, Ids{12, 8}, std::vector<double>{0, 1}).streams[1].choose == 100);
}

TEST_CASE("picks of one sample and of many give what the whole permutation gives") {
  // The first `choose` places of Generator.permutation, counted by shard: the plain way to what a bit a sample holds.
  const Ids sizes = {40, 1, 77, 64, 3, 130};
  const std::int64_t samples = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  for (const std::int64_t choose : {1, 2, 63, 64, 65, 200, 314, 315, 316, 400}) {
    Ids expected = sizes;
    for (auto& size : expected) size *= choose / samples;
    const Ids order = wt::NumpyRandom(static_cast<std::uint64_t>(choose)).permutation(samples);
    for (std::int64_t i = 0; i < choose % samples; ++i) {
      std::int64_t id = order[static_cast<std::size_t>(i)];
      std::size_t shard = 0;
      while (id >= sizes[shard]) id -= sizes[shard++];
      ++expected[shard];
    }
    CHECK(wt::samples_of_shards(sizes, choose, 1, static_cast<std::uint64_t>(choose)) == expected);
  }
}

TEST_CASE("streams that fill no batch are errors") {
  DatasetSpec few = three_to_one(BatchingMethod::stratified);
  CHECK_THAT(refusal(few, 1), Contains("stream 'b': found no sample of it in a stratified batch of 1"));
  few.batching_method = BatchingMethod::per_stream;
  CHECK_THAT(refusal(few, 5), Contains("stream 'b': found 4 samples") && Contains("per_stream"));
  few.batching_method = BatchingMethod::device_per_stream;
  CHECK_THAT(refusal(few, 5, kShards, {1, 2}), Contains("found 5 samples for 2 ranks"));
  CHECK_THAT(refusal(few, 12, kShards, {1, 2}),
             Contains("stream 'b': found 4 samples") && Contains("device_per_stream"));
  CHECK_THAT(refusal(few, 6, kShards, {3, 1}), Contains("num_canonical_nodes: found 2 on 3 nodes"));
  few.batching_method = BatchingMethod::random;
  CHECK_THAT(refusal(few, 17), Contains("found 17 samples, allowed") && Contains("16 of an epoch"));
  few.finetuning.emplace().packing_ratio = 3.3;
  CHECK_THAT(refusal(few, 19), Contains("found 19 samples (6 sequences x packing_ratio 3.3), allowed is 1 to the 16"));
  few.finetuning.reset();
  few.batching_method = BatchingMethod::stratified, few.shuffle_block_size = 2;
  CHECK_THAT(refusal(few, 4), Contains("stream 'b'") && Contains("shuffle_block_size"));
}

TEST_CASE("streams without samples, and sizes that do not fit the streams, are errors") {
  CHECK_THAT(refusal(two_streams(), 1, {{5}, {}}), Contains("stream 'b': found no samples"));
  CHECK_THAT(refusal(two_streams(), 1, {{5}}), Contains("found 2 streams, sizes of 1"));
  CHECK_THAT(refusal(two_streams([](auto& a, auto& b) { a.repeat = .01, b.repeat = .01; }), 1),
             Contains("an epoch of no samples"));
}
