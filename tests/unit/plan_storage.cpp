// Saves and restores of a plan whose storage was measured: their times follow from the rows, and the plan says so.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/files/offer.hpp"
#include "configs/files/study_keys.hpp"
#include "planner/plan/checkpoint_times.hpp"
#include "tests/fixtures/small_plan.hpp"
#include "tests/fixtures/storage_rows.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// The small study with these rows among its profiles, and more keys.
PlanInputs with_rows(const Profile& rows, const std::string& keys = "") {
  const TempDirectory folder;
  write_profile(rows, folder / "storage.json");
  return inputs_of(kSmallStudy + "profiles: ['" + (folder / "storage.json").string() + "']\n" + keys);
}

CheckpointTimes times_of_shards(const PlanInputs& inputs, std::int64_t shard) {
  Layout layout;
  layout.shard = shard, layout.replicate = 16 / shard;
  return checkpoint_times(inputs, layout);
}

const StorageLaw kOneNode{.latency_s = 0.5, .rank_Bps = 1e9, .node_Bps = 5e9, .read = 2};
const std::vector<std::int64_t> kRanks{1, 2, 4, 8};

}  // namespace

TEST_CASE("a save by as many nodes as were measured takes latency and bytes over their rate") {
  const PlanInputs inputs = with_rows(storage_profile(kOneNode, kRanks));
  CHECK(inputs.study.checkpoint.rates_note.empty());
  const CheckpointTimes t = times_of_shards(inputs, 8);
  CHECK(t.persist_s.value == Approx(0.5 + t.total_bytes / 5e9));
  CHECK(t.persist_s.evidence.kind == Evidence::measured);
  CHECK_THAT(t.persist_s.evidence.source,
             Catch::Contains("12 rows of checkpoint_write, up to 8 ranks on each of 1 node"));
  const double broadcast_s = t.reload_s.value - (0.25 + t.total_bytes / 10e9);
  CHECK(broadcast_s > 0);
  CHECK(broadcast_s < 1);
  CHECK(t.reload_s.evidence.kind == Evidence::measured);
  PlanInputs slower = inputs;
  slower.study.scale.storage_bandwidth = 0.5;
  CHECK(times_of_shards(slower, 8).persist_s.value == Approx(0.5 + t.total_bytes / 2.5e9));
}

TEST_CASE("more nodes than were measured get as much each, up to what the cluster says of all") {
  PlanInputs inputs = with_rows(storage_profile(kOneNode, kRanks));
  const CheckpointTimes t = times_of_shards(inputs, 16);
  CHECK(t.persist_s.value == Approx(0.5 + t.total_bytes / 10e9));
  CHECK(t.persist_s.evidence.kind == Evidence::derived);
  CHECK(t.persist_s.evidence.root_kind() == Evidence::measured);
  CHECK_THAT(t.persist_s.evidence.source, Catch::Contains("2 nodes at once get as much each"));
  inputs.study.cluster.storage_write_Bps = 8e9;
  const CheckpointTimes bound = times_of_shards(inputs, 16);
  CHECK(bound.persist_s.value == Approx(0.5 + t.total_bytes / 8e9));
  CHECK(bound.persist_s.evidence.kind == Evidence::assumed);  // as the preset's storage is
  inputs.study.cluster.storage_write_Bps = 1e9;               // less than one node was seen to get
  CHECK(times_of_shards(inputs, 16).persist_s.value == Approx(0.5 + t.total_bytes / 5e9));
}

TEST_CASE("a limit of the store that several nodes showed counts for any number of them") {
  StorageLaw law = kOneNode;
  law.all_Bps = 6e9;
  Profile rows = storage_profile(law, kRanks);
  for (const Measurement& m : storage_profile(law, {16}, 2).measurements) rows.measurements.push_back(m);
  const PlanInputs inputs = with_rows(rows);
  const CheckpointTimes t = times_of_shards(inputs, 16);
  CHECK(t.persist_s.value == Approx(0.5 + t.total_bytes / 6e9));
  CHECK(t.persist_s.evidence.kind == Evidence::measured);
  CHECK(times_of_shards(inputs, 8).persist_s.value == Approx(0.5 + t.total_bytes / 5e9));
}

TEST_CASE("rows count for the store that saves go to, and a plan says where nothing was measured") {
  Profile bucket = storage_profile(kOneNode, kRanks);
  bucket.fingerprint["run.store"] = "s3://states/bench";
  const double by_cluster_s = times_of_shards(inputs_of(kSmallStudy), 8).persist_s.value;
  const PlanInputs elsewhere = with_rows(bucket);
  CHECK(times_of_shards(elsewhere, 8).persist_s.value == by_cluster_s);
  CHECK_THAT(elsewhere.study.checkpoint.rates_note,
             Catch::Contains("measured s3://states/bench, and saves go to a file system"));
  const PlanInputs there = with_rows(bucket, "checkpoint: {store: 's3://states/olmoe'}\n");
  CHECK(times_of_shards(there, 8).persist_s.evidence.kind == Evidence::measured);
  CHECK_THAT(inputs_of(kSmallStudy).study.checkpoint.rates_note, Catch::Contains("no rows of a file system"));
  for (const char* store : {"states", "://states", "s3://", "s3:///runs"})
    CHECK_THROWS_WITH(inputs_of(kSmallStudy + "checkpoint: {store: '" + store + "'}\n"),
                      Catch::Contains("store") && Catch::Contains("s3://bucket/prefix"));
}

TEST_CASE("a storage that is set by hand counts in place of what was measured") {
  const TempDirectory folder;
  write_profile(storage_profile(kOneNode, kRanks), folder / "storage.json");
  const std::string study = kSmallStudy + "profiles: ['" + (folder / "storage.json").string() + "']\n";
  const PlanInputs inputs = inputs_of(set_study_key(study, "cluster.storage.node_write", "1GB/s", "study.yaml"));
  const CheckpointTimes t = times_of_shards(inputs, 8);
  CHECK(t.persist_s.value == Approx(t.total_bytes / 1e9));
  CHECK_THAT(inputs.study.checkpoint.rates_note, Catch::Contains("set by hand"));
}

TEST_CASE("rows of the study's cluster say nothing of an offer's storage") {
  const TempDirectory folder;
  write_profile(storage_profile(kOneNode, kRanks), folder / "storage.json");
  const StudySpec study =
      study_from_text(kSmallStudy + "profiles: ['" + (folder / "storage.json").string() + "']\n", "study.yaml");
  OfferSpec offer;
  offer.name = "here", offer.cluster = study.cluster, offer.gpus = 16;
  CHECK(read_plan_inputs(study_on(study, offer), false).study.checkpoint.rates.write.measured());
  offer.cluster = read_cluster("aws-p5");  // of the same GPU, so that the study's profiles count
  const PlanInputs there = read_plan_inputs(study_on(study, offer), false);
  CHECK_FALSE(there.study.checkpoint.rates.write.measured());
  CHECK_THAT(there.study.checkpoint.rates_note, Catch::Contains("another cluster's storage"));
}

TEST_CASE("a measured restore counts in place of the failure preset's, shorter or longer") {
  const auto reload = [](const PlanInputs& inputs) {
    Layout layout;
    layout.shard = 16;
    return cadence_input_of(inputs, layout, checkpoint_times(inputs, layout), 1, inputs.failures).recovery.reload_s;
  };
  const double preset_s = inputs_of(kSmallStudy).failures.recovery.reload_s.value;
  REQUIRE(reload(inputs_of(kSmallStudy)).value == preset_s);
  const SourcedNumber faster = reload(with_rows(storage_profile(kOneNode, kRanks)));
  CHECK(faster.value < preset_s);
  CHECK_THAT(faster.evidence.source, Catch::Contains("rows of checkpoint_read"));
}

TEST_CASE("no layout saves faster than equal shares on all nodes, which bound the search") {
  const PlanInputs inputs = with_rows(storage_profile(kOneNode, kRanks));
  const StudySpec& s = inputs.study;
  const double total = s.checkpoint.bytes_per_parameter * static_cast<double>(s.model.total_parameters());
  const CheckpointSeconds fewest =
      checkpoint_seconds(s, {0.95 * total / 16, 0.95 * total / 2, s.cluster.nodes, s.cluster.gpus_per_node});
  for (const std::int64_t shard : {1, 2, 4, 8, 16}) {
    const CheckpointTimes t = times_of_shards(inputs, shard);
    CHECK(fewest.persist <= t.persist_s.value);
    CHECK(fewest.read <= t.reload_s.value);
  }
}

TEST_CASE("plan.json says that a save was measured") {
  const PlanInputs inputs = with_rows(storage_profile(kOneNode, kRanks), "");
  PlanInputs small = inputs;
  small.study.search.shard_sizes = {8};
  small.study.search.pipeline_degrees = {1};  // two replicas: one node saves, as was measured
  const Plan plan = make_plan(small, {}, 4);
  const nlohmann::json persist = plan_json(small, plan).at("cadence").at("persist_s");
  CHECK(persist.at("evidence") == "measured");
  CHECK(persist.at("value").get<double>() == Approx(0.5 + plan.schedule.checkpoint.total_bytes / 5e9));
}
