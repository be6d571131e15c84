#include "sim/measurements/row_exchange_rows.hpp"

#include <fmt/core.h>

#include "sim/measurements/csv.hpp"
#include "sim/measurements/origins.hpp"

namespace wt {
namespace {

void fill_row_exchange(const CsvTable& table, const CsvRow& cells, RowExchangeRow& row) {
  const auto text = [&](const char* column) { return cells.cells[table.at(column)]; };
  row.source = text("source");
  row.origin = Origins::published().of(row.source);
  row.transport = text("transport");
  row.low_latency = text("kernels") == "low_latency";
  row.nodes = whole_number(table, cells, table.at("nodes"), 1).value_or(1);
  row.row_bytes = needed_number(table, cells, table.at("row_bytes"), 0);
  row.Bps = needed_number(table, cells, table.at("GBps"), 0) * 1e9;
  const std::string dispatcher = text("dispatcher");
  row.dispatcher = dispatcher == "uccl" ? Dispatcher::uccl : Dispatcher::deepep;
  if (row.source.empty())
    row.unusable = "no source";
  else if (dispatcher != "uccl" && dispatcher != "deepep")
    row.unusable = fmt::format("dispatcher: found '{}', allowed deepep, uccl", dispatcher);
  else if (text("kernels") != "normal" && !row.low_latency)
    row.unusable = fmt::format("kernels: found '{}', allowed normal, low_latency", text("kernels"));
  else if (row.nodes < 2)
    row.unusable = "no other node to send to";
  else if (!(row.row_bytes > 0) || !(row.Bps > 0))
    row.unusable = "neither bytes nor bandwidth";
}

}  // namespace

std::vector<RowExchangeRow> read_row_exchanges(const std::filesystem::path& file) {
  return rows_of<RowExchangeRow>(
      read_csv(file, {"source", "gpu", "transport", "nodes", "dispatcher", "kernels", "operation", "row_bytes", "GBps"},
               OtherColumns::ignored),
      fill_row_exchange);
}

}  // namespace wt
