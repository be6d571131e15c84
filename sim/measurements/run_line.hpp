// A line of a table of training runs: its cells by column name.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "configs/base/error.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

/// The table and its row must outlive it. Members throw Error{usage} for cells that do not suit their column.
class RunLine {
 public:
  RunLine(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}
  const std::string& text(const std::string& column) const { return row_.cells[table_.at(column)]; }
  bool has(const std::string& column, const std::string& part) const {
    return text(column).find(part) != std::string::npos;
  }
  double real(const std::string& column) const { return number(table_, row_, table_.at(column), 0).value_or(0); }
  /// A whole number. 0 means the same as an empty cell.
  std::optional<std::int64_t> count(const std::string& column, double highest = 1e6) const {
    const auto value = whole_number(table_, row_, table_.at(column), 0, highest);
    return value == 0 ? std::nullopt : value;
  }
  std::int64_t needed(const std::string& column, double highest = 1e6) const {
    if (const auto value = count(column, highest)) return *value;
    throw_usage("{} not said", column);
  }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

/// The model's shape: a preset's with the line's layers, or that of the columns. Usual values fill what the columns
/// leave out; `assumed` names these. Throws Error{usage} if the shape is not stated or not modelled.
void fill_model(const RunLine& line, RunRow& row);

// Columns of free text. Words that are not understood go to `assumed`. A contradiction throws Error{usage}, as does a
// text without any word that is understood.

/// Routing, dispatcher, CUDA graphs and overlap. Read the layout before.
void fill_experts(const RunLine& line, RunRow& row);
void fill_recompute(const RunLine& line, RunRow& row);
/// Memory figure and its kind, how the run ended, the GPU's memory, and the optimizer.
void fill_memory(const RunLine& line, RunRow& row);
/// What the row says where its stack's file says what most runs do.
void fill_row_stack(const RunLine& line, RunRow& row);
/// "amp_bf16/DEFAULT", "FP8", "fp8 (MXFP8)", "bf16 (fp32 grad accum)" as the precision word of a run file. A plain fp32
/// means products without tensor cores, PyTorch's default.
std::string precision_word(const RunLine& line, RunRow& row);
/// Reads fsdp_mode except for its stage, which is read elsewhere.
void note_unknown_sharding(const RunLine& line, RunRow& row);

}  // namespace wt
