// Batches that are drawn and not trained on.
#include <catch2/catch.hpp>
#include <set>

#include "trainer/data/skipped_batches.hpp"

using namespace wt;

namespace {

const std::set<std::int64_t> kSkipped{2, 5, 6, 7, 11};
bool skips(std::int64_t batch) { return kSkipped.contains(batch); }

}  // namespace

TEST_CASE("what is trained on and what is skipped are all batches in their order, over the ends of epochs") {
  DatasetSpec dataset;
  dataset.use_folder("data");
  Sampler all(dataset, {{10, 7}}), some(dataset, {{10, 7}});  // 17 samples: 3 batches of 5 an epoch
  std::int64_t batch = 0;
  for (int step = 0; step < 12; ++step) {
    const DrawnBatch drawn = next_trained_batch(some, 5, skips);
    for (const SkippedBatch& skipped : drawn.skipped) {
      CHECK(skipped.batch == ++batch);
      CHECK(skips(batch));
      CHECK(skipped.samples == all.next_batch(5));
    }
    CHECK(!skips(++batch));
    CHECK(drawn.samples == all.next_batch(5));
    CHECK(some.batches_drawn(some.state(), 5) == batch);
    CHECK(trained_although_skipped(step + 1, batch, skips) == 0);
  }
}

TEST_CASE("a run that was trained on what is now skipped is told by the number of its batches") {
  CHECK(trained_although_skipped(1, 1, skips) == 0);
  CHECK(trained_although_skipped(2, 2, skips) == 2);
  CHECK(trained_although_skipped(4, 5, skips) == 5);  // 2 was skipped
  CHECK(trained_although_skipped(5, 5, skips) == 2);
}
