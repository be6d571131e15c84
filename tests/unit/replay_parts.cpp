// What the replay is made of: events by time, users of pools, numbers of ops, sums over pools, memory that a child
// fills.
#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "sim/cluster/child.hpp"
#include "sim/cluster/event_queue.hpp"
#include "sim/cluster/pool_users.hpp"
#include "sim/cluster/shared_array.hpp"
#include "sim/replay/replay_executor.hpp"
#include "sim/replay/traffic.hpp"

using namespace wt;
using Catch::Matchers::Equals;

TEST_CASE("events come by time, those of one time in the order of adding") {
  EventQueue queue;
  CHECK(queue.empty());
  CHECK(queue.next_s() == std::numeric_limits<double>::infinity());
  std::vector<std::int64_t> events{7};
  queue.take(events);
  CHECK(events.empty());
  queue.add(2, 1);
  queue.add(1, 2);
  queue.add(2, 3);
  queue.add(0.5, -4);
  queue.add(1, 5);
  CHECK(queue.next_s() == 0.5);
  for (const std::vector<std::int64_t>& expected : {std::vector<std::int64_t>{-4}, {2, 5}, {1, 3}}) {
    queue.take(events);
    CHECK_THAT(events, Equals(expected));
  }
  CHECK(queue.empty());
  queue.add(2, 6);  // a time that was there before
  CHECK(queue.next_s() == 2);
}

TEST_CASE("no event is lost among more times than the queue remembers") {
  EventQueue queue;
  const std::int64_t times = 5000, each = 3;
  for (std::int64_t n = 0; n < times * each; ++n) queue.add(1e-3 * static_cast<double>(n * 7 % times), n);
  std::vector<std::int64_t> events;
  std::vector<int> seen(static_cast<std::size_t>(times * each));
  for (double before = 0; !queue.empty(); before = queue.next_s()) {
    CHECK(queue.next_s() >= before);
    const double time_s = queue.next_s();
    queue.take(events);
    for (const std::int64_t n : events) {
      CHECK(1e-3 * static_cast<double>(n * 7 % times) == time_s);
      ++seen[static_cast<std::size_t>(n)];
    }
    if (queue.empty()) break;
  }
  CHECK(std::ranges::count(seen, 1) == times * each);
}

TEST_CASE("of pools with the same loads only those bind of which some load takes most") {
  PoolUsers users;
  for (const double capacity : {1.0, 1.0, 2.0, 1.0, 1.0}) users.add_pool(capacity);
  const PoolLoad wide{{0, 1, 2, 3, 4}, {5, 5, 5, 4, 6}}, narrow{{0, 1, 2}, {1, 2, 6}};
  CHECK(!users.enter(1, wide));
  CHECK_THAT(users.binding(wide), Equals(std::vector<std::size_t>{4}));  // alone: the slowest
  CHECK(users.enter(2, narrow));
  // Pools 0 to 2 have both: 1 covers 0; of 2 the narrow one takes 3 s, of 1 the wide one 5 s.
  CHECK_THAT(users.binding(wide), Equals(std::vector<std::size_t>{1, 2, 4}));
  CHECK_THAT(users.binding(narrow), Equals(std::vector<std::size_t>{1, 2}));
  std::vector<int> met;
  users.each_other(1, wide, [&](int load) { met.push_back(load); });
  CHECK_THAT(met, Equals(std::vector<int>{2, 2, 2}));
  users.leave(2, narrow);
  CHECK_THAT(users.binding(wide), Equals(std::vector<std::size_t>{4}));
}

TEST_CASE("of pools that are alike all their loads name the same one") {
  PoolUsers users;
  for (int pool = 0; pool < 4; ++pool) users.add_pool(3);
  const PoolLoad up{{0, 1, 2, 3}, {1, 1, 1, 1}}, down{{3, 2, 1}, {2, 2, 2}};
  users.enter(5, up);
  users.enter(9, down);
  CHECK_THAT(users.binding(up), Equals(std::vector<std::size_t>{0, 1}));  // alone on 0, both on 1
  CHECK_THAT(users.binding(down), Equals(std::vector<std::size_t>{2}));   // pool 1, too
}

TEST_CASE("amounts add up on the pools that they were added to") {
  PoolSum sum(5);
  sum.add(3, 1);
  sum.add(1, 0);
  sum.add(0, 2);
  sum.add(3, 4);
  for (int round = 0; round < 2; ++round) {  // the first taking leaves nothing
    const PoolLoad load = sum.take();
    CHECK_THAT(load.pools, Equals(round == 0 ? std::vector<int>{0, 3} : std::vector<int>{2}));
    CHECK_THAT(load.amounts, Equals(round == 0 ? std::vector<double>{2, 5} : std::vector<double>{7}));
    sum.add(2, 7);
  }
}

TEST_CASE("the same op of the ranks of one program has consecutive numbers") {
  Program two, three;
  for (int i = 0; i < 3; ++i) {
    Op op;
    op.name = std::string(1, static_cast<char>('a' + i));
    if (i < 2) two.nodes.emplace_back(op);
    three.nodes.emplace_back(op);
  }
  two.layers = two.microbatches = three.layers = three.microbatches = 1;
  const RankProgram a(two), b(three);
  const OpNumbers numbers({&a, &b, &a, &a});
  CHECK(numbers.size() == 3 * 2 + 3);
  CHECK(numbers.groups().size() == 2);
  std::vector<std::size_t> of_a, of_b;
  for (std::size_t op = 0; op < 3; ++op) {
    for (const std::size_t rank : {0, 2, 3})
      if (op < 2) of_a.push_back(numbers(rank, op));
    of_b.push_back(numbers(1, op));
  }
  CHECK_THAT(of_a, Equals(std::vector<std::size_t>{0, 1, 2, 3, 4, 5}));
  CHECK_THAT(of_b, Equals(std::vector<std::size_t>{6, 7, 8}));
}

TEST_CASE("what a child writes into a shared array is there afterwards") {
  SharedArray<double> shared(100000);
  run_in_child([&] {
    for (double& value : shared.values()) value = static_cast<double>(&value - shared.values().data());
    return std::string();
  });
  CHECK(shared.values()[0] == 0);
  CHECK(shared.values()[99999] == 99999);
  CHECK(SharedArray<double>(0).values().empty());
  CHECK_THROWS_WITH(SharedArray<double>(std::size_t{1} << 55), Catch::Contains("free memory"));
}
