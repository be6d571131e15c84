// Compressions and hashes of MDS shards. The vectors were printed by Python's zstd, gzip, brotli, bz2, snappy, hashlib
// and xxhash.
#include <catch2/catch.hpp>
#include <random>

#include "configs/base/error.hpp"
#include "trainer/data/mds_compression.hpp"
#include "trainer/data/mds_hash.hpp"

using Catch::Contains;
using namespace wt;

namespace {

std::string unhexed(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::span<const std::byte> view(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

/// 0 to 15, eight times.
std::string sixteen() {
  std::string raw;
  for (int i = 0; i < 128; ++i) raw += static_cast<char>(i % 16);
  return raw;
}

struct Vector {
  const char* name;
  const char* hex;
};
const std::vector<Vector> kVectors = {
    {"zstd:7", "28b52ffd2080bd000080000102030405060708090a0b0c0d0e0f0100daa47309"},
    {"gz:9", "1f8b08000500000002ff6360646266616563e7e0e4e2e6e1e5e367a0331f005772a23480000000"},
    {"br:11", "1b7f00e82500ca90c06a0049b6f10a"},
    {"bz2:9",
     "425a68393141592653595312184b000003c0007fffa00050a60009a055404c04ce8889098a0a8f8585c6064686c707e3a3c2ee48a70a120a6"
     "2"
     "430960"},
    {"snappy", "80013c000102030405060708090a0b0c0d0e0ffe1000be1000"}};

std::string read_back(const char* name, const std::string& zip, std::uint64_t bytes) {
  return decompress_mds(mds_compression_from_string(name, "test"), view(zip), bytes, "shard.mds");
}

}  // namespace

TEST_CASE("what Python's libraries compress is read") {
  for (const Vector& vector : kVectors) {
    CAPTURE(vector.name);
    CHECK(read_back(vector.name, unhexed(vector.hex), 128) == sixteen());
  }
}

TEST_CASE("every level gives back what it was given") {
  std::mt19937 random(7);  // NOLINT: the same bytes in every run
  std::string raw;
  for (int i = 0; i < 70000; ++i) raw += static_cast<char>(random() % 7 * (random() % 2));
  std::vector<std::string> names = {"zstd", "gz", "br", "bz2", "snappy", "zstd:1", "zstd:12", "zstd:22"};
  for (const int level : {0, 1, 6, 9}) names.push_back("gz:" + std::to_string(level));
  for (const int level : {0, 1, 5, 11}) names.push_back("br:" + std::to_string(level));
  for (const int level : {1, 9}) names.push_back("bz2:" + std::to_string(level));
  for (const std::string& name : names) {
    CAPTURE(name);
    const MdsCompression compression = mds_compression_from_string(name, "test");
    CHECK(compression.name == name);
    CHECK(compression.suffix == name.substr(0, name.find(':')));
    const std::string zip = compress_mds(compression, view(raw));
    CHECK((zip.size() < raw.size() || name == "gz:0"));
    CHECK(decompress_mds(compression, view(zip), raw.size(), "shard.mds") == raw);
  }
}

TEST_CASE("gz and bz2 may be in several parts, and gz followed by zeros, as Python reads them") {
  const std::string gz = unhexed(kVectors[1].hex), bz2 = unhexed(kVectors[3].hex);
  CHECK(read_back("gz", gz + gz + std::string(9, '\0'), 256) == sixteen() + sixteen());
  CHECK(read_back("bz2", bz2 + bz2, 256) == sixteen() + sixteen());
}

TEST_CASE("a compressed shard of more or fewer bytes than the index says, cut off or damaged, is refused") {
  const std::string large(1 << 20, 'x');
  for (const Vector& vector : kVectors) {
    CAPTURE(vector.name);
    const std::string zip = unhexed(vector.hex);
    const MdsCompression compression = mds_compression_from_string(vector.name, "test");
    CHECK_THROWS_WITH(read_back(vector.name, zip, 127), Contains("shard.mds") && Contains("the 127 bytes"));
    CHECK_THROWS_WITH(read_back(vector.name, zip, 129), Contains("the 129 bytes"));
    CHECK_THROWS_WITH(read_back(vector.name, compress_mds(compression, view(large)), 100), Contains("more bytes"));
    for (std::size_t cut = 0; cut < zip.size(); ++cut)
      CHECK_THROWS_AS(read_back(vector.name, zip.substr(0, cut), 128), Error);
    CHECK_THROWS_AS(read_back(vector.name, zip + "tail", 128), Error);
    CHECK_THROWS_AS(read_back(vector.name, "no such stream", 128), Error);
  }
}

TEST_CASE("other words than Streaming's are no compression") {
  for (const char* const name : {"", "zip", "zstd:0", "zstd:23", "zstd:", "zstd:7x", "zstd:-1", "gz:10", "br:12",
                                 "bz2:0", "snappy:0", "ZSTD", "zst"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH(mds_compression_from_string(name, "index.json"),
                      Contains(std::string("index.json: compression: found '") + name + "'") && Contains("bz2[:1-9]"));
  }
}

TEST_CASE("hashes are hashlib's") {
  const std::string a = "wind", b = "tunnel";
  const std::vector<Vector> digests = {
      {"blake2b",
       "59a5864df5d27ff376f0a64470fbdd8d4b9abd9183da9beb4685e7b7af93710ace909dcd0403da2b2e13137e964840272d4b5ff86eb85ab"
       "7"
       "4b78b9b6c0907583"},
      {"blake2s", "c2783b3be24cc0d175154aafbcefbeaac5f99ff9ed5b4d6669943db599bd46eb"},
      {"md5", "0c3e9d1005a7ebd0e2d6b32afb9f518f"},
      {"sha1", "660562cc4eed0df026ed109d533ca72c76c61830"},
      {"sha224", "a1856ae4631c1b7170a795449912346dab4e06d3f561c06fe05d0200"},
      {"sha256", "329781cbee1343c5b9f9895c7d269f3714baa1e430296a86628e13def236bfdc"},
      {"sha384", "d8b4d13c5ed9370b1b3321e90483247fd77e1c30b8c166bef4e3d4818588f59f3c3478c7900e17f223b41bef090e0a6f"},
      {"sha512",
       "a145263160d07a10005919a256ab06ed0138c0c2ff86578936908d07265d7c0637103182c4cdf7d09a228cd3d5d294860e4a802ef1e6ec5"
       "0"
       "66f4a364ff13cad6"},
      {"sha3_224", "e97f6964ef876b7d3ff691c1cf6cab30455af0c3ab662365992a75f7"},
      {"sha3_256", "55ff1932d3ab670b5ae1bc67aa457bcf3f8e547a584f3901263ef3ec025324b0"},
      {"sha3_384", "d869374eb20bdcfc489b278991e3ac4ae3ac080948d3aaa1ce739d6f005cff6ea7de9626cd6fefa4b7958f4d7ea976fb"},
      {"sha3_512",
       "5c41d9f89bdea52c8fdcf7921fe5a45090bd80057653bf597bb5a0e8ef18c731fc1026b51ccc46de1f21e145fc3236a73ca6136fb70f425"
       "2"
       "3a848e671ec3da89"}};
  for (const Vector& each : digests) {
    CAPTURE(each.name);
    CHECK(is_mds_hash(each.name));
    CHECK(mds_hash(each.name, {view(a), view(b)}) == each.hex);
    CHECK_THAT(mds_hash_names(), Contains(each.name));
  }
  CHECK_FALSE(is_mds_hash("shake_128"));
  CHECK_THROWS_WITH(mds_hash("md4", {}), Contains("found 'md4', allowed are blake2b, blake2s, md5"));
}
