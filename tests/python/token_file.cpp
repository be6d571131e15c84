// What streaming_shards_test.py runs:
//   token_file read LOCAL [REMOTE [HASH]]   every sample of a data set, one line of token ids each
//   token_file write DIR COMPRESSION HASHES LIMIT   samples from such lines; HASHES with commas, "-" for none
//   token_file merge DIR                    the index over the indexes of subfolders
#include <fmt/format.h>

#include <iostream>
#include <sstream>

#include "configs/base/error.hpp"
#include "tests/fixtures/mds_sets.hpp"
#include "trainer/data/mds_writer.hpp"
#include "trainer/data/shard_cache.hpp"

using namespace wt;

namespace {

void read(const std::vector<std::string>& words) {
  DatasetSpec spec;
  spec.streams.emplace_back();
  spec.streams[0].local = words.at(2);
  if (words.size() > 3 && words[3] != "-") spec.streams[0].remote = words[3];
  if (words.size() > 4) spec.streams[0].validate_hash = words[4];
  const ShardCache cache(spec);
  for (std::int64_t id = 0; id < cache.size(); ++id) std::cout << fmt::format("{}\n", fmt::join(cache.tokens(id), " "));
}

void write(const std::vector<std::string>& words) {
  const auto given = [](const std::string& word) { return word == "-" ? std::string() : word; };
  MdsWriterOptions options;
  options.compression = given(words.at(3));
  options.hashes.clear();
  std::istringstream hashes(given(words.at(4)));
  for (std::string hash; std::getline(hashes, hash, ',');) options.hashes.push_back(hash);
  options.size_limit = std::stoull(words.at(5));
  MdsWriter writer(words.at(2), {{"tokens", "ndarray:uint16"}}, options);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream numbers(line);
    std::vector<std::uint16_t> tokens;
    for (std::uint16_t token = 0; numbers >> token;) tokens.push_back(token);
    writer.write_tokens(tokens);
  }
  writer.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  try {
    const std::string& what = words.at(1);
    if (what == "read") read(words);
    if (what == "write") write(words);
    if (what == "merge") wt::test::merge_mds_indexes(words.at(2));
    return 0;
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return error.exit_status();
  }
}
