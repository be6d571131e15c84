// Damage to checkpoints: each kind changes what it says, in the newest one, and proves it.
#include "trainer/faults/file_damage.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;
namespace fs = std::filesystem;

namespace {

const std::string kFirst(3000, 'a'), kSecond(2000, 'b');

/// Two checkpoints of two shards, the newest of step 8, one that is half written, and one that only begins.
void checkpoints(const TempDirectory& folder) {
  for (const char* step : {"step-00000004", "step-00000008"}) {
    fs::create_directories(folder / step);
    write_bytes(folder / step / "shard-1.safetensors", kFirst);
    write_bytes(folder / step / "shard-2.safetensors", kSecond);
    write_bytes(folder / step / "manifest.json", step);
  }
  fs::create_directories(folder / "step-00000012.partial");
  fs::create_directories(folder / "step-00000012");
  write_bytes(folder / "latest", "step-00000008\n");
}

}  // namespace

TEST_CASE("each damage changes one thing of the newest checkpoint") {
  struct Expected {
    FileDamage damage;
    std::string file;
    std::string first, second, manifest, latest;  // "-": gone
  };
  std::string flipped = kFirst, zeroed = kFirst;
  flipped[1500 + 750] ^= 0x10;
  std::fill(zeroed.begin() + 1500, zeroed.end(), '\0');
  const std::string new_manifest = "step-00000008", latest = "step-00000008\n",
                    shard = "step-00000008/shard-1.safetensors";
  for (const Expected& e : {
           Expected{FileDamage::flip_bit, shard, flipped, kSecond, new_manifest, latest},
           Expected{FileDamage::zero, shard, zeroed, kSecond, new_manifest, latest},
           Expected{FileDamage::truncate, shard, kFirst.substr(0, 1500), kSecond, new_manifest, latest},
           Expected{FileDamage::remove, shard, "-", kSecond, new_manifest, latest},
           Expected{FileDamage::exchange, shard, kSecond, kFirst, new_manifest, latest},
           Expected{FileDamage::old_manifest, "step-00000008/manifest.json", kFirst, kSecond, "step-00000004", latest},
           Expected{FileDamage::stale_latest, "latest", kFirst, kSecond, new_manifest, "step-00000004\n"},
       }) {
    INFO(to_string(e.damage));
    const TempDirectory folder;
    checkpoints(folder);
    const nlohmann::json proof = damage_newest(folder.path(), e.damage);
    CHECK((proof.at("file") == e.file && proof.at("before") != proof.at("after")));
    const auto bytes = [&](const char* name) { return fs::exists(folder / name) ? read_bytes(folder / name) : "-"; };
    CHECK((bytes("step-00000008/shard-1.safetensors") == e.first));
    CHECK((bytes("step-00000008/shard-2.safetensors") == e.second));
    CHECK(bytes("step-00000008/manifest.json") == e.manifest);
    CHECK(bytes("latest") == e.latest);
    CHECK((bytes("step-00000004/shard-1.safetensors") == kFirst &&
           bytes("step-00000004/manifest.json") == "step-00000004"));
  }
}

TEST_CASE("where there is nothing to damage, it says so") {
  const TempDirectory empty;
  CHECK_THROWS_WITH(damage_newest(empty.path(), FileDamage::zero), Catch::Contains("holds no checkpoint"));
  const TempDirectory folder;
  checkpoints(folder);
  fs::remove_all(folder / "step-00000004");
  fs::remove(folder / "step-00000008/shard-2.safetensors");
  CHECK_THROWS_WITH(damage_newest(folder.path(), FileDamage::old_manifest),
                    Catch::Contains("needs an older checkpoint"));
  CHECK_THROWS_WITH(damage_newest(folder.path(), FileDamage::stale_latest),
                    Catch::Contains("needs an older checkpoint"));
  CHECK_THROWS_WITH(damage_newest(folder.path(), FileDamage::exchange),
                    Catch::Contains("needs more shards than its 1"));
}
