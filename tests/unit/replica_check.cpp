// Whom the hashes of replicas blame.
#include <catch2/catch.hpp>

#include "trainer/executor/replica_check.hpp"

using namespace wt;

using Ranks = std::vector<std::int64_t>;

TEST_CASE("ranks that hold other numbers than most of their replicas") {
  CHECK(ranks_that_differ({1, 2, 1, 2}, 2).empty());
  CHECK(ranks_that_differ({1, 2, 3, 4}, 4).empty());         // one replica: nothing to compare
  CHECK(ranks_that_differ({1, 1, 9, 1}, 1) == Ranks{2});     // three against one
  CHECK(ranks_that_differ({1, 2, 1, 9}, 2) == Ranks{1, 3});  // one against one
  CHECK(ranks_that_differ({1, 1, 9, 9}, 1) == Ranks{0, 1, 2, 3});
  CHECK(ranks_that_differ({9, 2, 1, 2, 1, 8}, 2) == Ranks{0, 5});  // one in each part
}

TEST_CASE("a step that is right the second time blames who changed") {
  const GradientBlame blamed = blame({1, 2, 1, 9}, {1, 2, 1, 2}, 2);
  CHECK(!blamed.persistent);
  CHECK(blamed.ranks == Ranks{3});
}

TEST_CASE("a step that is wrong both times blames the minority, and of two replicas the one that changed") {
  const GradientBlame same = blame({1, 1, 9, 1}, {1, 1, 9, 1}, 1);
  CHECK(same.persistent);
  CHECK(same.ranks == Ranks{2});
  CHECK(blame({1, 2, 1, 9}, {1, 2, 1, 8}, 2).ranks == Ranks{3});
  CHECK(blame({1, 2, 1, 9}, {1, 2, 1, 9}, 2).ranks == Ranks{1, 3});
}
