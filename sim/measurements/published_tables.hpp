// The published measurements that times rest on where a machine was not measured itself: the tables of
// configs/measurements, read once.
#pragma once
#include <filesystem>
#include <vector>

#include "sim/measurements/collective_rows.hpp"
#include "sim/measurements/kernel_rows.hpp"
#include "sim/measurements/outside_rows.hpp"
#include "sim/measurements/row_exchange_rows.hpp"
#include "sim/measurements/run_rows.hpp"
#include "sim/measurements/step_errors.hpp"

namespace wt {

struct PublishedTables {
  /// Times, and of rates those of kernels that the times do not have: rates of single products, many of them the best
  /// of a search, stay out.
  std::vector<KernelRow> kernels;
  std::vector<CollectiveRow> collectives;
  std::vector<RowExchangeRow> row_exchanges;
  std::vector<RunRow> runs;         ///< that have steps
  std::vector<RunRow> memory_runs;  ///< that have memory
  std::vector<OutsideRow> outside;  ///< of allocators
  std::vector<StepError> step_errors;
};

/// Throws Error{usage} as the readers do, and where a usable row has a source that Origins::published() does not know.
PublishedTables read_published_tables(const std::filesystem::path& folder);

}  // namespace wt
