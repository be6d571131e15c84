#include "sim/measurements/row_exchange_rows.hpp"

#include <fmt/core.h>

#include <cmath>
#include <set>
#include <string>

#include "configs/base/lists.hpp"
#include "configs/base/number.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/measurements/origins.hpp"

namespace wt {
namespace {

void fill_row_exchange(const CsvTable& table, const CsvRow& cells, RowExchangeRow& row) {
  const auto text = [&](const char* column) { return cells.cells[table.at(column)]; };
  row.source = text("source");
  row.origin = Origins::published().of(row.source);
  row.gpu = text("gpu");
  row.transport = text("transport");
  row.operation = text("operation");
  row.low_latency = text("kernels") == "low_latency";
  row.nodes = whole_number(table, cells, table.at("nodes"), 1).value_or(1);
  row.row_bytes = needed_number(table, cells, table.at("row_bytes"), 0);
  row.Bps = number(table, cells, table.at("GBps"), 0).value_or(0) * 1e9;
  row.tokens = number(table, cells, table.at("tokens"), 1).value_or(0);
  row.topk = whole_number(table, cells, table.at("topk"), 1).value_or(0);
  row.seconds = number(table, cells, table.at("time_us"), 0).value_or(0) * 1e-6;
  row.library = text("dispatcher");
  static const std::set<std::string> libraries = {"deepep", "mori", "pplx", "uccl"};
  if (row.source.empty())
    row.unusable = "no source";
  else if (!libraries.contains(row.library))
    row.unusable = fmt::format("dispatcher: found '{}', allowed {}", row.library, joined(libraries, ", "));
  else if (text("kernels") == "rdma")
    row.unusable = "raw writes are neither a dispatch nor a combine";
  else if (text("kernels") != "normal" && !row.low_latency)
    row.unusable = fmt::format("kernels: found '{}', allowed normal, low_latency", text("kernels"));
  else if (row.nodes < 2)
    row.unusable = "no other node to send to";
  else if (!(row.row_bytes > 0))
    row.unusable = "no bytes of a row";
  else if (!(row.Bps > 0) && !(row.seconds > 0 && row.tokens > 0 && row.topk > 0))
    row.unusable = "neither GBps nor tokens, topk and time_us";
}

}  // namespace

double RowExchangeRow::nic_bytes() const {
  const double others = as_double(nodes - 1), share = others / as_double(nodes), k = as_double(topk);
  const bool by_expert = library == "pplx" || (low_latency && library != "mori");
  return tokens * row_bytes * (by_expert ? k * share : others * (1 - std::pow(share, k)));
}

std::string RowExchangeRow::setup() const {
  return fmt::format("{} | {} | {} | {} nodes | {}{}", source, gpu, transport, nodes, library,
                     low_latency ? ", low latency" : "");
}

std::vector<RowExchangeRow> read_row_exchanges(const std::filesystem::path& file) {
  return rows_of<RowExchangeRow>(
      read_csv(file, {"source", "gpu", "transport", "nodes", "dispatcher", "kernels", "operation", "row_bytes", "GBps"},
               OtherColumns::ignored, {"tokens", "topk", "time_us"}),
      fill_row_exchange);
}

}  // namespace wt
