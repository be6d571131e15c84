// windtunnel import: converts other tools' measurements to a profile.
#include <fmt/core.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/formats/google_benchmark.hpp"
#include "bench/formats/kineto.hpp"
#include "bench/formats/nccl_tests.hpp"
#include "bench/formats/nvbench.hpp"
#include "bench/formats/rate.hpp"
#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/files/cluster.hpp"
#include "configs/files/data_sheet.hpp"
#include "configs/files/profile.hpp"
#include "planner/cli/import/nccl_report.hpp"
#include "planner/cli/import/usual_collective.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "reports/model/report.hpp"
#include "sim/cost/collectives/collective_algorithm.hpp"

namespace wt {
namespace {

// Reports of `windtunnel import`: what another tool's file contained, and what it lacks.

constexpr std::size_t kMostUnknown = 40;  // the rest of the long tail is not informative

Cell microseconds(double seconds) { return {seconds * 1e6, fmt::format("{:.4g}", seconds * 1e6)}; }

/// Time by class of kernels, and the unclassified kernels, the longest first.
Report kineto_report(const KinetoTrace& trace) {
  std::array<std::size_t, 8> calls{};
  std::vector<std::pair<double, std::string>> unknown;
  std::size_t gemms = 0, all = 0;
  for (const auto& [name, kernel] : trace.kernels) {
    calls[static_cast<std::size_t>(kernel.kind)] += kernel.seconds.size();
    all += kernel.seconds.size();
    if (kernel.kind == KernelClass::unknown) unknown.emplace_back(kernel.total_s, name);
  }
  for (const Measurement& m : trace.profile.measurements) gemms += m.kernel == "gemm";
  std::sort(unknown.rbegin(), unknown.rend());

  Report report;
  report.title = "Import of a PyTorch trace";
  report.answer = fmt::format("{} executions of {} kernels on {} took {}; {:.1f} % of it in kernels of unknown kind.",
                              all, trace.kernels.size(), trace.profile.fingerprint.at("device"),
                              format_seconds(trace.kernel_s), trace.share(KernelClass::unknown) * 100);
  report.answer_range =
      fmt::format("over {} of the trace; {} products with their shapes", format_seconds(trace.span_s), gemms);
  Table classes{.title = "By class",
                .columns = {"class", numeric("executions"), numeric("time", "ms"), numeric("share", "%")}};
  nlohmann::json shares, list = nlohmann::json::array();
  for (std::size_t k = 0; k < calls.size(); ++k) {
    const KernelClass kind = static_cast<KernelClass>(k);
    shares[to_string(kind)] = trace.share(kind);
    if (calls[k] > 0)
      classes.rows.push_back(
          {to_string(kind), whole(calls[k]), milliseconds(trace.class_s[k]), percent(trace.share(kind))});
  }
  classes.note = "Times of kernels that ran at once count each for itself.";
  Table unknowns{.title = "Kernels of unknown kind", .columns = {"kernel", numeric("share", "%")}};
  for (const auto& [seconds, name] : unknown) {
    const double share = trace.kernel_s > 0 ? seconds / trace.kernel_s : 0;
    list.push_back({{"kernel", name}, {"share", share}});
    if (unknowns.rows.size() < kMostUnknown) unknowns.rows.push_back({name, percent(share)});
  }
  report.sections.push_back({.id = "classes", .title = "What ran", .items = {classes}});
  if (!unknown.empty()) report.sections.push_back({.id = "unknown", .title = "What is not known", .items = {unknowns}});
  report.payload = {{"kind", "kineto"},
                    {"kernel_s", trace.kernel_s},
                    {"span_s", trace.span_s},
                    {"shares", shares},
                    {"unknown", list}};
  return report;
}

/// One row per benchmark, and the skipped ones.
Report nvbench_report(const NvbenchResult& result) {
  Report report;
  const std::vector<Measurement>& all = result.profile.measurements;
  report.title = "Import of nvbench";
  report.answer = fmt::format("{} {} of nvbench on {}.", all.size(), all.size() == 1 ? "measurement" : "measurements",
                              result.profile.fingerprint.at("device"));
  Table table{.title = "Cold runs",
              .columns = {"benchmark", numeric("samples"), numeric("median", "us"), numeric("spread", "%")}};
  std::size_t means = 0;
  for (const Measurement& m : all) {
    table.rows.push_back({m.name(), whole(m.samples.size()), microseconds(m.median()), percent(spread(m))});
    means += m.samples.size() == 1 ? 1 : 0;
  }
  if (means > 0)
    table.note = fmt::format("{} of one sample: the mean that --json keeps; --jsonbin keeps every sample.", means);
  report.sections.push_back({.id = "benchmarks", .title = "What was measured", .items = {table}});
  Table skipped{.title = "Skipped", .columns = {"benchmark", "reason"}};
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [name, reason] : result.skipped) {
    skipped.rows.push_back({name, reason});
    list.push_back({{"name", name}, {"reason", reason}});
  }
  if (!result.skipped.empty())
    report.sections.push_back({.id = "skipped", .title = "What was not", .items = {skipped}});
  report.payload = {{"kind", "nvbench"}, {"measurements", all.size()}, {"skipped", list}};
  return report;
}

struct Options {
  std::string file, cluster, output, test;
  std::int64_t gpus = 0;
  bool json = false;
};

/// The cluster of --cluster, which must be of the GPUs that were measured; empty where there is none.
std::optional<ClusterSpec> read_measured_cluster(const std::string& name, const std::string& gpu) {
  if (name.empty()) return std::nullopt;
  ClusterSpec cluster = read_cluster(name);
  if (cluster.shared_cores())
    throw_usage("--cluster {}: found a host whose ranks share cores, needs a cluster of GPUs", name);
  if (!cluster.others.empty())
    throw_usage("--cluster {}: found nodes of several kinds, needs a cluster of those that were measured", name);
  const auto sheet = data_sheet(cluster.gpu_name), measured = data_sheet(gpu);
  if (sheet && measured && sheet->name != measured->name)
    throw_usage("--cluster {}: found a measurement of {}, needs one of the cluster's {}", name, gpu, cluster.gpu_name);
  return cluster;
}

/// Facts of the cluster that calibrate needs and measurements lack.
void add_cluster(Profile& profile, const ClusterSpec& cluster) {
  profile.fingerprint["nvlink_Bps"] = fmt::format("{:.6g}", cluster.nvswitch_Bps);
  profile.fingerprint["nic_Bps"] = fmt::format("{:.6g}", cluster.nic_per_gpu_Bps());
  profile.fingerprint["transport"] = cluster.transport;
  const auto sheet = data_sheet(cluster.gpu_name);
  if (const std::int64_t nvls = sheet ? nvls_least_ranks(sheet->generation) : 0; nvls > 0)
    profile.fingerprint["nvls_ranks"] = std::to_string(nvls);
}

struct Imported {
  Profile profile;
  Report report;
};

/// `document`: null where the file is the tests' table.
Imported import_nccl_tests(const Options& o, const std::string& text, const nlohmann::json* document) {
  NcclTestsOptions known{.test = o.test, .gpus = o.gpus};
  if (o.gpus > 0) {
    if (o.cluster.empty())
      throw_usage("--gpus {}: found no --cluster, needs one, which says what GPUs they are", o.gpus);
    const ClusterSpec cluster = read_cluster(o.cluster);
    known.gpu = cluster.gpu_name;
    known.gpus_per_host = std::min(cluster.gpus_per_node, gpus_of_host(cluster.gpu_name));
  }
  const NcclTests tests =
      document ? read_nccl_tests_json(*document, o.file, known) : read_nccl_tests(text, o.file, known);
  const auto cluster = read_measured_cluster(o.cluster, tests.gpu);
  std::optional<UsualCollectives> usual;
  if (cluster || data_sheet(tests.gpu)) usual.emplace(tests, cluster ? &*cluster : nullptr);
  const std::int64_t rack = usual ? usual->rack() : 0;
  return {profile_of(tests, o.file, rack), nccl_tests_report(tests, usual ? &*usual : nullptr, tests.nodes(rack))};
}

Imported import_json(const Options& o, const std::string& text) {
  // Read more leniently than our own files: many versions of profilers write these, some with duplicate keys.
  const nlohmann::json document = lax_json(text);
  if (is_nccl_tests_json(document)) return import_nccl_tests(o, text, &document);
  if (!o.test.empty() || o.gpus > 0)
    throw_usage("{}: found no nccl-tests, which --test and --gpus are for; leave them out", o.file);
  if (is_nvbench(document)) {
    NvbenchResult result = from_nvbench(document, o.file);
    Report report = nvbench_report(result);
    return {std::move(result.profile), std::move(report)};
  }
  if (is_chrome_trace(document)) {
    KinetoTrace trace = from_kineto(document, o.file);
    Report report = kineto_report(trace);
    return {std::move(trace.profile), std::move(report)};
  }
  throw_usage(
      "{}: found {}, needs what nccl-tests print (with algbw and busbw) or write with -J, the JSON of nvbench (with "
      "devices and benchmarks) or a JSON trace of PyTorch's profiler (with traceEvents)",
      o.file,
      document.is_discarded()         ? "none of the three, or broken JSON"
      : is_google_benchmark(document) ? "Google Benchmark's JSON, which gate and calibrate read as it is"
      : document.contains("schema")   ? "a file of our own"
                                      : "other JSON");
}

void import_file(const Options& o) {
  const std::string text =
      read_file(o.file, "the output of nccl-tests, nvbench's JSON or a trace of PyTorch's profiler");
  if (text.starts_with("\x1f\x8b")) throw_usage("{}: found gzip, needs plain text; unpack it with gunzip", o.file);
  Imported imported = is_nccl_tests(text) ? import_nccl_tests(o, text, nullptr) : import_json(o, text);
  const auto device = imported.profile.fingerprint.find("device");
  if (const auto cluster = read_measured_cluster(
          o.cluster, device == imported.profile.fingerprint.end() ? std::string() : device->second))
    add_cluster(imported.profile, *cluster);
  if (!o.output.empty()) {
    write_profile(imported.profile, o.output);
    fmt::print(stderr, "wrote {}\n", o.output);
  }
  imported.report.provenance = provenance({{"file", o.file}});
  put_report(imported.report, o.json);
}

}  // namespace

void add_import(CLI::App& app) {
  const Command command(app, "import",
                        "Make a profile of what other tools measured: nccl-tests, nvbench, PyTorch's profiler\n"
                        "Example: windtunnel import all_reduce.txt --cluster hgx-h100 -o profile.json");
  const auto o = command.runs(import_file);
  command
      .option(
          "FILE", o->file,
          "What an nccl-tests program printed or wrote with -J, nvbench's JSON, or a trace exported by torch.profiler")
      .required();
  command.option(
      "--cluster", o->cluster,
      "Cluster it was measured on, whose link speeds calibrate needs: a preset of configs/clusters, or a file");
  command.option("--test", o->test,
                 "Test of nccl-tests, where the file names none or several: all_reduce, alltoall, ...");
  command
      .option("--gpus", o->gpus,
              "GPUs of nccl-tests, where the file has no list of devices; their cluster is --cluster")
      .between(std::int64_t{2}, std::int64_t{100000});
  command.output(o->output, Output::file, "Profile (JSON) to write");
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
