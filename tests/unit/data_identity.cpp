// What a data set is: other samples are seen, another place is not.
#include "trainer/data/data_identity.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "tests/fixtures/faulty_store.hpp"
#include "tests/fixtures/usage_error.hpp"
#include "trainer/data/sampler.hpp"

namespace fs = std::filesystem;
using Catch::Contains;
using namespace wt;
using namespace wt::test;

namespace {

DataIdentity identity_of(const StreamSpec& stream) { return ShardCache(dataset_of({stream})).identity(); }
DataIdentity identity_of(const fs::path& set) { return identity_of(stream_of({}, set)); }

}  // namespace

TEST_CASE("samples, sizes and hashes make a data set; its place and names do not") {
  const TempDirectory folder;
  const DataIdentity set = identity_of(write_set(folder / "a", 25, 100));
  REQUIRE(set.size() == 1);
  CHECK(set[0].samples == 25);
  CHECK(difference(set, identity_of(write_set(folder / "b", 25, 100))).empty());
  CHECK(difference(set, identity_of(stream_of(folder / "a", folder / "cache"))).empty());
  CHECK_THAT(difference(set, identity_of(write_set(folder / "more", 26, 100))),
             Contains("26 samples") && Contains("it was 25 samples"));
  CHECK_THAT(difference(set, identity_of(write_set(folder / "other", 25, 101))), Contains("with other contents"));
  const DataIdentity read = data_identity_from_json(to_json(set), "state");
  CHECK(read == set);
  CHECK(difference({}, set).empty());  // of an older checkpoint nothing is known
}

TEST_CASE("an index without hashes: samples of a local data set are looked at") {
  const TempDirectory folder;
  for (const char* codec : {"", "zstd"}) {
    CAPTURE(codec);
    const DataIdentity set = identity_of(write_set(folder / fmt::format("a{}", codec), 25, 100, codec, {}));
    CHECK(difference(set, identity_of(write_set(folder / fmt::format("b{}", codec), 25, 100, codec, {}))).empty());
    CHECK_THAT(difference(set, identity_of(write_set(folder / fmt::format("c{}", codec), 25, 101, codec, {}))),
               Contains("with other contents"));
  }
}

TEST_CASE("hashes of other kinds say nothing against one another") {
  const TempDirectory folder;
  const DataIdentity set = identity_of(write_set(folder / "a", 25, 100, "", {"sha1", "xxh3_64"}));
  const auto renamed = [&](const char* hash) {  // in the index alone
    edit(folder / "a", [&](auto& index) {
      for (auto& shard : index["shards"]) shard["raw_data"]["hashes"] = {{hash, "0123"}};
    });
    return identity_of(folder / "a");
  };
  CHECK(difference(set, renamed("md5")).empty());
  CHECK_FALSE(difference(set, renamed("sha1")).empty());
}

TEST_CASE("a sampler goes on with its data alone, and a state that knows none is accepted") {
  const TempDirectory folder;
  const auto sampler = [&](const fs::path& set) {
    const ShardCache data(dataset_of({stream_of({}, set)}));
    return Sampler(dataset_of({stream_of({}, set)}), data.shard_sizes(), {}, data.identity());
  };
  Sampler first = sampler(write_set(folder / "a", 40, 100)), other = sampler(write_set(folder / "b", 40, 101));
  first.next_batch(8);
  const SamplerState state = sampler_state_from_json(to_json(first.state()), "state");
  CHECK(state == first.state());
  CHECK_THAT(usage_error([&] { other.restore(state); }),
             Contains("found other data than the run has read") && Contains("with other contents"));
  SamplerState older = state;
  older.data.clear();
  other.restore(older);
  CHECK(other.state().data == sampler(folder / "b").state().data);  // from here on it is known
  CHECK_THAT(usage_error([&] { sampler_state_from_json({{"epoch", 0}, {"data", 1}}, "state"); }), Contains("state"));
}

TEST_CASE("a remote that is replaced is found at the next shard, whatever its index states") {
  const TempDirectory folder;
  const auto hashes = GENERATE(std::vector<std::string>{"xxh3_64"}, std::vector<std::string>{});
  const char* const codec = GENERATE("", "zstd");
  CAPTURE(hashes, codec);
  write_set(folder / "a", 40, 100, codec, hashes);
  StreamSpec remote = stream_of(folder / "a", folder / "cache");
  remote.download_retry = 0;
  const ShardCache cache(dataset_of({remote}));
  check_all(cache, 100, 10);
  fs::remove_all(folder / "a");
  const int samples = GENERATE(40, 55, 8);
  if (samples == 40 && hashes.empty()) return;  // where sizes are the same, the index is, too
  write_set(folder / "a", samples, 7000, codec, hashes);
  CHECK_THAT(usage_error([&] { cache.tokens(35); }), Contains("the data set was replaced while it was read"));
  CHECK_FALSE(fs::exists(folder / "cache/shard.00003.mds"));
}

TEST_CASE("a local data set that is replaced is found at the next shard") {
  const TempDirectory folder;
  write_set(folder / "a", 40, 100, "", {"sha1"});  // which opening does not compute
  const ShardCache cache(dataset_of({stream_of({}, folder / "a")}));
  check_all(cache, 100, 10);
  fs::remove_all(folder / "a");
  write_set(folder / "a", 40, 101, "", {"sha1"});
  CHECK_THAT(usage_error([&] { cache.tokens(35); }), Contains("the data set was replaced while it was read"));
}
