// The sum of samples in an index, whose text comes in pieces of any size.
#include "configs/files/index_samples.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace wt;

namespace {

std::optional<std::int64_t> samples_in(const std::string& text) {
  std::istringstream in(text);
  return samples_in_index(in);
}

/// As Streaming writes one; what looks like samples and is none stands in every place.
nlohmann::json shard(std::int64_t samples) {
  const nlohmann::json file = {{"basename", "samples \\\" } ]"}, {"bytes", 70}, {"hashes", {{"samples", "7"}}}};
  return {{"column_names", {"samples", "tokens"}},
          {"raw_data", file},
          {"zip_data", {{"samples", 5}, {"file", file}}},
          {"samples", samples},
          {"size_limit", 9},
          {"version", 2}};
}

}  // namespace

TEST_CASE("samples of all shards are counted, and no other number of that name") {
  nlohmann::json index = {{"samples", 11}, {"shards", {shard(3), shard(0), shard(40)}}, {"version", 2}};
  index["others"] = {{{"samples", 100}}};
  index["zones"] = {{"shards", {shard(1000)}}};
  for (const int indent : {-1, 1}) CHECK(samples_in(index.dump(indent)) == 43);
  CHECK(samples_in(R"({"shards": [{"samples": 12}], "version": 2})") == 12);
}

TEST_CASE("an index longer than what is read at once is counted as a whole, wherever a piece ends") {
  nlohmann::json shards = nlohmann::json::array();
  for (int i = 0; i < 20'000; ++i) shards.push_back(shard(i));
  for (const std::size_t spaces : {0, 1, 2, 3, 5, 8, 13, 21, 34, 55}) {
    const std::string text = nlohmann::json{{"shards", shards}, {"version", 2}}.dump();
    REQUIRE(text.size() > (std::size_t{4} << 20));
    CHECK(samples_in(std::string(spaces, ' ') + text) == 20'000 / 2 * 19'999);
  }
}

TEST_CASE("what is no whole index has no samples") {
  const std::string whole = nlohmann::json{{"shards", {shard(3), shard(4)}}, {"version", 2}}.dump();
  REQUIRE(samples_in(whole) == 7);
  for (std::size_t end = 0; end < whole.size(); ++end) {
    INFO(whole.substr(0, end));
    CHECK_FALSE(samples_in(whole.substr(0, end)));
  }
  for (const char* text :
       {"", "[]", "{}", "7", "null", R"({"shards": []})", R"({"shards": {"samples": 3}})",
        R"({"shards": [{"samples": 3}, {"version": 2}]})", R"({"shards": [{"samples": "3"}]})",
        R"({"shards": [{"samples": [3]}]})", R"({"shards": [{"samples": -3}]})", R"({"shards": [{"samples": 3.5}]})",
        R"({"shards": [{"samples": null}]})", R"({"shards": [{"samples": 99999999999999999999}]})",
        R"({"shards": [{"samples": 3}}])", R"({"shards": [{"samples": 3}]} {)"}) {
    INFO(text);
    CHECK_FALSE(samples_in(text));
  }
  CHECK_FALSE(samples_in(std::string(1000, '[')));
  CHECK_FALSE(samples_in(fmt::format(R"({{"a": {:[<1000}{:]<1000}}})", "", "")));
}
