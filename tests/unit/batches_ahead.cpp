// Batches that are drawn ahead are the same, and so is where a run goes on after each.
#include "trainer/data/batches_ahead.hpp"

#include <catch2/catch.hpp>

using namespace wt;

namespace {

Sampler small_sampler() {
  DatasetSpec spec;
  spec.streams.resize(1);
  return {spec, {{7, 5, 9}}};
}
bool skips(std::int64_t batch) { return batch == 2 || batch == 9; }

}  // namespace

TEST_CASE("drawing ahead changes neither batches nor states") {
  const std::int64_t ahead = GENERATE(0, 1, 3, 20);
  Sampler plain = small_sampler(), sampler = small_sampler();
  std::vector<std::vector<std::int64_t>> drawn;
  BatchesAhead batches(sampler, 4, skips, ahead, [&](const auto& samples) { drawn.push_back(samples); });
  for (std::size_t step = 0; step < 15; ++step) {
    const DrawnBatch expected = next_trained_batch(plain, 4, skips);
    const BatchAhead found = batches.next();
    CHECK(found.batch.samples == expected.samples);
    CHECK(found.batch.skipped.size() == expected.skipped.size());
    CHECK(found.after == plain.state());
    REQUIRE(drawn.size() == step + 1 + static_cast<std::size_t>(ahead));  // told of before they are needed
    CHECK(drawn[step] == expected.samples);
  }
}

TEST_CASE("a run goes on from a state as if it had drawn nothing ahead") {
  Sampler sampler = small_sampler(), again = small_sampler();
  BatchesAhead batches(sampler, 4, skips, 5, [](const auto&) {});
  for (int i = 0; i < 6; ++i) batches.next();
  BatchAhead seventh = batches.next();
  again.restore(seventh.after);
  CHECK(next_trained_batch(again, 4, skips).samples == batches.next().batch.samples);
}
