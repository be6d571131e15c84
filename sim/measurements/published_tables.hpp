// The published measurements from which times are derived for a machine that was not measured: the tables of
// configs/measurements, read once.
#pragma once
#include <array>
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
  /// Rows of the table of times, rates of kernels that it lacks, and grouped products, also those of our profiles
  /// (kGroupedProfiles). Rates of single products are left out: many are the best result of a search.
  std::vector<KernelRow> kernels;
  std::vector<CollectiveRow> collectives;
  std::vector<RowExchangeRow> row_exchanges;
  std::vector<RunRow> runs;         ///< with a step time
  std::vector<RunRow> memory_runs;  ///< with a memory figure
  std::vector<OutsideRow> outside;  ///< memory outside allocators
  std::vector<MeasuredRun> step_errors;
};

/// Profiles beside the folder of measurements whose grouped products count as published, with their sources in
/// origins.csv.
inline constexpr std::array<const char*, 2> kGroupedProfiles = {"profiles/h200-dbrx.json", "profiles/h200-moe.json"};

/// Throws Error{usage} as the readers do, and if Origins::published() does not know the source of a usable row.
PublishedTables read_published_tables(const std::filesystem::path& folder);

}  // namespace wt
