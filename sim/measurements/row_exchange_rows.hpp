// Benchmarks of libraries that dispatch tokens to experts on several nodes and combine what comes back. Columns of the
// CSV: source, gpu, transport, nodes, dispatcher (the library: deepep, uccl, mori, pplx), kernels (normal: for
// training; low_latency: DeepEP's send one message per row and expert; rdma: raw writes of UCCL's threads), operation,
// row_bytes; then either GBps or tokens, topk and time_us; note. GBps as the benchmarks of DeepEP and UCCL-EP print it:
// bytes of all rows sent to nodes, including the rank's own, over the time. tokens: of one rank.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"

namespace wt {

struct RowExchangeRow {
  std::int64_t line = 0;  ///< in the file
  std::string source, gpu, transport, operation;
  std::string origin;  ///< who published it (Origins)
  std::string library = "deepep";
  bool low_latency = false;
  std::int64_t nodes = 2, topk = 0;
  double row_bytes = 0;
  double Bps = 0;                  ///< 0 = not said
  double tokens = 0, seconds = 0;  ///< of one rank; 0 = not said
  std::string unusable = {};       ///< why the row cannot be used; empty = it can

  /// Seconds per row that a rank sends to another node. Each of `nodes`, including its own, gets equally many rows.
  double seconds_a_row() const { return row_bytes / Bps * static_cast<double>(nodes) / static_cast<double>(nodes - 1); }
  /// Bytes that a rank sends to other nodes. pplx and low-latency kernels other than mori's send a row for each expert;
  /// the others send a token once to each node that has one of its experts. Experts are drawn evenly.
  double nic_bytes() const;
  /// Source, GPU, transport, nodes, library and kernels: equal for rows of one set-up.
  std::string setup() const;
};

/// Every row of the table, in order. Throws Error{usage} as read_csv does.
std::vector<RowExchangeRow> read_row_exchanges(const std::filesystem::path& file);

}  // namespace wt
