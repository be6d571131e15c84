// Ranks agree on their generation through a store that remembers earlier ones.
#include <catch2/catch.hpp>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "trainer/communication/first_failure.hpp"
#include "trainer/communication/generation.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;

TEST_CASE("ranks of each generation get its number, whoever comes first and whatever an earlier one has left") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto sleep = [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    return true;
  };
  for (int expected = 0; expected < 4; ++expected) {
    int found[2] = {-1, -1};
    std::thread early([&] { found[0] = ask_generation(*store, 1); });  // before rank 0
    const int opened = open_generation(*store);
    std::thread late([&] {  // rank 0 answers its earlier name meanwhile
      sleep(0.1);
      found[1] = ask_generation(*store, 2);
    });
    answer_arrivals(*store, 3, opened, sleep);
    early.join(), late.join();
    CHECK(opened == expected);
    CHECK(found[0] == expected);
    CHECK(found[1] == expected);
  }
}

TEST_CASE("rank 0 stops to answer when it is told to, though a rank has not come") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  int looks = 0;
  answer_arrivals(*store, 2, open_generation(*store), [&](double) { return ++looks < 3; });
  CHECK(looks == 3);
}

TEST_CASE("a failure whose message quotes bytes that are no text is told all the same") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const Failure cause = settle_failure(*store, {2, 4, "found 'a\xff' in the file", {1}});
  CHECK(cause.text == "found 'a\xef\xbf\xbd' in the file");
  const auto first = first_failure(*store);
  REQUIRE(first);
  CHECK((first->rank == 2 && first->status == 4 && first->missed == std::vector<std::int64_t>{1}));
  CHECK(first->text == cause.text);
}
