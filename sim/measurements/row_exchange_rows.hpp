// How fast kernels that send the rows of tokens one by one exchanged them between nodes, where the host passes each on
// to the network: one row a benchmark. Columns of the CSV: source, gpu, transport, nodes, dispatcher, kernels (normal:
// DeepEP's for training; low_latency: a message a row and expert), operation, row_bytes, GBps, note. GBps is what the
// benchmarks of DeepEP and UCCL-EP print: bytes of all rows sent to nodes, a rank's own among them, over the time.
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
  std::string unusable = {};  ///< why the row says nothing

  /// For each row that a rank sends to another node: of `nodes` alike, its own gets as many.
  double seconds_a_row() const { return row_bytes / Bps * static_cast<double>(nodes) / static_cast<double>(nodes - 1); }
};

/// Every row of the table, in order. Throws Error{usage} as read_csv does.
std::vector<RowExchangeRow> read_row_exchanges(const std::filesystem::path& file);

}  // namespace wt
