// windtunnel health --fabric as a person and a launcher start it, and what a run's metrics tell health --watch.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "bench/health/observation.hpp"
#include "tests/fixtures/launched_ranks.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/trainer_fixture.hpp"
#include "tests/fixtures/windtunnel.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

void check_link(const LinkObservation& link, std::size_t repetitions) {
  CHECK(link.seconds.size() == repetitions);
  CHECK(link.wrong_results == 0);
  for (double s : link.seconds) CHECK((s > 0 && std::isfinite(s)));
}

const std::set<std::int64_t> kPayloads{64 << 10, 1 << 20, 16 << 20};

}  // namespace

TEST_CASE("four local ranks are a ring of four nodes, and the judge takes what they write") {
  const TempDirectory folder;
  const fs::path file = folder / "fleet.json";
  const Ended ended = windtunnel("health --fabric --ranks 4 --quick -o " + file.string());
  INFO(ended.said);
  CHECK((ended.status == 0 || ended.status == 1));  // times of shared cores are what they are
  CHECK_THAT(ended.said, Contains("All-reduces between neighbouring nodes") && Contains("4 pairs and rails"));

  const FleetObservation fleet = read_fleet({file});
  REQUIRE(fleet.nodes.size() == 4);
  std::map<std::pair<std::string, std::string>, std::set<std::int64_t>> payloads;
  for (const LinkObservation& link : fleet.links) {
    check_link(link, 7);
    CHECK(link.rail.empty());
    payloads[std::minmax(link.a, link.b)].insert(link.bytes);
  }
  CHECK(fleet.links.size() == 12);
  REQUIRE(payloads.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string &a = fleet.nodes[i].name, &b = fleet.nodes[(i + 1) % 4].name;
    CHECK_THAT(a, Catch::EndsWith("/rank-" + std::to_string(i)));
    CHECK(payloads[std::minmax(a, b)] == kPayloads);
  }
  const Ended judged = windtunnel("health judge --json " + file.string());
  CHECK(judged.status == ended.status);
  CHECK(nlohmann::json::parse(judged.said).at("payload").at("nodes").size() == 4);
}

namespace {

/// Four ranks of two nodes, left and right, as a launcher starts them; each rank that writes writes fleet-RANK.json.
std::vector<Ended> two_nodes(const fs::path& folder, const fs::path& storage_of_left,
                             const fs::path& storage_of_right) {
  const std::string port = std::to_string(free_port());
  std::vector<Started> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    Launch launch;
    launch.environment = {
        {"RANK", std::to_string(rank)}, {"WORLD_SIZE", "4"},   {"LOCAL_RANK", std::to_string(rank % 2)},
        {"MASTER_ADDR", "127.0.0.1"},   {"MASTER_PORT", port}, {"WINDTUNNEL_NODE", rank < 2 ? "left" : "right"},
        {"CUDA_VISIBLE_DEVICES", ""}};
    ranks.push_back(start_trainer({"health", "-o", (folder / ("fleet-" + std::to_string(rank) + ".json")).string(),
                                   "--quick", "--storage", (rank < 2 ? storage_of_left : storage_of_right).string()},
                                  launch));
  }
  std::vector<Ended> out;
  for (const Started& rank : ranks) out.push_back(wait_for(rank));
  return out;
}

}  // namespace

TEST_CASE("under a launcher ranks of one name are a node, which its first rank looks at, and each place a rail") {
  const TempDirectory folder;
  for (const Ended& ended : two_nodes(folder.path(), folder.path(), folder.path())) {
    INFO(ended.said);
    CHECK(ended.status == 0);
  }
  CHECK_FALSE(fs::exists(folder / "fleet-1.json"));
  const FleetObservation fleet = read_fleet({folder / "fleet-0.json"});
  REQUIRE(fleet.nodes.size() == 2);
  CHECK(fleet.nodes[0].name == "left");
  CHECK(fleet.nodes[1].name == "right");
  for (const NodeObservation& node : fleet.nodes) {
    REQUIRE_FALSE(node.devices.empty());
    CHECK(node.devices.front().stress_s.size() == 7);
    CHECK_FALSE(node.storage.write_Bps.empty());
  }
  std::map<std::string, std::set<std::int64_t>> rails;
  for (const LinkObservation& link : fleet.links) check_link(link, 7), rails[link.rail].insert(link.bytes);
  CHECK(rails == std::map<std::string, std::set<std::int64_t>>{{"0", kPayloads}, {"1", kPayloads}});
}

TEST_CASE("a node whose storage fails is named, and the check goes on") {
  const TempDirectory folder;
  for (const Ended& ended : two_nodes(folder.path(), folder.path(), folder / "nowhere")) {
    INFO(ended.said);
    CHECK(ended.status == 0);
  }
  const FleetObservation fleet = read_fleet({folder / "fleet-0.json"});
  REQUIRE(fleet.nodes.size() == 2);
  CHECK(fleet.nodes[0].failures.empty());
  CHECK_FALSE(fleet.nodes[1].devices.empty());
  REQUIRE(fleet.nodes[1].failures.size() == 1);
  CHECK_THAT(fleet.nodes[1].failures[0], Catch::StartsWith("rank 2: ") && Contains("nowhere") && Contains("--storage"));
  CHECK(fleet.links.size() == 6);  // its ranks can still add up
  const Ended judged = windtunnel("health judge " + (folder / "fleet-0.json").string());
  CHECK(judged.status == 1);
  CHECK_THAT(judged.said, Contains("measurement") && Contains("nowhere"));

  two_nodes(folder.path(), folder / "nowhere", folder / "nowhere");
  const Ended both = windtunnel("health judge " + (folder / "fleet-0.json").string());
  CHECK(both.status == 1);
  CHECK_THAT(both.said, Contains("2 of 2 nodes could not be measured"));
}

TEST_CASE("health --fabric refuses what it cannot do") {
  const auto refused = [](const std::string& arguments, const std::string& said, const std::string& before = "") {
    const Ended ended = windtunnel("health " + arguments, before);
    INFO(arguments << ": " << ended.said);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, Contains(said));
  };
  refused("--fabric --ranks 1", "--ranks");
  refused("--fabric --ranks many", "--ranks");
  refused("--ranks 4", "--fabric");
  refused("--fabric --ranks 2 --dcgm x.txt", "--dcgm");
  refused("--fabric", "neither GPUs nor a launcher", "CUDA_VISIBLE_DEVICES=");
  refused("--fabric --ranks 2", "is not built", "WINDTUNNEL_TRAIN=/nowhere/windtunnel-train");
  refused("--fabric --ranks 2", "which has started the ranks", "RANK=0 WORLD_SIZE=1");
}

TEST_CASE("a run's metrics say how uneven its routing is, by the rows that routing.csv records") {
  RunSpec run = with_layout(small_run(), 1, 4, 4);
  run.steps = 6;
  const fs::path folder = trained(run);
  const TrainingObservation seen = read_training(folder, 1e10);
  REQUIRE(seen.steps.size() == 6);

  std::map<std::int64_t, std::map<std::int64_t, std::vector<double>>>
      rows;  // step, layer: rows of rank 0 to each expert rank
  std::ifstream csv(folder / "routing.csv");
  std::string line;
  std::getline(csv, line);
  while (std::getline(csv, line)) {
    std::istringstream cells(line);
    std::vector<std::int64_t> values;
    for (std::string cell; std::getline(cells, cell, ',');) values.push_back(std::stoll(cell));
    if (values[3] != 0) continue;
    std::vector<double>& ranks = rows[values[0]].try_emplace(values[2], 4, 0.0).first->second;
    for (std::size_t expert = 0; expert < 8; ++expert) ranks[expert / 2] += static_cast<double>(values[4 + expert]);
  }
  for (const TrainingStep& step : seen.steps) {
    double sum = 0;
    for (const auto& [layer, ranks] : rows.at(step.step)) {
      const double all = ranks[0] + ranks[1] + ranks[2] + ranks[3];
      sum += 4 * std::max({ranks[0], ranks[1], ranks[2], ranks[3]}) / all;
    }
    REQUIRE(step.expert_imbalance.has_value());
    CHECK(*step.expert_imbalance == Approx(sum / 3));
    CHECK_FALSE(step.mfu.has_value());  // nobody knows the peak of this CPU
  }
}
