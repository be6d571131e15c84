// windtunnel health as a user meets it: a fleet judged from files, this node checked, a run watched, refusals.
#include <catch2/catch.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "bench/health/observation.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/golden.hpp"
#include "tests/fixtures/synthetic_fleet.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/windtunnel.hpp"

using Catch::Matchers::Contains;
using namespace wt;
using namespace wt::test;

namespace {

const char* const kFile = "tests/golden/health.txt";

Ended run(const std::string& arguments) { return windtunnel("health " + arguments); }

/// Every planted fault of the issue in one fleet of 16 nodes.
FleetObservation broken_fleet() {
  test::SyntheticFleet fleet({.nodes = 16, .devices = 8, .rails = 4}, 42);
  fleet.slow_device(3, 5, 1.05);
  fleet.half_rail(7, 2);
  fleet.fleet.nodes[9].xids =
      read_kernel_log("NVRM: Xid (PCI:0000:33:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n")
          .events;
  fleet.slow_node(12, 1.2);
  for (int d = 0; d < 8; ++d) fleet.device(12, d).throttle = {"hw_thermal"}, fleet.device(12, d).temperature_C = 91;
  fleet.fleet.nodes[14].nics = {{.name = "eth0", .seconds = 5, .errors = {{"rx_crc_errors", 3}}}};
  return fleet.fleet;
}

std::string without_provenance(const std::string& text) { return text.substr(0, text.find("Where this comes from")); }

/// A run of the trainer's own metrics: 40 steps, the last ten as `slower` says.
void write_run(const TempDirectory& folder, double factor, double aux_loss, bool ended) {
  std::string lines;
  double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() - 60;
  for (int i = 1; i <= 40; ++i) {
    const double step_s = i > 30 ? factor : 1.0;
    lines += nlohmann::json{{"step", i},        {"loss", 5 - 0.05 * i},    {"aux_loss", i > 30 ? aux_loss : 0.01},
                            {"step_s", step_s}, {"unix_s", now += step_s}, {"exposed_communication_s", 0.1}}
                 .dump() +
             "\n";
  }
  write_bytes(folder / "metrics.jsonl", lines);
  if (ended) write_bytes(folder / "summary.json", "{}");
}

}  // namespace

TEST_CASE("the verdict on a fleet reads as it did") {
  const TempDirectory folder;
  write_bytes(folder / "fleet.json", to_json(broken_fleet()).dump());
  const Ended ended = run("judge " + (folder / "fleet.json").string());
  CHECK(ended.status == 1);
  const std::string found = without_provenance(ended.said);
  CHECK(found == golden(kFile, found));
}

TEST_CASE("one JSON document says the same") {
  const TempDirectory folder;
  write_bytes(folder / "fleet.json", to_json(broken_fleet()).dump());
  const Ended ended = run("judge --json " + (folder / "fleet.json").string());
  CHECK(ended.status == 1);
  const nlohmann::json payload = nlohmann::json::parse(ended.said).at("payload");
  REQUIRE(payload.at("nodes").size() == 16);
  std::vector<std::string> cordoned;
  for (const auto& node : payload.at("nodes"))
    if (node.at("state") == "cordon") cordoned.push_back(node.at("node"));
  CHECK(cordoned == std::vector<std::string>{"node-003", "node-007", "node-009", "node-012"});
  CHECK(payload.at("nodes")[4].at("node") == "node-014");
  CHECK(payload.at("nodes")[4].at("state") == "watch");
}

TEST_CASE("this node is checked, written down and judged again the same") {
  const TempDirectory folder;
  write_bytes(folder / "log", "NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus.\n");
  write_bytes(folder / "dcgm", "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"pod\"} 50\n");
  const std::string out = (folder / "out.json").string();
  const Ended ended = run("--quick --storage " + folder.path().string() + " --kernel-log " + (folder / "log").string() +
                          " --dcgm " + (folder / "dcgm").string() + " -o " + out);
  INFO(ended.said);
  CHECK(ended.status == 1);
  CHECK_THAT(ended.said, Contains("XID 79") && Contains("restart the bare-metal node") && Contains("compute stress") &&
                             Contains("storage, written"));
  CHECK(read_fleet({out}).nodes.at(0).devices.back().id == "GPU-a");
  CHECK(run("judge " + out).status == 1);
}

TEST_CASE("a run is watched until it says something") {
  const TempDirectory folder;
  write_bytes(folder / "log", "");
  const auto watch = [&] {
    return run("--watch " + folder.path().string() + " --mfu-below 0.8 --kernel-log " + (folder / "log").string());
  };
  write_run(folder, 1.0, 0.01, true);
  Ended ended = watch();
  INFO(ended.said);
  CHECK(ended.status == 0);
  write_run(folder, 2.0, 0.02, false);
  ended = watch();
  INFO(ended.said);
  CHECK(ended.status == 1);
  CHECK_THAT(ended.said, Contains("The training run shows: imbalanced router.") && Contains("cordon nobody"));
}

TEST_CASE("health refuses what it cannot use, and says why") {
  const TempDirectory folder;
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Ended ended = run(arguments);
    INFO(ended.said);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, Contains(why));
  };
  const std::string none = (folder / "none").string();
  write_bytes(folder / "two",
              "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",Hostname=\"x\"} 1\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\",Hostname=\"y\"} 1\n");
  refused("judge", "FILES is required");
  refused("judge " + none, "none");
  refused("--watch " + none, "--mfu-below");
  refused("--watch " + none + " --mfu-below 0.3", "cannot be read");
  refused("--watch " + none + " --mfu-below 0.3 --dcgm -", "needs files");
  refused("--watch " + none + " --mfu-below 30", "not in range");
  refused("--mfu-below 0.3", "--watch");
  refused("--quick --dcgm http://localhost:9400/metrics", "curl -s http://localhost:9400/metrics");
  refused("--quick --dcgm " + (folder / "two").string(), "found 2 nodes");
  refused("--quick --kernel-log " + none, "--kernel-log");
}
