#include "sim/measurements/collective_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "configs/base/error.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/measurements/origins.hpp"

namespace wt {

std::int64_t fewest_on_node(std::int64_t nodes, std::int64_t gpus, std::int64_t gpus_per_node) {
  if (gpus % nodes == 0) return gpus / nodes;
  const std::int64_t last = gpus - (nodes - 1) * gpus_per_node;  // schedulers fill one node after the other
  return last > 0 && last <= gpus_per_node ? last : gpus / nodes;
}

std::int64_t CollectiveRow::domains() const {
  const std::int64_t domain = interconnect.nvlink_domain;
  return domain > interconnect.gpus_per_node ? std::min(nodes, (gpus + domain - 1) / domain) : nodes;
}

std::string CollectiveRow::cluster() const {
  return fmt::format("{} | {} | {} nodes, {} GPUs | {}", source, gpu, nodes, gpus, interconnect.fabric);
}

namespace {

/// The collective by nccl-tests' name in any spelling: "All-Reduce", "allreduce", "all_reduce_perf".
std::optional<OpKind> kind_named(const std::string& said) {
  std::string letters;
  for (const char c : said)
    if (std::isalpha(static_cast<unsigned char>(c))) letters += static_cast<char>(std::tolower(c));
  if (letters.ends_with("perf")) letters.erase(letters.size() - 4);
  for (const auto& [name, kind] : {std::pair("allreduce", OpKind::all_reduce),
                                   {"allgather", OpKind::all_gather},
                                   {"reducescatter", OpKind::reduce_scatter},
                                   {"alltoall", OpKind::all_to_all},
                                   {"broadcast", OpKind::broadcast},
                                   {"sendrecv", OpKind::send}})
    if (letters == name) return kind;
  return std::nullopt;
}

/// Index of the cell's word in `allowed`; an empty cell means the first word.
std::size_t word(const std::string& column, const std::string& said, const std::vector<std::string>& allowed) {
  if (said.empty()) return 0;
  for (std::size_t i = 0; i < allowed.size(); ++i)
    if (said == allowed[i]) return i;
  std::string list;
  for (const std::string& each : allowed) list += (list.empty() ? "" : ", ") + each;
  throw_usage("{}: found '{}', allowed {}", column, said, list);
}

void fill(const CsvTable& table, const CsvRow& cells, CollectiveRow& row) {
  const auto text = [&](const char* column) { return cells.cells[table.at(column)]; };
  const auto real = [&](const char* column) { return number(table, cells, table.at(column), 0).value_or(0); };
  row.source = text("source");
  row.origin = Origins::published().of(row.source);
  row.gpu = text("gpu");
  row.collective = text("collective");
  row.kind = kind_named(row.collective);
  row.note = text("note");
  row.nodes = needed_whole_number(table, cells, table.at("nodes"), 1);
  row.gpus = needed_whole_number(table, cells, table.at("gpus"), 2);
  if (row.nodes > row.gpus) throw_usage("found {} nodes for {} GPUs, needs a GPU a node at least", row.nodes, row.gpus);
  const auto node_gpus = whole_number(table, cells, table.at("node_gpus"), 1);
  if (node_gpus && row.gpus > row.nodes * *node_gpus)
    throw_usage("{}: line {}: node_gpus: found {} GPUs on {} nodes of {}, needs at most {}; correct one of the cells",
                table.file.string(), cells.line, row.gpus, row.nodes, *node_gpus, row.nodes * *node_gpus);
  row.interconnect = read_interconnect(text("fabric"), node_gpus.value_or(gpus_of_host(row.gpu)));
  // A "node" with more GPUs than a host has is a domain of several hosts: some tables count racks as nodes.
  std::int64_t& domain = row.interconnect.nvlink_domain;
  domain = std::max(domain, (row.gpus + row.nodes - 1) / row.nodes);
  if (!text("transport").empty()) row.interconnect.transport = text("transport");
  if (const double said = real("node_GBps"); said > 0) row.interconnect.node_Bps = said * 1e9;
  row.fewest_on_node = whole_number(table, cells, table.at("fewest_on_node"), 1)
                           .value_or(fewest_on_node(row.domains(), row.gpus, row.interconnect.nvlink_domain));
  const std::size_t reduction = word("reduction", text("reduction"), {"any", "ring", "network"});
  row.ring_only = reduction == 1;
  row.reduced_in_network = reduction == 2;
  row.timed_from_python = word("timer", text("timer"), {"nccl-tests", "torch"}) == 1;
  row.shared_with_other_jobs = word("shared", text("shared"), {"0", "1"}) == 1;
  row.evidence = text("evidence").empty() ? Evidence::published : evidence_from_string(text("evidence"));
  const auto size = number(table, cells, table.at("bytes"), 1);
  row.bytes = size.value_or(kPlateauBytes);
  row.bytes_assumed = !size;
  const double by_time = real("time_us") * 1e-6, by_buffer = real("algbw_GBps") * 1e9,
               by_bus = real("busbw_GBps") * 1e9;
  if (by_time > 0 && !size) throw_usage("bytes: found nothing beside a time, needs the size of the message");
  if (by_time > 0)
    row.seconds = by_time;
  else if (by_bus > 0 && row.kind)
    row.seconds = row.bytes * bus_share(*row.kind, static_cast<double>(row.gpus)) / by_bus;
  else if (by_buffer > 0)
    row.seconds = row.bytes / by_buffer;
}

}  // namespace

std::vector<CollectiveRow> read_collective_rows(const std::filesystem::path& file) {
  const CsvTable table =
      read_csv(file, {"gpu", "nodes", "gpus", "collective"}, OtherColumns::ignored,
               {"source", "fabric", "bytes", "time_us", "algbw_GBps", "busbw_GBps", "note", "transport", "node_GBps",
                "node_gpus", "reduction", "timer", "shared", "evidence", "fewest_on_node"});
  return rows_of<CollectiveRow>(table, fill);
}

}  // namespace wt
