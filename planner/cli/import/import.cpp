// windtunnel import: converts other tools' measurements to a profile.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "bench/formats/google_benchmark.hpp"
#include "bench/formats/nccl_tests.hpp"
#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/text.hpp"
#include "configs/files/cluster.hpp"
#include "configs/files/data_sheet.hpp"
#include "planner/cli/import/import_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "sim/cost/collectives/collective_algorithm.hpp"

namespace wt {
namespace {

struct Options {
  std::string file, cluster, output;
  bool json = false;
};

/// Adds facts of the cluster that calibrate needs and measurements lack.
void add_cluster(Profile& profile, const std::string& name) {
  const ClusterSpec cluster = read_cluster(name);
  if (cluster.shared_cores())
    throw_error(Code::usage, "--cluster {}: found a host whose ranks share cores, needs a cluster of GPUs", name);
  if (!cluster.others.empty())
    throw_error(Code::usage, "--cluster {}: found nodes of several kinds, needs a cluster of those that were measured",
                name);
  const auto device = profile.fingerprint.find("device");
  const auto sheet = data_sheet(cluster.gpu_name);
  const auto measured = device == profile.fingerprint.end() ? std::nullopt : data_sheet(device->second);
  if (sheet && measured && sheet->name != measured->name)
    throw_error(Code::usage, "--cluster {}: found a measurement of {}, needs one of the cluster's {}", name,
                device->second, cluster.gpu_name);
  profile.fingerprint["nvlink_Bps"] = fmt::format("{:.6g}", cluster.nvswitch_Bps);
  profile.fingerprint["nic_Bps"] = fmt::format("{:.6g}", cluster.nic_per_gpu_Bps());
  profile.fingerprint["transport"] = cluster.transport;
  if (const std::int64_t nvls = sheet ? nvls_least_ranks(sheet->generation) : 0; nvls > 0)
    profile.fingerprint["nvls_ranks"] = std::to_string(nvls);
}

void import_file(const Options& o) {
  const std::string text =
      read_file(o.file, "the output of nccl-tests, nvbench's JSON or a trace of PyTorch's profiler");
  Profile profile;
  Report report;
  if (is_nccl_tests(text)) {
    profile = from_nccl_tests(text, o.file);
    report = nccl_tests_report(profile);
  } else {
    if (text.starts_with("\x1f\x8b"))
      throw_error(Code::usage, "{}: found gzip, needs plain text; unpack it with gunzip", o.file);
    // Read more leniently than our own files: many versions of profilers write these, some with duplicate keys.
    const nlohmann::json document = lax_json(text);
    if (!is_chrome_trace(document) && !is_nvbench(document))
      throw_error(
          Code::usage,
          "{}: found {}, needs the text that nccl-tests print (with algbw and busbw), the JSON of nvbench (with "
          "devices and benchmarks) or a JSON trace of PyTorch's profiler (with traceEvents)",
          o.file,
          document.is_discarded()         ? "none of the three, or broken JSON"
          : is_google_benchmark(document) ? "Google Benchmark's JSON, which gate and calibrate read as it is"
          : document.contains("schema")   ? "a file of our own"
                                          : "other JSON");
    if (is_nvbench(document)) {
      NvbenchResult result = from_nvbench(document, o.file);
      report = nvbench_report(result);
      profile = std::move(result.profile);
    } else {
      KinetoTrace trace = from_kineto(document, o.file);
      report = kineto_report(trace);
      profile = std::move(trace.profile);
    }
  }
  if (!o.cluster.empty()) add_cluster(profile, o.cluster);
  if (!o.output.empty()) write_profile(profile, o.output);
  report.provenance = provenance({{"file", o.file}});
  put_report(report, o.json);
}

}  // namespace

void add_import(CLI::App& app) {
  const Command command(app, "import",
                        "Make a profile of what other tools measured: nccl-tests, nvbench, PyTorch's profiler\n"
                        "Example: windtunnel import all_reduce.txt --cluster hgx-h100 -o profile.json");
  auto o = std::make_shared<Options>();
  command
      .option("FILE", o->file, "Output of an nccl-tests program, nvbench's JSON, or a trace exported by torch.profiler")
      .required();
  command.option(
      "--cluster", o->cluster,
      "Cluster it was measured on, whose link speeds calibrate needs: a preset of configs/clusters, or a file");
  command.option("-o,--output", o->output, "Profile (JSON) to write");
  command.flag("--json", o->json, "Print one JSON document");
  command.runs([o] { import_file(*o); });
}

}  // namespace wt
