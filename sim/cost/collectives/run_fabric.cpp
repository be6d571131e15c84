#include "sim/cost/collectives/run_fabric.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <regex>

#include "configs/spec/data_sheet.hpp"
#include "configs/spec/support/error.hpp"
#include "sim/measurements/fabric.hpp"

namespace wt {
namespace {

std::string nccl_name(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
      return "all_reduce";
    case OpKind::all_gather:
      return "all_gather";
    case OpKind::reduce_scatter:
      return "reduce_scatter";
    case OpKind::all_to_all:
      return "alltoall";
    case OpKind::broadcast:
      return "broadcast";
    default:
      throw_error(Code::runtime, "no collective: {}", to_string(kind));
  }
}

}  // namespace

std::int64_t nvlink_domain(const RunRow& run) {
  return run.interconnect.find("NVL72") != std::string::npos ? 72 : run.gpus_per_node;
}

FabricText fabric_text(const RunRow& run) {
  const std::string& text = run.interconnect;
  std::smatch found;
  static const std::regex adapters(R"((\d{1,3})\s*x\s*(\d{1,5})\s*G)"), rate(R"((\d{1,5})\s*Gb)"),
      terabits(R"((\d{1,2}(\.\d{1,2})?)\s*Tb)"), per_gpu("per (GPU|NIC|port|rail)"),
      several(R"((\d{1,2})\s*(NICs|adapters|HCAs|ports)\D{1,12}(\d{2,4})\s*G)"),
      infiniband(R"((\d{1,2})\s*x\s*[EHNX]DR[ -]?(\d{3}))");
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  // The nanotron sweep's cluster, whose own collectives are among the reference rows.
  if (has("measured collective bandwidth in the same repo")) return {"HF cluster (EFA p5, recalled)", "p5=", false};
  const auto named = [&](const std::string& count, const std::string& gigabits) -> FabricText {
    return {fmt::format("{}x{}G {}", count, gigabits, transport_of(text)), "", false};
  };
  if (std::regex_search(text, found, adapters)) return {text, "", false};
  if (std::regex_search(text, found, infiniband)) return named(found[1], found[2]);
  if (std::regex_search(text, found, several)) return named(found[1], found[3]);
  if (std::regex_search(text, found, rate) && std::regex_search(text, per_gpu))
    return named(std::to_string(run.gpus_per_node), found[1]);
  if (std::regex_search(text, found, rate)) return named("1", found[1]);
  if (std::regex_search(text, found, terabits)) return named("1", fmt::format("{:.0f}", 1000 * std::stod(found[1])));
  if (names_instance(text)) return {text, "", false};
  if (nvlink_domain(run) > run.gpus_per_node) return {fmt::format("{}x400G IB", nvlink_domain(run)), "", true};
  const auto gpu = data_sheet(run.gpu);
  return {gpu && gpu->generation >= 9 ? "8x400G IB" : "8x200G IB", "",
          true};  // HGX reference designs of the generation
}

RunFabric::RunFabric(const std::vector<CollectiveRow>& reference) {
  std::vector<CollectiveSample> samples;
  samples.reserve(reference.size());
  for (const CollectiveRow& row : reference) samples.push_back(collective_sample(row));
  std::map<std::string, std::vector<const CollectiveSample*>> problems;
  for (const CollectiveSample& s : samples)
    if (s.reason.empty()) {
      problems[s.problem()].push_back(&s);
      if (s.many()) largest_[s.fabric] = std::max(largest_[s.fabric], s.row->bytes);
    }
  for (const auto& [problem, members] : problems) fits_.emplace(problem, CollectiveFit(members));
}

RunFabric::Group RunFabric::group(std::int64_t ranks, std::int64_t stride, std::int64_t per_domain) {
  return {ranks, std::clamp<std::int64_t>(per_domain / std::max<std::int64_t>(1, stride), 1,
                                          std::max<std::int64_t>(1, ranks))};
}

double RunFabric::seconds(OpKind kind, double bytes, const Group& group, const RunRow& run) const {
  if (group.ranks < 2 || bytes <= 0) return 0;
  const FabricText fabric = fabric_text(run);
  CollectiveRow row;
  row.gpu = run.gpu;
  row.nodes = group.nodes();
  row.gpus = group.ranks;
  row.fewest_on_node = group.ranks - (row.nodes - 1) * group.in_node;
  row.fabric = row.nodes > 1 ? fabric.fabric : "NVSwitch";
  row.note = fabric.note;
  row.gpus_per_node = nvlink_domain(run);
  row.collective = nccl_name(kind);
  const auto known = largest_.find(row.fabric);
  row.bytes = known == largest_.end() ? bytes : std::min(bytes, known->second);
  row.seconds = 1;  // nothing measured; the sample wants a time
  const CollectiveSample sample = collective_sample(row);
  if (!sample.reason.empty()) throw_error(Code::usage, "{}", sample.reason);
  const auto fit = fits_.find(sample.problem());
  if (fit == fits_.end()) throw_error(Code::usage, "no measurement of {}", sample.problem());
  return fit->second.seconds(sample) * bytes / row.bytes;
}

double RunFabric::send_s(double bytes, bool over_nodes, const RunRow& run) const {
  // As one step of a ring over two ranks: all of a gather's buffer crosses the link once, half in each direction.
  return seconds(OpKind::all_gather, 2 * bytes, over_nodes ? Group{2, 1} : Group{2, 2}, run);
}

}  // namespace wt
