// What is read: kernel logs, DCGM-exporter's text, observations, /sys.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/health/collect.hpp"
#include "bench/health/dcgm.hpp"
#include "bench/health/judge.hpp"
#include "bench/health/observation.hpp"
#include "configs/base/json_reader.hpp"
#include "tests/fixtures/synthetic_fleet.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using Catch::Matchers::Contains;

TEST_CASE("XID to action, row by row as NVIDIA's catalog groups them") {
  const auto check = [](Remedy action, NodeState state, const std::set<int>& codes) {
    for (int code : codes) {
      INFO(code);
      CHECK(advice({code, "", ""}).action == action);
      CHECK(advice({code, "", ""}).state == state);
    }
  };
  check(Remedy::restart_application, NodeState::healthy, {11, 13, 25, 31, 32, 94});
  check(Remedy::find_earlier, NodeState::healthy, {43, 45});
  check(Remedy::none, NodeState::healthy, {63, 92, 137, 157, 171, 172});
  check(Remedy::reset_gpu, NodeState::cordon, {46, 48, 62, 95, 109, 110, 119, 120, 136, 140, 143, 156, 158});
  check(Remedy::replace, NodeState::cordon, {64});
  check(Remedy::nvlink_workflow, NodeState::watch, {74});
  check(Remedy::decode_registers, NodeState::watch, {144, 145, 146, 147, 148, 149, 150});
  check(Remedy::restart_node, NodeState::cordon, {79});
  check(Remedy::look_up, NodeState::watch, {1, 12, 999, 154});
  CHECK(advice({48, "", ""}, {48, 63}).action == Remedy::drain_and_reset);
  CHECK(advice({48, "", ""}, {64, 48}).action == Remedy::drain_and_reset);
  CHECK(advice({48, "", ""}, {48, 171}).action == Remedy::reset_gpu);
  CHECK(advice({172, "", "SRAM threshold exceeded"}).action == Remedy::replace);
}

TEST_CASE("XID 154 carries the verdict in its words") {
  const auto verdict = [](const std::string& to) {
    return advice({154, "", "GPU recovery action changed from 0x1 (GPU Reset Required) to " + to}).action;
  };
  CHECK(verdict("0x0 (None)") == Remedy::none);
  CHECK(verdict("0x1 (GPU Reset Required)") == Remedy::reset_gpu);
  CHECK(verdict("0x2 (Node Reboot Required)") == Remedy::restart_node);
  CHECK(verdict("0x2 (OS Reboot)") == Remedy::restart_node);
  CHECK(verdict("0x3 (Drain P2P)") == Remedy::drain_peers);
  CHECK(verdict("0x4 (Drain and Reset)") == Remedy::drain_and_reset);
  CHECK(verdict("0x1 (PF FLR)") == Remedy::look_up);
}

TEST_CASE("XIDs are read from kernel logs of all spellings, and nothing else is") {
  const KernelLog log = read_kernel_log(
      "[12345.678901] NVRM: Xid (PCI:0000:3B:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\r\n"
      "Sep 14 20:30:27 host kernel: NVRM: Xid (PCI:0000:01:00.0): 31, pid=2096908, name=python3, Ch 00000007\n"
      "4,1234,5678,-;NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot "
      "Required)\n"
      "NVRM: Xid (0000:03:00): 13, old\n"
      "NVRM: Xid (PCI:0000:02:00): 62\n"
      "NVRM: Xid (PCI:0000:66:00): abc, pid=2280636\n"
      "NVRM: Xid (PCI:0000:66:00): 123456, too long\n"
      "NVRM: Xid (PCI:zz): 79, no bus\n"
      "NVRM: Xid (PCI:0000:01:00)\n"
      "a sentence about Xid 79\n"
      "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
      "               NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
      "               NVRM: fallen off the bus and is not responding to commands.\n");
  const auto& found = log.events;
  REQUIRE(found.size() == 6);
  CHECK(found[0].code == 79);
  CHECK(found[0].pci_bus == "0000:3b:00");
  CHECK(found[0].text == "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
  CHECK(found[1].pci_bus == "0000:01:00");
  CHECK(found[2].code == 154);
  CHECK(advice(found[2]).action == Remedy::restart_node);
  CHECK(found[3].code == 13);
  CHECK(found[4].text.empty());
  CHECK(found[5].code == 79);
  CHECK(found[5].pci_bus == "0000:b3:00");
  CHECK(log.not_understood == std::map<std::string, std::int64_t>{{"NVRM: Xid (PCI:####:##:##): abc, pid=#######", 1},
                                                                  {"NVRM: Xid (PCI:####:##:##): ######, too long", 1},
                                                                  {"NVRM: Xid (PCI:zz): ##, no bus", 1},
                                                                  {"NVRM: Xid (PCI:####:##:##)", 1}});
  CHECK(read_kernel_log("").events.empty());
  CHECK(read_kernel_log(std::string("NVRM\0: Xid", 10)).events.empty());
}

TEST_CASE("errors of NVSwitches are events of the switch: fatal ones cordon, others are watched") {
  const auto found = read_kernel_log(
                         "[77.1] nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"
                         "[77.2] nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 20034, Severity 1 Engine instance 30\n"
                         "[77.3] nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 20034, Data {0x00000000, 0x00000000}\n"
                         "[78.0] nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 11012, Non-fatal, Link 2 ingress ECC\n")
                         .events;
  REQUIRE(found.size() == 2);
  CHECK(found[0].nvswitch);
  CHECK(found[0].pci_bus == "0000:85:00");
  CHECK(advice(found[0]).state == NodeState::cordon);
  CHECK(advice(found[1]).state == NodeState::watch);
  FleetObservation fleet;
  fleet.nodes.resize(1);
  fleet.nodes[0].name = "n";
  fleet.nodes[0].xids = found;
  const HealthVerdict verdict = judge(fleet);
  CHECK(verdict.exit_status() == 1);
  CHECK(verdict.nodes[0].findings[0].what == "SXid 20034");
  CHECK(fleet_from_json(to_json(fleet), "back").nodes[0].xids[0].nvswitch);
}

TEST_CASE("NVLink errors of Blackwell cordon where their text says fatal") {
  const auto state = [](const std::string& text) { return advice({149, "0009:01:00", text}).state; };
  CHECK(state("NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000)") == NodeState::cordon);
  CHECK(state("NETIR_LINK_EVT  Nonfatal   XC0 i0 Link 08 (0x004505c6 0x00000000)") == NodeState::watch);
  CHECK(state("") == NodeState::watch);
}

TEST_CASE("lines of the driver that are not understood are counted and shown") {
  FleetObservation fleet;
  fleet.nodes.resize(1);
  fleet.nodes[0].name = "n";
  fleet.nodes[0].not_understood =
      read_kernel_log(
          "[1.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.1\n"
          "[2.0] NVRM: RmInitAdapter failed! (0x62:0x40:2483)\n[3.0] NVRM: RmInitAdapter failed! (0x63:0x41:2484)\n"
          "[4.0] usb 1-1: new device\n")
          .not_understood;
  REQUIRE(fleet.nodes[0].not_understood.size() == 1);
  CHECK(fleet_from_json(to_json(fleet), "back").nodes[0].not_understood == fleet.nodes[0].not_understood);
  const std::vector<std::string> missing = judge(fleet).missing;
  CHECK_THAT(missing.back(),
             Contains("kernel log of n: 2 lines") && Contains("'NVRM: RmInitAdapter failed! (#x##:#x##:####)' (2x)"));
}

namespace {

const std::string kDcgm = R"(# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aaa",pci_bus_id="00000000:3B:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-bbb",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-a",} 3 1795273106000
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-aaa",Hostname="node-a"} 91
DCGM_FI_DEV_MEMORY_TEMP{gpu="0",UUID="GPU-aaa",Hostname="node-a"} 9223372036854775794
DCGM_FI_DEV_SM_CLOCK{gpu="1",UUID="GPU-bbb",Hostname="node-a"} 9223372036854775794
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0",UUID="GPU-aaa",Hostname="node-a"} 72
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-aaa",Hostname="node-a",err_msg="it \"fell\" \\ off"} 79
DCGM_FI_DEV_XID_ERRORS{gpu="1",UUID="GPU-bbb",Hostname="node-a"} 0
DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{gpu="1",UUID="GPU-bbb",Hostname="node-a"} 2
DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="1",UUID="GPU-bbb",Hostname="node-a"} 1
go_goroutines 12
vllm:bucket{le="+Inf"} +Inf
)";

}  // namespace

TEST_CASE("DCGM-exporter's metrics become devices and events") {
  const auto nodes = nodes_from_dcgm(kDcgm, "metrics", "this");
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0].name == "node-a");
  REQUIRE(nodes[0].devices.size() == 2);
  const DeviceObservation &a = nodes[0].devices[0], &b = nodes[0].devices[1];
  CHECK(a.utilisation == 0.97);
  CHECK(a.pci_bus == "0000:3b:00");
  CHECK(a.temperature_C == 91);
  CHECK(a.throttle == std::vector<std::string>{"hw_slowdown", "hw_thermal"});
  CHECK_FALSE(b.sm_clock_MHz);  // blank
  CHECK(b.ecc_double_bit == 2);
  CHECK(b.row_remap_failed);
  REQUIRE(nodes[0].xids.size() == 1);
  CHECK(nodes[0].xids[0].code == 79);
  CHECK(nodes[0].xids[0].pci_bus == "0000:3b:00");
  CHECK(read_exposition(kDcgm, "metrics")[6].labels.at("err_msg") == "it \"fell\" \\ off");
  CHECK(nodes_from_dcgm("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1\n", "m", "this")[0].name == "this");
}

TEST_CASE("DCGM's count of XIDs is an event of its GPU, once") {
  const std::string counted =
      "DCGM_EXP_XID_ERRORS_COUNT{gpu=\"3\",UUID=\"GPU-c\",pci_bus_id=\"00000000:3B:00.0\",Hostname=\"h\",xid=\"79\"} "
      "2\n"
      "DCGM_EXP_XID_ERRORS_COUNT{gpu=\"3\",UUID=\"GPU-c\",pci_bus_id=\"00000000:3B:00.0\",Hostname=\"h\",xid=\"31\"} "
      "0\n"
      "DCGM_FI_DEV_XID_ERRORS{gpu=\"3\",UUID=\"GPU-c\",pci_bus_id=\"00000000:3B:00.0\",Hostname=\"h\"} 79\n";
  const auto nodes = nodes_from_dcgm(counted, "m", "this");
  REQUIRE(nodes.at(0).xids.size() == 1);
  CHECK(nodes[0].xids[0].code == 79);
  CHECK(nodes[0].xids[0].pci_bus == "0000:3b:00");
}

TEST_CASE("what the log said and DCGM repeats is one event") {
  NodeObservation node;
  node.name = "node-a";
  node.devices = {{.id = "0", .model = "", .pci_bus = "0000:3b:00", .stress_s = {1}}};
  node.xids = read_kernel_log("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n").events;
  merge_node(node, nodes_from_dcgm(kDcgm, "metrics", "this")[0]);
  REQUIRE(node.devices.size() == 2);
  CHECK(node.devices[0].stress_s.size() == 1);
  CHECK(node.devices[0].utilisation == 0.97);
  CHECK(node.devices[0].model == "NVIDIA H100 80GB HBM3");
  CHECK(node.xids.size() == 1);
}

TEST_CASE("malformed metrics are refused with line and column") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CHECK_THAT(test::usage_error([&] { nodes_from_dcgm(text, "m.txt", "this"); }), Contains(why));
  };
  refused("", "found no metric DCGM_FI_");
  refused("go_goroutines 12\n", "found no metric DCGM_FI_");
  refused("\n<html>\n", "m.txt:2: column 1: found '<'");
  refused("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"}\n", "no value");
  refused("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} many\n", "'many' for a number");
  refused("DCGM_FI_DEV_GPU_UTIL{gpu=\"0} 1\n", "does not end");
  refused("DCGM_FI_DEV_GPU_UTIL{gpu=0} 1\n", "'0' for '\"'");
  refused("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\" 1\n", "found '1'");
  refused("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1 2 3\n", "behind the timestamp");
  refused("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 101\n", "allowed 0 to 100");
  refused("DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} -4\n", "allowed 0 or more");
  refused("{gpu=\"0\"} 1\n", "found '{'");
}

TEST_CASE("an observation survives writing and reading") {
  test::SyntheticFleet fleet({.nodes = 4, .rails = 2}, 1);
  NodeObservation& node = fleet.fleet.nodes[1];
  node.xids = {{79, "0000:03:00", "fallen"}};
  node.nics = {{.name = "mlx5_0:1",
                .infiniband = true,
                .rail = "0",
                .speed_Bps = 5e10,
                .seconds = 3,
                .received_bytes = 7,
                .sent_bytes = 8,
                .errors = {{"link_downed", 1}}}};
  node.devices[0].throttle = {"hw_thermal"};
  node.devices[0].utilisation = 0.5;
  node.devices[0].ecc_double_bit = 1;
  node.devices[0].row_remap_failed = true;
  node.devices[0].sm_clock_MHz = 1410;
  node.devices[0].temperature_C = 70;
  fleet.fleet.training = TrainingObservation{.steps = {{.step = 1, .unix_s = 5, .step_s = 2, .loss = 3, .mfu = 0.4}},
                                             .now_unix_s = 6,
                                             .last_sign_unix_s = 5,
                                             .utilisation = 0.9,
                                             .network_Bps = 1e9};
  const nlohmann::json document = to_json(fleet.fleet);
  CHECK(to_json(fleet_from_json(document, "f")) == document);
}

TEST_CASE("observations are refused with their place") {
  const auto refused = [](const std::string& text, const std::string& why) {
    CHECK_THAT(test::usage_error([&] { fleet_from_json(parse_json(text, "f.json"), "f.json"); }), Contains(why));
  };
  const auto node = [&](const std::string& inside) {
    return R"({"schema":"windtunnel.health/1","nodes":[{"name":"a",)" + inside + "}]}";
  };
  refused("[]", "f.json");
  refused(R"({"nodes":[]})", "schema");
  refused(R"({"schema":"windtunnel.profile/1","nodes":[]})", "windtunnel.health/1");
  refused(R"({"schema":"windtunnel.health/1","nodes":[]})", "found none");
  refused(R"({"schema":"windtunnel.health/1","nodes":[{"name":""}]})", "an empty name");
  refused(R"({"schema":"windtunnel.health/1","nodes":[{"name":"a"},{"name":"a"}]})", "node 'a' twice");
  refused(
      R"({"schema":"windtunnel.health/1","nodes":[{"name":"a"}],"links":[{"a":"a","b":"b","bytes":1,"seconds":[1]}]})",
      "found node 'b'");
  refused(
      R"({"schema":"windtunnel.health/1","nodes":[{"name":"a"}],"links":[{"a":"a","b":"a","bytes":1,"seconds":[1]}]})",
      "linked with itself");
  refused(node(R"("devises":[])"), "devises");
  refused(node(R"("devices":[{"id":"0"},{"id":"0"}])"), "device '0' twice");
  refused(node(R"("devices":[{"id":"0","stress_s":[1,0]}])"), "/nodes/0/devices/0/stress_s/1");
  refused(node(R"("devices":[{"id":"0","memory_Bps":[-1]}])"), "above 0");
  refused(node(R"("devices":[{"id":"0","utilisation":1.5}])"), "a share from 0 to 1");
  refused(node(R"("devices":[{"id":"0","throttle":["hot"]}])"), "hw_thermal");
  refused(node(R"("devices":[{"id":"0","wrong_results":-1}])"), "0 or more");
  refused(node(R"("nics":[{"name":"x","kind":"token ring"}])"), "ethernet, infiniband");
  refused(node(R"("xids":[{"code":"79"}])"), "/nodes/0/xids/0/code");
}

TEST_CASE("files of several nodes are one fleet") {
  const test::TempDirectory folder;
  const auto write = [&](const std::string& file, const std::string& text) { test::write_bytes(folder / file, text); };
  write("a.json", R"({"schema":"windtunnel.health/1","nodes":[{"name":"a"}],"training":{"steps":[],"now_unix_s":1}})");
  write("b.json", R"({"schema":"windtunnel.health/1","nodes":[{"name":"b"}]})");
  write("links.json",
        R"({"schema":"windtunnel.health/1","nodes":[],"links":[{"a":"a","b":"b","bytes":1024,"seconds":[1e-5]}]})");
  const FleetObservation fleet = read_fleet({folder / "a.json", folder / "b.json", folder / "links.json"});
  CHECK(fleet.nodes.size() == 2);
  CHECK(fleet.links.size() == 1);
  CHECK(fleet.training);
  CHECK_THAT(test::usage_error([&] { read_fleet({folder / "a.json", folder / "a.json"}); }), Contains("a second one"));
  CHECK_THAT(test::usage_error([&] {
               read_fleet({folder / "b.json", folder / "b.json"});
             }),
             Contains("node 'b' twice"));
  CHECK_THAT(test::usage_error([&] { read_fleet({folder / "links.json"}); }), Contains("found no node"));
  CHECK_THAT(test::usage_error([&] { read_fleet({folder / "none.json"}); }), Contains("none.json"));
}

TEST_CASE("NIC counters are read from /sys, and only what rose in between counts") {
  const test::TempDirectory sys;
  const auto put = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories((sys / file).parent_path());
    test::write_bytes(sys / file, text + "\n");
  };
  put("class/net/lo/statistics/rx_bytes", "5");  // no device behind it
  put("class/net/eth0/device/vendor", "x");
  put("class/net/eth0/operstate", "up");
  put("class/net/eth0/speed", "-1");
  put("class/net/eth0/statistics/rx_bytes", "1000");
  put("class/net/eth0/statistics/rx_errors", "7");
  put("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  put("class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)");
  put("class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "100");
  put("class/infiniband/mlx5_0/ports/1/counters/link_downed", "3");
  const auto before = read_nics(sys.path());
  REQUIRE(before.size() == 2);
  CHECK(before[0].speed_Bps == 0);
  CHECK(before[1].name == "mlx5_0:1");
  CHECK(before[1].up);
  CHECK(before[1].speed_Bps == 5e10);
  CHECK(before[1].received_bytes == 400);
  put("class/net/eth0/statistics/rx_bytes", "1500");
  put("class/infiniband/mlx5_0/ports/1/counters/link_downed", "4");
  put("class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  const auto rose = increases_between(before, read_nics(sys.path()), 2);
  CHECK(rose[0].received_bytes == 500);
  CHECK(rose[0].errors.empty());
  CHECK(rose[1].errors == std::map<std::string, std::int64_t>{{"link_downed", 1}});
  CHECK_FALSE(rose[1].up);
  CHECK(rose[1].seconds == 2);
  CHECK(read_nics(sys / "none").empty());
}

TEST_CASE("this node is measured: every core, its memory, a file") {
  const test::TempDirectory folder;
  std::vector<std::string> said;
  const NodeObservation node =
      collect_node({.quick = true, .storage = folder.path()}, [&](const std::string& what) { said.push_back(what); });
  CHECK_FALSE(node.name.empty());
  REQUIRE_FALSE(node.devices.empty());
  for (const DeviceObservation& device : node.devices) {
    CHECK(device.stress_s.size() == 7);
    CHECK(device.memory_Bps.size() == 7);
    CHECK(device.wrong_results == 0);
    CHECK(*std::min_element(device.stress_s.begin(), device.stress_s.end()) > 0);
  }
  CHECK(node.storage.write_Bps.size() == 3);
  CHECK(node.storage.read_Bps.size() == 3);
  CHECK(folder.entries() == 0);
  CHECK(said.size() == 2);
  const NodeObservation without = collect_node({.quick = true, .storage = folder / "none"}, [](const std::string&) {});
  REQUIRE(without.failures.size() == 1);
  CHECK_THAT(without.failures[0], Contains("--storage"));
  CHECK(without.devices.size() == node.devices.size());
}
