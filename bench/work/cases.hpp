// The work items that a kernel suite measures. For a run: the items of its step program in its own layout and in every
// other layout of its model over up to four ranks, and a ladder of products around them, so that fits cover other model
// widths. For a study: only the items of its layouts.
#pragma once
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "sim/program/compose/compose.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

struct RunSpec;

/// References in fp64 of larger inputs are computed where these are: a table of 100,000 tokens keeps a host busy for
/// minutes.
inline constexpr std::int64_t kHostReference_bytes = 32 << 20;

/// Above this many FLOPs a reference covers fewer rows: a fifth of a second of a host core.
inline constexpr double kMostReferenceFlops = 2e9;

/// Each (kernel, pass, precision, dims, rows) once; rows.fixed is the row count and rows.per_row 0. Rows that depend on
/// routing are measured at a quarter, half, once and twice the balanced load; other items at their rows and, unless
/// `quick`, at half and double.
std::vector<WorkItem> kernel_cases(const RunSpec& run, bool quick);

/// The work items of a program's ops; ops inside a loop count once.
std::vector<WorkItem> items_of(const Program& program);

/// The items of several programs' steps, each once by kernel and shape. Rows that depend on routing are measured at the
/// loads above; `balanced_rows` are a rank's rows with balanced routing.
struct StepItems {
  void add(const ProgramSet& set, double balanced_rows);
  std::vector<WorkItem> list() const;

 private:
  std::map<std::tuple<Kernel, Pass, Precision, std::array<std::int64_t, 4>>, std::set<std::int64_t>> rows_;
};

}  // namespace wt
