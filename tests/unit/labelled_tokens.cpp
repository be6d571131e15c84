// Which tokens of a finetuning example are learned: LLM Foundry's rules.
#include "trainer/data/labelled_tokens.hpp"

#include <array>
#include <catch2/catch.hpp>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"
#include "trainer/data/examples.hpp"
#include "trainer/data/mds_writer.hpp"

using Catch::Matchers::Contains;
using namespace wt;
using namespace wt::test;

namespace {

constexpr const char* kOne = R"([{"input_ids": [1, 2, 3], "labels": [4, 5]}])";
constexpr const char* kTwo =
    R"([{"input_ids": [1, 2, 3], "labels": [4, 5]}, {"input_ids": [6], "labels": [7, 8], "attention_mask": [1]}])";

LabelledTokens read(const char* turns, const FinetuningSpec& spec = {}, std::int64_t seq = 16) {
  return labelled_tokens(turns, spec, seq, "data: sample 3");
}
/// Learned tokens in their order, which differ.
std::vector<std::int32_t> learned(const LabelledTokens& example) {
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < example.tokens.size(); ++i)
    if (example.learned.at(i)) out.push_back(example.tokens[i]);
  REQUIRE(example.targets() == static_cast<std::int64_t>(out.size()));
  return out;
}
using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("turns follow one another, and the last response is learned") {
  CHECK(read(kTwo).tokens == Ids{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(learned(read(kTwo)) == Ids{7, 8});
  CHECK(learned(read(kOne)) == Ids{4, 5});
}

TEST_CASE("all responses, all prompts, prompts that are long enough") {
  FinetuningSpec spec;
  spec.all_responses = true;
  CHECK(learned(read(kTwo, spec)) == Ids{4, 5, 7, 8});
  spec.prompts = FinetuningSpec::Prompts::all;
  CHECK(learned(read(kTwo, spec)) == Ids{2, 3, 4, 5, 6, 7, 8});  // nothing says the first
  spec.all_responses = false;
  CHECK(learned(read(kTwo, spec)) == Ids{2, 3, 6, 7, 8});
  spec.prompts = FinetuningSpec::Prompts::long_ones, spec.shortest_prompt = 3;
  CHECK(learned(read(kTwo, spec)) == Ids{2, 3, 7, 8});
  spec.shortest_prompt = 4;
  CHECK(learned(read(kTwo, spec)) == Ids{7, 8});
}

TEST_CASE("the last response ends with the token that is named") {
  FinetuningSpec spec;
  spec.eos_token_id = 9;
  CHECK(read(kTwo, spec).tokens == Ids{1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(learned(read(kTwo, spec)) == Ids{7, 8, 9});
  spec.eos_token_id = 8;
  CHECK(read(kTwo, spec).tokens == Ids{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("what is longer than a sequence is cut, unless nothing to learn is left") {
  CHECK(read(kTwo, {}, 7).tokens == Ids{1, 2, 3, 4, 5, 6, 7});
  CHECK(learned(read(kTwo, {}, 7)) == Ids{7});
  CHECK_THAT(usage_error([] { read(kTwo, {}, 6); }),
             Contains("data: sample 3: found 8 tokens, of which the first 6 (max_seq_len) hold nothing to learn") &&
                 Contains("--seq-len 6"));
  CHECK(read(R"([{"input_ids": [1, 2], "labels": []}])").targets() == 0);  // uncut, it only says nothing
}

TEST_CASE("what are no turns is refused with its place") {
  for (const char* bad : {"{}", "[]", "[", "[3]", R"([{"input_ids": [1]}])", R"([{"input_ids": [1], "labels": [-1]}])",
                          R"([{"input_ids": [1.5], "labels": [1]}])", R"([{"input_ids": [], "labels": []}])",
                          R"([{"input_ids": [1], "labels": [2147483648]}])"})
    CHECK_THAT(usage_error([&] { read(bad); }), Contains("data: sample 3: found"));
}

TEST_CASE("examples are read from the column of turns, and no other") {
  const TempDirectory folder;
  MdsWriter writer(folder / "turns", {{"turns", "json"}});
  writer.write(std::array<std::string, 1>{kOne});
  writer.write(std::array<std::string, 1>{kTwo});
  writer.finish();
  MdsWriter tokens(folder / "tokens", {{"tokens", "ndarray:uint16"}});
  tokens.write_tokens(std::vector<std::uint16_t>{1, 2});
  tokens.finish();
  DatasetSpec spec;
  spec.use_folder(folder / "turns");
  CHECK_THAT(usage_error([&] { ShardCache{spec}; }), Contains("allowed is a column 'tokens'"));
  spec.finetuning.emplace();
  const ShardCache data(spec);
  Examples examples(data, spec, 7);
  CHECK(examples.example(1).tokens == Ids{1, 2, 3, 4, 5, 6, 7});
  CHECK(examples.size(1).tokens == 7);
  CHECK(examples.size(1).targets == 1);
  CHECK(examples.size(0).tokens == 5);
  CHECK(examples.size(1).targets == 1);  // as kept
  spec.streams.front().local = (folder / "tokens").string();
  CHECK_THAT(usage_error([&] { ShardCache{spec}; }),
             Contains("found the columns tokens: ndarray:uint16") && Contains("--samples finetune"));
}
