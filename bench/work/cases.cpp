#include "bench/work/cases.hpp"

#include <algorithm>
#include <cmath>

#include "configs/files/run.hpp"
#include "sim/program/walk.hpp"

namespace wt {
namespace {

constexpr double kBalancedLoads[] = {0.25, 0.5, 1.0, 2.0};
constexpr std::int64_t kMostRanks = 4;
/// Row counts of other layouts that are within this factor of a measured one are interpolated instead.
constexpr double kCloseRows = 1.3;

using Key = std::tuple<Kernel, Pass, Precision, std::array<std::int64_t, 4>>;
Key key_of(const WorkItem& item) { return {item.kernel, item.pass, item.precision, item.dims}; }
WorkItem item_of(const Key& key, std::int64_t rows) {
  return make_item(std::get<0>(key), std::get<1>(key), std::get<2>(key), {static_cast<double>(rows), 0},
                   std::get<3>(key));
}

struct Rows {
  std::set<std::int64_t> wanted;  ///< row counts of the run itself
  std::set<std::int64_t> nearby;  ///< row counts of other layouts
};
using Cases = std::map<Key, Rows>;

/// Rows of an item as measured: all loads where routing decides, else its own and their half and double.
std::vector<double> row_counts(const WorkItem& item, double balanced_rows, bool scaled) {
  std::vector<double> out;
  if (item.rows.per_row > 0)
    for (double load : kBalancedLoads) out.push_back(item.rows.at(load * balanced_rows));
  else
    for (double factor : {0.5, 1.0, 2.0})
      if (scaled || factor == 1.0) out.push_back(factor * item.rows.fixed);
  return out;
}

std::vector<WorkItem> items_of(const ProgramSet& set) {
  std::vector<WorkItem> out;
  for (const Program& program : set.programs) std::ranges::copy(items_of(program), std::back_inserter(out));
  return out;
}

void add_layout(const RunSpec& run, const Layout& layout, bool own, bool scaled, Cases& cases) {
  const double balanced_rows = static_cast<double>(run.tokens_per_microbatch() * run.model.top_k);
  for (const WorkItem& item : items_of(build_program_set(run.model, layout, program_options(run))))
    for (double rows : item.kernel == Kernel::host_copy || item.kernel == Kernel::host_adamw
                           ? std::vector<double>{}  // runs on the host and is not measured
                           : row_counts(item, balanced_rows, own && scaled)) {
      Rows& known = cases[key_of(item)];
      if (const std::int64_t count = std::llround(rows); count > 0) (own ? known.wanted : known.nearby).insert(count);
    }
}

std::vector<Layout> other_layouts(const RunSpec& run) {
  std::vector<Layout> out;
  for (std::int64_t world = 1; world <= kMostRanks; world *= 2)
    for (std::int64_t shard = 1; shard <= world; shard *= 2)
      for (std::int64_t expert = 1; expert <= shard; expert *= 2) {
        if (run.model.experts % expert != 0 || (run.model.experts == 0 && expert > 1)) continue;
        Layout layout = run.layout;
        layout.replicate = world / shard;
        layout.shard = shard;
        layout.expert = expert;
        layout.context = layout.optimizer_shard = 1;
        layout.placement.clear();
        out.push_back(layout);
      }
  return out;
}

/// Adds products at half, once and twice the model's widths.
void add_ladder(const RunSpec& run, Cases& cases) {
  const ModelSpec& m = run.model;
  const double tokens = static_cast<double>(run.tokens_per_microbatch());
  const auto add = [&](Kernel kernel, double rows, double n, double k, std::int64_t groups) {
    const auto width = [](double value) { return std::max<std::int64_t>(8, std::llround(value / 8) * 8); };
    for (Pass pass : {Pass::forward, Pass::backward})
      cases[{kernel, pass, run.precision, {width(n), width(k), groups, 0}}].wanted.insert(std::llround(rows));
  };
  const double d = static_cast<double>(m.d_model), ffn = static_cast<double>(m.ffn);
  const std::pair<double, double> products[] = {{d / 2, d / 2}, {d, d / 2},     {d / 2, d}, {2 * d, d},
                                                {d, 2 * d},     {2 * d, 2 * d}, {ffn, d},   {d, ffn}};
  for (const auto& [n, k] : products) add(Kernel::gemm, tokens, n, k, 0);
  if (m.experts == 0) return;
  for (double scale : {0.5, 2.0}) {
    const double rows = tokens * static_cast<double>(m.top_k);
    const std::int64_t groups = m.experts / run.layout.expert;
    add(Kernel::grouped_gemm, rows, 2 * ffn * scale, d * scale, groups);
    add(Kernel::grouped_gemm, rows, d * scale, ffn * scale, groups);
  }
}

bool close_to_any(std::int64_t rows, const std::set<std::int64_t>& others) {
  return std::ranges::any_of(others, [&](std::int64_t other) {
    return static_cast<double>(std::max(rows, other)) < kCloseRows * static_cast<double>(std::min(rows, other));
  });
}

}  // namespace

std::vector<WorkItem> items_of(const Program& program) {
  std::vector<WorkItem> out;
  for_each_op(program.nodes,
              [&](const Op& op, const LoopsAround&) { out.insert(out.end(), op.work.begin(), op.work.end()); });
  return out;
}

std::vector<WorkItem> kernel_cases(const RunSpec& run, bool quick) {
  Cases cases;
  add_layout(run, run.layout, true, !quick, cases);
  for (const Layout& layout : other_layouts(run)) add_layout(run, layout, false, false, cases);
  add_ladder(run, cases);
  std::vector<WorkItem> out;
  for (auto& [key, rows] : cases) {
    std::set<std::int64_t> chosen = rows.wanted;
    for (std::int64_t count : rows.nearby)
      if (!close_to_any(count, chosen)) chosen.insert(count);
    for (std::int64_t count : chosen) out.push_back(item_of(key, count));
  }
  return out;
}

void StepItems::add(const ProgramSet& set, double balanced_rows) {
  for (const WorkItem& item : items_of(set))
    for (double rows : row_counts(item, balanced_rows, false))
      if (const std::int64_t count = std::llround(rows); count > 0) rows_[key_of(item)].insert(count);
}

std::vector<WorkItem> StepItems::list() const {
  std::vector<WorkItem> out;
  for (const auto& [key, rows] : rows_)
    for (std::int64_t count : rows) out.push_back(item_of(key, count));
  return out;
}

}  // namespace wt
