#include "bench/store/store_bandwidth.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "bench/store/loopback_store.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/storage/s3_store.hpp"

using namespace wt;
using Catch::Contains;

namespace {

constexpr std::int64_t kMebi = 1 << 20;

S3Store loopback_client(const LoopbackStore& server) {
  return S3Store({"loopback", ""}, {server.url() + "/loopback", "us-east-1"}, AwsCredentials{"key", "secret"});
}

}  // namespace

TEST_CASE("the store in the process takes and gives as many bytes") {
  const test::TempDirectory folder;
  LoopbackStore server;
  S3Store store = loopback_client(server);
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, 8 * kMebi + 1, 40 * kMebi + 3}) {
    test::write_bytes(folder / "out", std::string(static_cast<std::size_t>(bytes), 'x'));
    store.upload(folder / "out", "file");
    CHECK(store.size("file") == static_cast<std::uint64_t>(bytes));
    store.fetch("file", folder / "in", 60);
    CHECK(test::read_bytes(folder / "in") == test::read_bytes(folder / "out"));
    store.remove("file");
  }
}

TEST_CASE("a bench of a store has every row, beside the disk and the client, and leaves nothing") {
  const test::TempDirectory folder;
  const StoreBenchOptions options{(folder / "store").string(), folder / "local", {kMebi, 20 * kMebi}, 3, 17};
  int told = 0;
  const Profile profile = bench_store(options, [&](const std::string&) { ++told; });
  CHECK(told == 6);
  CHECK(profile.failures.empty());
  std::set<std::string> kernels;
  for (const Measurement& m : profile.measurements) {
    kernels.insert(m.kernel);
    CHECK(m.samples.size() == 3);
    CHECK(m.shape.at("ranks") == 1);
    CHECK(m.evidence.kind == Evidence::measured);
  }
  CHECK(kernels == std::set<std::string>{"checkpoint_write", "checkpoint_read", "disk_write", "disk_read",
                                         "client_write", "client_read"});
  CHECK(profile.measurements.size() == 12);
  CHECK(profile_from_json(to_json(profile), "profile").measurements.size() == 12);
  CHECK(std::filesystem::is_empty(folder / "local"));
  CHECK(std::filesystem::is_empty(folder / "store"));
}

TEST_CASE("a store that cannot be written has failed rows, and the others stand") {
  const test::TempDirectory folder;
  test::write_bytes(folder / "file", "no folder");
  const Profile profile =
      bench_store({(folder / "file/store").string(), folder / "local", {kMebi}, 3, 17}, [](const std::string&) {});
  REQUIRE(profile.failures.size() == 2);
  CHECK(profile.failures[0].name == "checkpoint_write/fp32/bytes=1048576,ranks=1");
  CHECK_THAT(profile.failures[0].error, Contains("file/store"));
  CHECK(profile.measurements.size() == 4);
}
