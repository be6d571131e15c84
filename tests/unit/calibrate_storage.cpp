// Storage rows of profiles: rates and latency of a known storage come back, stores stay apart, and bad rows are
// refused.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "sim/cost/calibrate/calibrate.hpp"
#include "tests/fixtures/storage_rows.hpp"
#include "tests/fixtures/synthetic_profile.hpp"

using namespace wt;
using namespace wt::test;

namespace {

StorageRates calibrated(const Profile& profile) {
  const MachineData data = calibrate({profile}).model.data();
  REQUIRE(data.storage.size() == 1);
  return data.storage.front();
}

}  // namespace

TEST_CASE("latency and bandwidth of a storage come back from its rows") {
  const Profile profile = storage_profile({.latency_s = 0.02, .rank_Bps = 1e9}, {1});
  const StorageRate write = calibrated(profile).write;
  CHECK(write.latency_s == Approx(0.02));
  REQUIRE(write.node.size() == 1);
  CHECK(write.node[0].ranks == 1);
  CHECK(write.node[0].Bps == Approx(1e9));
  CHECK(write.nodes == 1);
  CHECK_FALSE(write.limited);
  CHECK(write.largest_bytes == 1 << 30);
  CHECK(write.evidence.kind == Evidence::measured);
  CHECK_THAT(write.evidence.source, Catch::Contains("3 rows of checkpoint_write") && Catch::Contains("1.00 GiB"));
}

TEST_CASE("several numbers of ranks show what a node gets at most") {
  const StorageRate write =
      calibrated(storage_profile({.latency_s = 0.01, .rank_Bps = 1e9, .node_Bps = 3e9}, {1, 2, 4, 8})).write;
  CHECK(write.latency_s == Approx(0.01));
  for (const auto& [ranks, Bps] : {std::pair{1, 1e9}, {2, 2e9}, {3, 2.5e9}, {4, 3e9}, {8, 3e9}, {64, 3e9}})
    CHECK(write.node_Bps(ranks) == Approx(Bps));
  CHECK_FALSE(write.limited);  // of one node nobody learns what the store gives all of them
  CHECK(write.all_Bps == Approx(3e9));
}

TEST_CASE("fewer ranks than were measured get their share, and more ranks never less") {
  Profile profile = storage_profile({.rank_Bps = 1e9}, {4});
  CHECK(calibrated(profile).write.node_Bps(1) == Approx(1e9));
  const Profile slower = storage_profile({.rank_Bps = 1e9, .node_Bps = 3e9}, {8});
  profile.measurements.insert(profile.measurements.end(), slower.measurements.begin(), slower.measurements.end());
  CHECK(calibrated(profile).write.node_Bps(8) == Approx(4e9));  // a node with idle ranks
}

TEST_CASE("several nodes show the limit of the store, or that none was met") {
  const StorageLaw storage{.rank_Bps = 1e9, .node_Bps = 4e9, .all_Bps = 10e9};
  Profile profile = storage_profile(storage, {4});
  for (const Measurement& m : storage_profile(storage, {8}, 2).measurements) profile.measurements.push_back(m);
  StorageRate write = calibrated(profile).write;
  CHECK(write.nodes == 2);
  CHECK(write.all_Bps == Approx(8e9));
  CHECK_FALSE(write.limited);
  for (const Measurement& m : storage_profile(storage, {16}, 4).measurements) profile.measurements.push_back(m);
  write = calibrated(profile).write;
  CHECK(write.nodes == 4);
  CHECK(write.all_Bps == Approx(10e9));
  CHECK(write.limited);
  CHECK(write.node_Bps(4) == Approx(4e9));
  const CalibrationResult result = calibrate({profile});
  CHECK(result.residuals.at(0).name == "checkpoint_read");
  CHECK(result.residuals.at(1).how == "storage");
  for (const ClassResidual& residual : result.residuals) CHECK(residual.p90_error < 1e-6);
}

TEST_CASE("reads and writes have rates of their own, and a machine file keeps both") {
  Profile profile = storage_profile({.rank_Bps = 1e9, .read = 2.5}, {1, 2});
  const MachineData data = calibrate({profile}).model.data();
  CHECK(data.storage.at(0).read.node_Bps(2) == Approx(5e9));
  CHECK(data.storage_only());
  const nlohmann::json document = to_json(data);
  const MachineData back = machine_from_json(document, "m.json");
  CHECK(to_json(back) == document);
  CHECK(back.storage.at(0).write.node_Bps(2) == Approx(2e9));
  CHECK(back.storage.at(0).write.evidence.source == data.storage.at(0).write.evidence.source);
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"nodes", 0},
                                   {"all_Bps", 0},
                                   {"node", nlohmann::json::array()},
                                   {"rows", -1},
                                   {"speed", 1},
                                   {"latency_s", -1}}) {
    nlohmann::json broken = document;
    broken["storage"][0]["write"][key] = value;
    CHECK_THROWS_WITH(machine_from_json(broken, "m.json"), Catch::Contains("m.json: /storage/0/write"));
  }
  nlohmann::json falling = document;
  std::swap(falling["storage"][0]["read"]["node"][0]["Bps"], falling["storage"][0]["read"]["node"][1]["Bps"]);
  CHECK_THROWS_WITH(machine_from_json(falling, "m.json"), Catch::Contains("do not fall"));
}

TEST_CASE("stores stay apart by their bucket, and a profile of storage alone says nothing of the host") {
  Profile machine = synthetic_profile(), bucket = storage_profile({.rank_Bps = 2e8}, {1});
  for (const Measurement& m : storage_profile({.rank_Bps = 1e9}, {1}).measurements) machine.measurements.push_back(m);
  bucket.fingerprint = {{"host", "asynchronous"}, {"run.store", "s3://states/bench"}};
  Measurement disk = bucket.measurements.front();
  disk.kernel = "disk_write";  // timed beside the store
  bucket.measurements.push_back(disk);
  const MachineData data = calibrate({machine, bucket}).model.data();
  CHECK(data.synchronous_host);
  CHECK(data.fingerprint.count("run.store") == 0);
  REQUIRE(data.storage.size() == 2);
  CHECK(data.storage[0].store.empty());
  CHECK(data.storage[0].write.node_Bps(1) == Approx(1e9));
  CHECK(data.storage[1].store == "s3://states/bench");
  CHECK(data.storage[1].write.node_Bps(1) == Approx(2e8));
  CHECK(same_store("s3://states/bench", "s3://states/runs/dbrx"));
  CHECK_FALSE(same_store("s3://states/bench", "s3://state"));
  CHECK_FALSE(same_store("", "s3://states"));
  bucket.fingerprint["run.store"] = "/scratch/bench";  // a folder is no store
  CHECK(calibrate({machine, bucket}).model.data().storage.size() == 1);
  for (Measurement& m : bucket.measurements) m.backend = "s3://states";  // a row says it itself
  CHECK(calibrate({machine, bucket}).model.data().storage.size() == 2);
}

TEST_CASE("files that stay in memory are no storage") {
  Profile profile = storage_profile({.rank_Bps = 1e9}, {1});
  for (Measurement& m : profile.measurements)
    if (m.kernel == "checkpoint_read") m.counters["cold"] = 0;
  const CalibrationResult result = calibrate({profile});
  CHECK(result.model.data().storage.empty());
  REQUIRE(result.notes.size() == 1);
  CHECK_THAT(result.notes[0], Catch::Contains("3 rows of checkpoint_write") && Catch::Contains("stay in memory"));
  profile.measurements.back().counters["cold"] = 1;  // one of them was read from the disk
  CHECK(calibrated(profile).read.rows == 1);
  CHECK(calibrated(profile).write.rows == 3);
}

TEST_CASE("rows of storage that cannot be are refused by name") {
  const auto refused = [](const auto& change, const char* says) {
    Profile profile = storage_profile({.rank_Bps = 1e9}, {2});
    change(profile.measurements.front());
    CHECK_THROWS_WITH(calibrate({profile}), Catch::Contains("checkpoint_write") && Catch::Contains(says));
  };
  refused([](Measurement& m) { m.shape.erase("bytes"); }, "'bytes'");
  refused([](Measurement& m) { m.shape.erase("ranks"); }, "'ranks'");
  refused([](Measurement& m) { m.shape["bytes"] = 0; }, "0 bytes");
  refused([](Measurement& m) { m.shape["ranks"] = 0; }, "0 ranks");
  refused([](Measurement& m) { m.shape["nodes"] = 3; }, "on 3 nodes");
  refused([](Measurement& m) { m.samples = {0}; }, "median of 0 s");
  refused([](Measurement& m) { m.unit = "GB/s"; }, "unit 'GB/s'");
}
