// Which work items a kernel suite measures: what the run's step program executes, in its own layout and in every other
// layout of its model over up to four ranks, and a ladder of products around it so that fits reach other model widths;
// or what a study's layouts execute, and no more.
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

/// FLOPs beyond which such references are taken of fewer rows: a fifth of a second of a host's core.
inline constexpr double kMostReferenceFlops = 2e9;

/// Each (kernel, pass, precision, dims, rows) once; rows.fixed is the row count and rows.per_row 0. Rows that routing
/// decides are measured at a quarter, half, once and twice the balanced load; other items at their rows and, unless
/// `quick`, at half and double.
std::vector<WorkItem> kernel_cases(const RunSpec& run, bool quick);

/// What a program's ops compute; those inside a loop once.
std::vector<WorkItem> items_of(const Program& program);

/// What steps of these programs execute, each item once, by kernel and shape: rows that routing decides at the loads
/// above, `balanced_rows` being those that a rank receives where all experts are chosen alike.
struct StepItems {
  void add(const ProgramSet& set, double balanced_rows);
  std::vector<WorkItem> list() const;

 private:
  std::map<std::tuple<Kernel, Pass, Precision, std::array<std::int64_t, 4>>, std::set<std::int64_t>> rows_;
};

}  // namespace wt
