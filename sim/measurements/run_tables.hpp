// Readers of the two schemas of run_rows.hpp.
#pragma once
#include <filesystem>
#include <functional>
#include <vector>

#include "sim/measurements/csv.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

std::vector<RunRow> read_training_runs(const std::filesystem::path& file);
std::vector<RunRow> read_simulator_tables(const std::filesystem::path& file);

/// One row per line of the table, in order of lines. `fill` sets what the cells say, or throws. This function derives
/// the other fields and checks the row.
std::vector<RunRow> run_rows(const CsvTable& table, const std::function<void(const CsvRow&, RunRow&)>& fill);

}  // namespace wt
