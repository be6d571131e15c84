// windtunnel health: checks a node; health judge: finds the bad nodes of a fleet; health --watch: why a run is slow.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "bench/health/collect.hpp"
#include "bench/health/dcgm.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/scratch_folder.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"
#include "configs/machine/fingerprint.hpp"
#include "planner/cli/health/health_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "reports/render/render.hpp"
#include "trainer/process/trainer_process.hpp"

namespace wt {
namespace {

struct Options {
  std::string output, storage = ".", dcgm, kernel_log, run;
  std::vector<std::string> files;
  double mfu_below = 0;
  std::int64_t ranks = 0;
  bool quick = false, json = false, fabric = false;
};

std::string read_text(const std::string& flag, const std::string& file) {
  std::stringstream text;
  if (file == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  return read_file(
      file, "for " + flag + " a file, or '-' for standard input" +
                (file.starts_with("http") ? "; pipe it: curl -s " + file + " | windtunnel health --dcgm -" : ""));
}

/// What the driver and the exporter report of this node. Read before any measurement, so that a wrong file costs no
/// time.
struct DriverReports {
  KernelLog kernel;
  std::optional<NodeObservation> dcgm;
};

/// The exporter's values of the node with this name.
NodeObservation read_dcgm(const std::string& file, const std::string& node) {
  const std::vector<NodeObservation> seen = nodes_from_dcgm(read_text("--dcgm", file), file, node);
  // In a container the exporter has its own host name. Several nodes: the file is not of this node alone.
  for (const NodeObservation& each : seen)
    if (seen.size() == 1 || each.name == node) return each;
  throw_usage("--dcgm {}: found {} nodes, none of them {}; needs the metrics of this node's exporter", file,
              seen.size(), node);
}

DriverReports read_driver_reports(const Options& o) {
  DriverReports reports{read_kernel_log(o.kernel_log.empty() ? kernel_log() : read_text("--kernel-log", o.kernel_log)),
                        {}};
  if (!o.dcgm.empty()) reports.dcgm = read_dcgm(o.dcgm, host_facts()["host"]);
  return reports;
}

/// Adds them to the node's measurements.
void add_driver_reports(NodeObservation& node, const DriverReports& reports) {
  node.xids = reports.kernel.events;
  node.not_understood = reports.kernel.not_understood;
  if (reports.dcgm) merge_node(node, *reports.dcgm);
}

/// `watched`: the run's diagnosis is the answer, and any problem is a finding.
void put_verdict(const FleetObservation& fleet, const JudgeOptions& options, bool json, bool watched = false) {
  const HealthVerdict verdict = judge(fleet, options);
  Report report = health_report(verdict, options);
  if (fleet.nodes.size() == 1)
    if (Table measured = measured_table(fleet.nodes.front()); !measured.rows.empty())
      report.sections.push_back({"measured", "What was measured", {}, {measured}});
  if (!fleet.links.empty())
    report.sections.push_back({"links", "All-reduces between neighbouring nodes", {}, {links_table(fleet.links)}});
  report.provenance = provenance();
  put_report(report, json);
  const bool unwell = watched && verdict.training->ailment != Ailment::fine;
  set_status(unwell ? static_cast<int>(Code::finding) : verdict.exit_status());
}

void check_node(const Options& o) {
  const DriverReports reports = read_driver_reports(o);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  FleetObservation fleet;
  fleet.nodes = {collect_node({.quick = o.quick, .storage = o.storage}, [&](const std::string& what) {
    if (terminal) fmt::print(stderr, "{}\n", what);
  })};
  if (const auto& failures = fleet.nodes.front().failures; !failures.empty())
    throw Error(Code::runtime, failures.front());
  add_driver_reports(fleet.nodes.front(), reports);
  if (!o.output.empty()) put_document(json_text(to_json(fleet)), o.output);
  put_verdict(fleet, {}, o.json);
}

/// Under a launcher this is one rank of many. Rank 0, for which windtunnel-train writes the fleet, judges it.
void check_fabric(const Options& o) {
  const ScratchFolder folder("windtunnel-health");
  const std::string seen = (folder.path() / "fleet.json").string();
  std::vector<std::string> words{"health", "-o", seen, "--storage", o.storage};
  if (o.quick) words.push_back("--quick");
  if (o.ranks > 0) words.insert(words.end(), {"--ranks", std::to_string(o.ranks)});
  if (const int status = run_trainer_here(words); status != 0) return set_status(status);
  if (!std::filesystem::exists(seen)) return;
  const FleetObservation fleet = read_fleet({seen});
  if (!o.output.empty()) put_document(json_text(to_json(fleet)), o.output);
  put_verdict(fleet, {}, o.json);
}

/// Collects the signals that do not disturb a running trainer: computing would slow it and measure the trainer.
void look_at_node(FleetObservation& fleet, const Options& o) {
  constexpr double kSeconds = 2;
  const std::vector<NicObservation> before = read_nics("/sys");
  std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
  NodeObservation node;
  node.name = host_facts()["host"];
  node.nics = increases_between(before, read_nics("/sys"), kSeconds);
  add_driver_reports(node, read_driver_reports(o));
  std::vector<double> busy;
  for (const DeviceObservation& device : node.devices)
    if (device.utilisation) busy.push_back(*device.utilisation);
  if (!busy.empty()) fleet.training->utilisation = median(busy);
  if (!node.nics.empty()) {
    fleet.training->network_Bps = 0;
    for (const NicObservation& nic : node.nics)
      *fleet.training->network_Bps += (nic.received_bytes + nic.sent_bytes) / kSeconds;
  }
  fleet.nodes = {std::move(node)};
}

void watch(const Options& o) {
  if (o.mfu_below <= 0) throw_usage("--watch {}: found no threshold, needs --mfu-below, as in: --mfu-below 0.3", o.run);
  if (o.dcgm == "-" || o.kernel_log == "-")
    throw_usage("--watch {}: found '-', needs files, which it can read when it has to", o.run);
  JudgeOptions options;
  options.diagnosis.mfu_below = o.mfu_below;
  FleetObservation fleet;
  for (;;) {
    fleet.training = read_training(o.run, clock_s(CLOCK_REALTIME));
    const Diagnosis found = diagnose(*fleet.training, options.diagnosis);
    const bool waiting = found.ailment == Ailment::undecided && fleet.training->steps.size() < options.diagnosis.window;
    if (fleet.training->ended || (found.ailment != Ailment::fine && !waiting)) break;
    std::this_thread::sleep_for(std::chrono::seconds(5));
  }
  look_at_node(fleet, o);
  if (!o.output.empty()) put_document(json_text(to_json(fleet)), o.output);
  put_verdict(fleet, options, o.json, true);
}

void add_judge(const Command& health) {
  const Command command = health.subcommand(
      "judge", "Which node of a fleet to cordon, why and how sure\nExample: windtunnel health judge node-*.json");
  auto o = std::make_shared<Options>();
  command.option("FILES", o->files, "Observations: of a node each, or of many").required();
  command.flag("--json", o->json, "Print one JSON document");
  command.runs([o] { put_verdict(read_fleet({o->files.begin(), o->files.end()}), {}, o->json); });
}

}  // namespace

void add_health(CLI::App& app) {
  const Command command(app, "health",
                        "Check nodes before and during a job: which one to cordon, why and how sure\nExample: "
                        "windtunnel health --quick -o node-1.json");
  auto o = std::make_shared<Options>();
  command.output(o->output, Output::file, "Write what was seen (JSON), for health judge");
  command.flag("--quick", o->quick, "Fewer repetitions and a smaller file");
  command.option("--storage", o->storage, "Folder to write and read a file in").shows_default();
  const Word fabric = command.flag("--fabric", o->fabric,
                                   "All nodes at once, their GPUs and all-reduces between neighbours: under Slurm, MPI "
                                   "or torchrun --no-python, one rank a GPU; without a launcher one local rank a GPU");
  command
      .option("--ranks", o->ranks,
              "With --fabric, to try it: that many local ranks on the CPU, each taken for a node; all-reduces alone")
      .needs(fabric)
      .between(std::int64_t{2}, 64);
  const Word dcgm = command.option("--dcgm", o->dcgm, "Metrics of DCGM-exporter: a file, or '-' for standard input");
  const Word log =
      command.option("--kernel-log", o->kernel_log,
                     "Kernel messages with XIDs: a file, or '-'; else this machine's, where they may be read");
  const Word run = command.option("--watch", o->run, "Follow a training run: its output folder");
  command
      .option("--mfu-below", o->mfu_below,
              "With --watch: look closer below this MFU (where metrics have none, share of the run's best pace)")
      .needs(run)
      .between(0.0, 1.0);
  for (const Word& other : {dcgm, log, run}) fabric.excludes(other);
  command.flag("--json", o->json, "Print one JSON document");
  add_judge(command);
  command.runs([o] {
    if (o->fabric)
      check_fabric(*o);
    else if (o->run.empty())
      check_node(*o);
    else
      watch(*o);
  });
}

}  // namespace wt
