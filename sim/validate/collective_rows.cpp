#include "sim/validate/collective_rows.hpp"

#include "configs/spec/error.hpp"
#include "sim/validate/csv.hpp"

namespace wt {

double bus_share(const std::string& collective, std::int64_t ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return collective == "all_reduce" ? 2 * share : share;
}

std::vector<CollectiveRow> read_collective_rows(const std::filesystem::path& file) {
  enum { source, gpu, nodes, gpus, fabric, collective, bytes, time_us, algbw, busbw, note };
  const CsvTable table = read_csv(file, {"source", "gpu", "nodes", "gpus", "fabric", "collective", "bytes", "time_us",
                                         "algbw_GBps", "busbw_GBps", "note"});
  refuse_broken(table);
  std::vector<CollectiveRow> rows;
  rows.reserve(table.rows.size());
  for (const CsvRow& cells : table.rows) {
    CollectiveRow row;
    row.line = cells.line;
    row.source = cells.cells[source];
    row.gpu = cells.cells[gpu];
    row.fabric = cells.cells[fabric];
    row.collective = cells.cells[collective];
    row.note = cells.cells[note];
    row.nodes = static_cast<std::int64_t>(needed_number(table, cells, nodes, 1));
    row.gpus = static_cast<std::int64_t>(needed_number(table, cells, gpus, 2));
    if (row.nodes > row.gpus)
      throw_error(Code::usage, "{}: line {}: found {} nodes for {} GPUs, needs a GPU a node at least", file.string(),
                  row.line, row.nodes, row.gpus);
    const auto size = number(table, cells, bytes, 1);
    row.bytes = size.value_or(kPlateauBytes);
    row.bytes_assumed = !size;
    const double by_time = number(table, cells, time_us, 0).value_or(0) * 1e-6;
    const double by_buffer = number(table, cells, algbw, 0).value_or(0) * 1e9;
    const double by_bus = number(table, cells, busbw, 0).value_or(0) * 1e9;
    if (by_time > 0)
      row.seconds = by_time;
    else if (by_bus > 0)
      row.seconds = row.bytes * bus_share(row.collective, row.gpus) / by_bus;
    else if (by_buffer > 0)
      row.seconds = row.bytes / by_buffer;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace wt
