// What a measured peak says of another step's memory, on peaks whose truth is known.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/cost/memory/allocator_memory.hpp"

using namespace wt;

namespace {

constexpr double kGiB = 1 << 30;

AllocatorMemory typical() {
  const AllocatorMemory::Kind allocated{{1 * kGiB, 1}, Evidence::published, {-0.2, 0.2}},
      reserved{{2 * kGiB, 1.1}, Evidence::published, {-0.3, 0.3}};
  return {allocated, reserved, true};
}

double bytes(const AllocatorMemory& memory, const LiveMemory& live, MemoryOf of = MemoryOf::peak_reserved) {
  return memory.of(of, live).bytes;
}

const LiveMemory kSmall{10 * kGiB, 10 * kGiB}, kLarge{10 * kGiB, 40 * kGiB}, kStates{30 * kGiB, 0};

}  // namespace

TEST_CASE("no peak changes nothing, and a peak as predicted only narrows its kind") {
  const AllocatorMemory before = typical(), none = before.knowing({});
  CHECK(bytes(none, kSmall) == bytes(before, kSmall));
  const AllocatorMemory known = before.knowing({{MemoryOf::peak_reserved, kSmall, bytes(before, kSmall)}});
  for (const LiveMemory& live : {kSmall, kLarge, kStates}) {
    CHECK(bytes(known, live) == Approx(bytes(before, live)));
    const MemoryForecast narrow = known.of(MemoryOf::peak_reserved, live),
                         wide = before.of(MemoryOf::peak_reserved, live);
    CHECK((narrow.low > wide.low && narrow.high < wide.high));
    CHECK(known.of(MemoryOf::peak_allocated, live).low == before.of(MemoryOf::peak_allocated, live).low);
  }
}

TEST_CASE("many equal peaks are reproduced, above and below the prediction") {
  const AllocatorMemory before = typical();
  for (const double factor : {0.7, 1.5, 2.5}) {
    const double truth = factor * bytes(before, kSmall);
    const std::vector<MeasuredPeak> peaks(200, {MemoryOf::peak_reserved, kSmall, truth});
    CHECK(bytes(before.knowing(peaks), kSmall) == Approx(truth).epsilon(factor < 1 ? 0.05 : 0.01));  // no workspace < 0
  }
}

TEST_CASE("peaks of two sizes tell a workspace from fragmentation") {
  const AllocatorMemory before = typical();
  const auto learned = [&](const MemoryConstants& truth) {
    std::vector<MeasuredPeak> peaks;
    for (int i = 0; i < 50; ++i)
      for (const LiveMemory& live : {kSmall, kLarge})
        peaks.push_back({MemoryOf::peak_reserved, live, truth.bytes(live)});
    return before.knowing(peaks);
  };
  const MemoryConstants buffers{8 * kGiB, 1.1}, fragments{2 * kGiB, 1.6};
  CHECK(bytes(learned(buffers), kStates) == Approx(buffers.bytes(kStates)).epsilon(0.02));
  CHECK(bytes(learned(fragments), kStates) == Approx(fragments.bytes(kStates)).epsilon(0.02));
  const LiveMemory unseen{5 * kGiB, 80 * kGiB};
  CHECK(bytes(learned(fragments), unseen) == Approx(fragments.bytes(unseen)).epsilon(0.02));
}

TEST_CASE("one peak moves predictions toward it, and never beyond it at the same step") {
  const AllocatorMemory before = typical();
  const double predicted = bytes(before, kSmall);
  for (const double factor : {0.8, 1.3}) {
    const double truth = factor * predicted,
                 after = bytes(before.knowing({{MemoryOf::peak_reserved, kSmall, truth}}), kSmall);
    CHECK(std::abs(std::log(after / truth)) < 0.5 * std::abs(std::log(predicted / truth)));
    CHECK((after - predicted) * (truth - after) >= 0);
  }
}
