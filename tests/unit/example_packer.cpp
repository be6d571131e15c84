// Packing of examples: LLM Foundry's choice, and nothing lost, cut or read twice.
#include "trainer/data/example_packer.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "tests/fixtures/usage_error.hpp"
#include "trainer/data/sampler.hpp"

using Catch::Matchers::Contains;
using namespace wt;
using namespace wt::test;

namespace {

using Packed = std::vector<PackedExamples>;

std::vector<std::int64_t> counted(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

}  // namespace

// What _first_fit_bin_packing of LLM Foundry 0.22.0 makes of three batches of 12, 4 sequences of 16 tokens each.
TEST_CASE("three batches are packed as LLM Foundry packs them") {
  const std::vector<std::int64_t> sizes{5, 9, 3, 12, 7, 2,  16, 4, 4, 8, 1, 6, 3,  3, 10, 2, 15, 5,
                                        6, 4, 9, 1,  2, 11, 8,  8, 8, 2, 2, 2, 13, 1, 4,  4, 4,  16};
  ExamplePacker packer(16, [&](std::int64_t id) { return sizes.at(static_cast<std::size_t>(id)); });
  CHECK(packer.pack(counted(0, 12), 4) == Packed{{6}, {1, 4}, {3, 7}, {9, 11, 5}});
  CHECK(packer.waiting() == Packed{{0, 8, 2, 10}});
  CHECK(packer.pack(counted(12, 12), 4) == Packed{{14, 18}, {23, 17}, {0, 8, 2, 10, 12}, {20, 19, 13}});
  CHECK(packer.waiting() == Packed{{16, 21}, {15, 22}});
  CHECK(packer.pack(counted(24, 12), 4) == Packed{{16, 21}, {35}, {25, 26}, {15, 22, 24, 32}});
  CHECK(packer.waiting() == Packed{{30, 27, 31}, {33, 34, 28, 29}});
}

TEST_CASE("every example is in one sequence, whole, whatever lengths, batches and ratios are drawn") {
  std::mt19937_64 generator(7);
  const auto drawn = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(generator);
  };
  for (int trial = 0; trial < 200; ++trial) {
    const std::int64_t seq = drawn(1, 64), sequences = drawn(1, 9), examples = sequences * drawn(1, 6) + drawn(0, 3);
    std::map<std::int64_t, std::int64_t> sizes, seen;
    const auto size = [&](std::int64_t id) { return sizes.at(id); };
    ExamplePacker packer(seq, size), resumed(seq, size);
    for (std::int64_t batch = 0; batch < 6; ++batch) {
      const auto ids = counted(batch * examples, examples);
      for (const std::int64_t id : ids) sizes[id] = drawn(1, seq);
      // As from a checkpoint: the state says all.
      SamplerState state;
      state.waiting = packer.waiting();
      resumed.restore(sampler_state_from_json(nlohmann::json::parse(to_json(state).dump()), "state").waiting);
      const Packed packed = packer.pack(ids, sequences);
      REQUIRE(resumed.pack(ids, sequences) == packed);
      REQUIRE(resumed.waiting() == packer.waiting());
      REQUIRE(static_cast<std::int64_t>(packed.size()) == sequences);
      for (const PackedExamples& sequence : packed) {
        std::int64_t tokens = 0;
        for (const std::int64_t id : sequence) tokens += sizes.at(id), ++seen[id];
        REQUIRE((!sequence.empty() && tokens <= seq));
      }
    }
    for (const PackedExamples& sequence : packer.waiting())
      for (const std::int64_t id : sequence) ++seen[id];
    REQUIRE(seen.size() == sizes.size());
    for (const auto& [id, times] : seen) REQUIRE(times == 1);
  }
}

TEST_CASE("with as many examples as sequences each has its own") {
  ExamplePacker packer(16, [](std::int64_t id) { return id + 1; });
  CHECK(packer.pack(counted(0, 3), 3) == Packed{{2}, {1}, {0}});
  CHECK(packer.waiting().empty());
  CHECK_THAT(usage_error([&] { packer.pack(counted(0, 2), 3); }), Contains("found 2 examples for 3 sequences"));
}

TEST_CASE("what waits fits into a sequence") {
  ExamplePacker packer(16, [](std::int64_t id) { return id; });
  packer.restore({{9, 7}});
  CHECK(packer.waiting() == Packed{{9, 7}});
  CHECK_THAT(usage_error([&] {
               packer.restore({{3}, {9, 8}});
             }),
             Contains("found 17 tokens in a sequence that waits, allowed are 16 (max_seq_len)"));
}

TEST_CASE("what waits is for a run that packs, and of its data set") {
  DatasetSpec spec;
  spec.use_folder("data");
  SamplerState state;
  state.waiting = {{1, 2}, {9}};
  Sampler tokens(spec, {{10}});
  CHECK_THAT(usage_error([&] { tokens.restore(state); }), Contains("found 2 sequences") && Contains("packing_ratio"));
  spec.finetuning.emplace().packing_ratio = 2;
  Sampler packs(spec, {{10}});
  packs.restore(state);
  CHECK(packs.state() == state);
  state.waiting.back() = {10};
  CHECK_THAT(usage_error([&] { packs.restore(state); }), Contains("waiting: found sample 10, allowed are 0 to 9"));
  nlohmann::json bad = to_json(state);
  for (const char* waiting : {"3", "[3]", "[[]]", "[[-1]]", "[[0.5]]"}) {
    bad["waiting"] = nlohmann::json::parse(waiting);
    CHECK_THAT(usage_error([&] { sampler_state_from_json(bad, "state"); }), Contains("state: waiting: found"));
  }
}
