// The tokenizer that goes beside exported weights. tests/python/tokenizer_test.py reads it with Hugging Face's readers.
#include "trainer/data/tokenizer_files.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/fixtures/temp_directory.hpp"
#include "trainer/data/pack.hpp"

namespace fs = std::filesystem;
using Catch::Contains;
using namespace wt;
using namespace wt::test;
using nlohmann::json;

namespace {

/// A data set of bytes.
fs::path packed(const TempDirectory& directory, const std::string& name) {
  write_bytes(directory / "text", std::string(64, 'a'));
  PackOptions options;
  options.seq_len = 4;
  pack_text({directory / "text"}, directory / name, options);
  return directory / name;
}

fs::path made(const fs::path& folder) {
  fs::create_directories(folder);
  return folder;
}

}  // namespace

TEST_CASE("the byte tokenizer: GPT-2's letter of each byte has the byte's value, the end of text 256") {
  const TempDirectory directory;
  write_byte_tokenizer(directory.path());
  const json found = json::parse(read_bytes(directory / "tokenizer.json"));
  const json& vocabulary = found["model"]["vocab"];
  CHECK(vocabulary.size() == 257);
  CHECK(vocabulary["A"] == 65);
  CHECK(vocabulary["~"] == 126);
  CHECK(vocabulary["\u0120"] == 32);    // a blank: 33rd of those that cannot be seen
  CHECK(vocabulary["\u0100"] == 0);     // the first of them
  CHECK(vocabulary["\u0143"] == 0xAD);  // the last of them, 256 + 67
  CHECK(vocabulary["\u00FF"] == 0xFF);
  CHECK(vocabulary["<|endoftext|>"] == 256);
  CHECK(found["model"]["merges"].empty());
  CHECK(found["pre_tokenizer"]["use_regex"] == false);
  std::set<int> ids;
  for (const auto& [letter, id] : vocabulary.items()) ids.insert(id.get<int>());
  CHECK(ids.size() == 257);
  CHECK(json::parse(read_bytes(directory / "tokenizer_config.json"))["eos_token"] == "<|endoftext|>");
}

TEST_CASE("weights trained on bytes get the byte tokenizer") {
  const TempDirectory directory;
  const fs::path data = packed(directory, "data"), weights = made(directory / "weights");
  CHECK(export_tokenizer({data, data}, 264, weights) == "wrote the byte tokenizer");
  CHECK(fs::exists(weights / "tokenizer.json"));
}

TEST_CASE("no tokenizer is guessed") {
  const TempDirectory directory;
  const fs::path data = packed(directory, "data"), weights = made(directory / "weights");
  for (const std::int64_t vocabulary : {256, 513, 50432})
    CHECK_THAT(export_tokenizer({data}, vocabulary, weights), Contains("no tokenizer is written: " + data.string()));
  const fs::path foreign = made(directory / "foreign");
  CHECK_THAT(export_tokenizer({data, foreign}, 264, weights), Contains(foreign.string() + " keeps none"));
  for (const char* index : {"{", "{}", R"({"shards": [{"column_encodings": ["ndarray:int32"]}]})",
                            R"({"shards": [{"column_encodings": ["str", "ndarray:uint16"]}]})"}) {
    write_bytes(foreign / "index.json", index);
    CHECK_THAT(export_tokenizer({foreign}, 264, weights), Contains("no tokenizer is written"));
  }
  CHECK_THAT(export_tokenizer({}, 264, weights), Contains("there is no data set"));
  CHECK(fs::is_empty(weights));
}

TEST_CASE("a data set's own tokenizer is copied, its data and no code") {
  const TempDirectory directory;
  const fs::path data = packed(directory, "data"), weights = made(directory / "weights");
  const fs::path own = made(data / "tokenizer");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "tokenization_mine.py"})
    write_bytes(own / name, name);
  CHECK_THAT(export_tokenizer({data}, 50432, weights), Contains("wrote the tokenizer of " + own.string()));
  CHECK(read_bytes(weights / "tokenizer.json") == "tokenizer.json");
  CHECK(read_bytes(weights / "tokenizer_config.json") == "tokenizer_config.json");
  CHECK_FALSE(fs::exists(weights / "tokenization_mine.py"));
}

TEST_CASE("streams with different tokenizers have none together") {
  const TempDirectory directory;
  const fs::path weights = made(directory / "weights");
  for (const char* name : {"a", "b", "c"}) {
    made(directory / name / "tokenizer");
    write_bytes(directory / name / "tokenizer/tokenizer.json", name == std::string("c") ? "other" : "same");
  }
  CHECK_THAT(export_tokenizer({directory / "a", directory / "b"}, 300, weights), Contains("wrote the tokenizer of"));
  CHECK(export_tokenizer({directory / "a", directory / "c"}, 300, weights) ==
        "no tokenizer is written: those of " + (directory / "a/tokenizer").string() + " and " +
            (directory / "c/tokenizer").string() + " differ");
}
