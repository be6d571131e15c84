#include "planner/cli/import/import_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/formats/rate.hpp"
#include "configs/base/quantity.hpp"
#include "planner/cli/parts/cells.hpp"

namespace wt {
namespace {

constexpr std::size_t kMostUnknown = 40;  // the rest of the long tail is not informative

Cell number(double value, const std::string& text) { return {value, text}; }

}  // namespace

Report nccl_tests_report(const Profile& profile) {
  Report report;
  const auto& shape = profile.measurements.front().shape;
  report.title = "Import of nccl-tests";
  report.answer = fmt::format("{} {} of {} over {} {} on {} {}.", profile.measurements.size(),
                              profile.measurements.size() == 1 ? "size" : "sizes", profile.measurements.front().kernel,
                              shape.at("ranks"), profile.fingerprint.at("device"), shape.at("nodes"),
                              shape.at("nodes") == 1 ? "node" : "nodes");
  Table table{.title = "Out of place",
              .columns = {{"bytes", "", Align::right},
                          {"samples", "", Align::right},
                          {"median", "us", Align::right},
                          {"algorithm bandwidth", "GB/s", Align::right}}};
  for (const Measurement& m : profile.measurements) {
    const double Bps = static_cast<double>(m.shape.at("bytes")) / m.median();
    table.rows.push_back({whole(static_cast<std::size_t>(m.shape.at("bytes"))), whole(m.samples.size()),
                          number(m.median() * 1e6, fmt::format("{:.4g}", m.median() * 1e6)),
                          number(Bps / 1e9, fmt::format("{:.4g}", Bps / 1e9))});
  }
  report.sections.push_back({.id = "collectives", .title = "What was measured", .items = {table}});
  report.payload = {{"kind", "nccl-tests"}, {"measurements", profile.measurements.size()}};
  return report;
}

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
  Table classes{
      .title = "By class",
      .columns = {
          {"class"}, {"executions", "", Align::right}, {"time", "ms", Align::right}, {"share", "%", Align::right}}};
  nlohmann::json shares, list = nlohmann::json::array();
  for (std::size_t k = 0; k < calls.size(); ++k) {
    const KernelClass kind = static_cast<KernelClass>(k);
    shares[to_string(kind)] = trace.share(kind);
    if (calls[k] > 0)
      classes.rows.push_back({to_string(kind), whole(calls[k]),
                              number(trace.class_s[k] * 1e3, fmt::format("{:.4g}", trace.class_s[k] * 1e3)),
                              percent(trace.share(kind))});
  }
  classes.note = "Times of kernels that ran at once count each for itself.";
  Table unknowns{.title = "Kernels of unknown kind", .columns = {{"kernel"}, {"share", "%", Align::right}}};
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

Report nvbench_report(const NvbenchResult& result) {
  Report report;
  const std::vector<Measurement>& all = result.profile.measurements;
  report.title = "Import of nvbench";
  report.answer = fmt::format("{} {} of nvbench on {}.", all.size(), all.size() == 1 ? "measurement" : "measurements",
                              result.profile.fingerprint.at("device"));
  Table table{
      .title = "Cold runs",
      .columns = {
          {"benchmark"}, {"samples", "", Align::right}, {"median", "us", Align::right}, {"spread", "%", Align::right}}};
  std::size_t means = 0;
  for (const Measurement& m : all) {
    table.rows.push_back({m.name(), whole(m.samples.size()),
                          number(m.median() * 1e6, fmt::format("{:.4g}", m.median() * 1e6)), percent(spread(m))});
    means += m.samples.size() == 1 ? 1 : 0;
  }
  if (means > 0)
    table.note = fmt::format("{} of one sample: the mean that --json keeps; --jsonbin keeps every sample.", means);
  report.sections.push_back({.id = "benchmarks", .title = "What was measured", .items = {table}});
  Table skipped{.title = "Skipped", .columns = {{"benchmark"}, {"reason"}}};
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

}  // namespace wt
