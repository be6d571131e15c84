// Speed of kernels that send tokens' rows one by one between nodes, through a host that passes each row to the network:
// one row per benchmark. Columns of the CSV: source, gpu, transport, nodes, dispatcher, kernels (normal: DeepEP's for
// training; low_latency: one message per row and expert), operation, row_bytes, GBps, note. GBps as the benchmarks of
// DeepEP and UCCL-EP print it: bytes of all rows sent to nodes, including the rank's own, over the time.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"

namespace wt {

struct RowExchangeRow {
  std::int64_t line = 0;  ///< in the file
  std::string source, transport;
  std::string origin;  ///< who published it (Origins)
  Dispatcher dispatcher = Dispatcher::deepep;
  bool low_latency = false;
  std::int64_t nodes = 2;
  double row_bytes = 0, Bps = 0;
  std::string unusable = {};  ///< why the row cannot be used; empty = it can

  /// Seconds per row that a rank sends to another node. Each of `nodes`, including its own, gets equally many rows.
  double seconds_a_row() const { return row_bytes / Bps * static_cast<double>(nodes) / static_cast<double>(nodes - 1); }
};

/// Every row of the table, in order. Throws Error{usage} as read_csv does.
std::vector<RowExchangeRow> read_row_exchanges(const std::filesystem::path& file);

}  // namespace wt
