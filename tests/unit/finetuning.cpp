#include "trainer/data/finetuning.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/data/data_check.hpp"
#include "trainer/data/mds_writer.hpp"
#include "trainer/data/pack.hpp"

using Catch::Contains;
using wt::can_be_learned;
using wt::finetuning_example;
using wt::FinetuningTurn;
using wt::test::TempDirectory;
using wt::test::write_bytes;

namespace {

wt::FinetuningExample example_of(const std::string& json) {
  return finetuning_example(nlohmann::json::parse(json), "a.jsonl: line 2");
}

/// A prompt of 2 bytes and one of 8, answered with "c" and with `second`, in directory/set.
wt::PackResult pack_two(const TempDirectory& directory, const std::string& second, std::int64_t seq_len) {
  write_bytes(
      directory / "a.jsonl",
      "{\"prompt\": \"ab\", \"response\": \"c\"}\n{\"prompt\": \"abcdefgh\", \"response\": \"" + second + "\"}\n");
  wt::PackOptions options;
  options.samples = wt::SampleKind::finetune, options.seq_len = seq_len;
  return wt::pack_text({directory / "a.jsonl"}, directory / "set", options);
}

}  // namespace

TEST_CASE("prompt and response, or completion") {
  CHECK(example_of(R"({"prompt": "p", "response": "r"})").response == "r");
  CHECK(example_of(R"({"prompt": "p", "completion": "c"})").response == "c");
}

TEST_CASE("a conversation is a turn for each answer, in ChatML") {
  const auto turns =
      wt::chat_turns(example_of(R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"},
    {"role": "assistant", "content": "a"}, {"role": "user", "content": "v"}, {"role": "assistant", "content": "b"}]})")
                         .messages);
  REQUIRE(turns.size() == 2);
  CHECK(turns[0].prompt == "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n");
  CHECK(turns[0].response == "a<|im_end|>\n");
  CHECK(turns[1].prompt == "<|im_start|>user\nv<|im_end|>\n<|im_start|>assistant\n");
  CHECK(turns[1].response == "b<|im_end|>\n");
}

TEST_CASE("what is no finetuning example is refused with its place") {
  const auto refuses = [](const std::string& json, const std::string& why) {
    CHECK_THROWS_WITH(example_of(json), Contains("a.jsonl: line 2: found " + why));
  };
  refuses(R"({"prompt": "p"})", "the keys {prompt}");
  refuses(R"({"prompt": "p", "response": "r", "id": 1})", "the keys {id, prompt, response}");
  refuses(R"({"prompt": 3, "response": "r"})", "prompt: number");
  refuses(R"({"messages": "m"})", "too few messages");
  refuses(R"({"messages": [{"role": "assistant", "content": "a"}]})", "too few messages");
  refuses(R"({"messages": [{"role": "user", "content": "u"}, {"role": "user", "content": "u"}]})",
          "two messages of user");
  refuses(R"({"messages": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "u"}]})",
          "a last message of user");
  refuses(R"({"messages": [{"role": "king", "content": "u"}, {"role": "assistant", "content": "a"}]})",
          "the role 'king'");
  refuses(R"({"messages": [{"role": "user", "text": "u"}, {"role": "assistant", "content": "a"}]})",
          "a message of other keys");
}

TEST_CASE("the column holds what Python's json.dumps writes") {
  CHECK(wt::encode_turns({{{1, 2}, {3}}, {{4}, {70000}}}) ==
        R"([{"input_ids": [1, 2], "labels": [3]}, {"input_ids": [4], "labels": [70000]}])");
}

TEST_CASE("an example is learned from if its last response begins before the length") {
  const FinetuningTurn turn{{1, 2, 3}, {4, 5}};
  CHECK(can_be_learned({turn}, 4));
  CHECK_FALSE(can_be_learned({turn}, 3));
  CHECK(can_be_learned({turn, turn}, 9));
  CHECK_FALSE(can_be_learned({turn, turn}, 8));
  CHECK_FALSE(can_be_learned({{{}, {4}}}, 100));
  CHECK_FALSE(can_be_learned({turn, {{1}, {}}}, 100));
  CHECK_FALSE(can_be_learned({}, 100));
}

TEST_CASE("bytes of examples become turns; the last answer ends with 256") {
  const TempDirectory directory;
  const auto result = pack_two(directory, "c", 8);
  CHECK(result.samples == 1);
  CHECK(result.dropped_documents == 1);
  const auto checked = wt::check_dataset(directory / "set");
  REQUIRE(checked.shown.size() == 1);
  CHECK(checked.shown[0].ids == std::vector<std::int32_t>{'a', 'b', 'c', 256});
  CHECK(checked.trained == 2);
  CHECK(checked.problem_count == 0);
}

TEST_CASE("examples are checked by what a run learns of them") {
  const TempDirectory directory;
  pack_two(directory, "cd", 1024);
  wt::DataCheckOptions by_run;
  by_run.finetuning.emplace();
  by_run.seq_len = 9;
  CHECK(wt::check_dataset(directory / "set", by_run).trained == 3);  // c 256, c
  by_run.finetuning->prompts = wt::FinetuningSpec::Prompts::all;
  CHECK(wt::check_dataset(directory / "set", by_run).trained == 3 + 8);
  by_run.finetuning->prompts = wt::FinetuningSpec::Prompts::none;
  by_run.seq_len = 8;
  const auto cut = wt::check_dataset(directory / "set", by_run);
  REQUIRE(cut.problem_count == 1);
  CHECK_THAT(cut.problems.front(), Catch::Contains("sample 1: found 11 tokens, of which the first 8"));
  wt::PackOptions tokens;
  tokens.seq_len = 4;
  write_bytes(directory / "b.txt", "some text");
  wt::pack_text({directory / "b.txt"}, directory / "tokens", tokens);
  CHECK(wt::check_dataset(directory / "tokens", by_run).problem_count > 0);
}

TEST_CASE("an example of which a run learns nothing is a problem") {
  const TempDirectory directory;
  wt::MdsWriter writer(directory / "set", {{"turns", "json"}});
  for (const char* turns : {R"([{"input_ids": [1], "labels": [2]}])", R"([{"input_ids": [1, 2], "labels": []}])"})
    writer.write(std::array<std::string, 1>{turns});
  writer.finish();
  wt::DataCheckOptions by_run;
  by_run.finetuning.emplace();
  const auto checked = wt::check_dataset(directory / "set", by_run);
  REQUIRE(checked.problem_count == 1);
  CHECK_THAT(checked.problems.front(), Contains("sample 1: found no token to learn, allowed is at least one"));
  CHECK(checked.trained == 1);
  by_run.finetuning->prompts = wt::FinetuningSpec::Prompts::all;
  CHECK(wt::check_dataset(directory / "set", by_run).problem_count == 0);
}
