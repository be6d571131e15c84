#include "sim/measurements/run_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "configs/base/error.hpp"
#include "sim/measurements/origins.hpp"
#include "sim/measurements/run_tables.hpp"

namespace wt {
namespace {

void check_mesh(const RunRow& row) {
  const double mesh = static_cast<double>(row.dp) * static_cast<double>(row.tp * row.pp) * static_cast<double>(row.cp);
  if (mesh != static_cast<double>(row.gpus))
    throw_usage("dp {} x tp {} x pp {} x cp {} = {} ranks on {} GPUs", row.dp, row.tp, row.pp, row.cp, mesh, row.gpus);
  if (row.pp * row.vp > row.model.layers + 2)  // embedding and output projection may have a chunk each
    throw_usage("{} pipeline stages of {} chunks for {} layers", row.pp, row.vp, row.model.layers);
  if (row.model.heads % row.tp != 0) throw_usage("{} heads for tensor parallelism of {}", row.model.heads, row.tp);
}

void complete_batch(RunRow& row) {
  if (row.microbatch < 1) throw_usage("microbatch not said");
  const std::int64_t at_once = row.dp * row.microbatch;
  if (row.accumulation == 0) {
    if (row.global_batch < 1) throw_usage("neither global batch nor accumulation said");
    if (row.global_batch % at_once != 0)
      throw_usage("a global batch of {} sequences for {} ranks x {} sequences", row.global_batch, row.dp,
                  row.microbatch);
    row.accumulation = row.global_batch / at_once;
  }
  const std::int64_t batch = at_once * row.accumulation;
  if (batch == row.global_batch) return;
  // For a pipeline, the accumulation is the one that the schedule printed.
  if (row.pp == 1)
    throw_usage("a global batch of {} sequences is not {} ranks x {} sequences x {} microbatches", row.global_batch,
                row.dp, row.microbatch, row.accumulation);
  row.assumed.push_back(
      fmt::format("a batch of {} sequences, by its microbatches, where {} are said", batch, row.global_batch));
  row.global_batch = batch;
}

std::string name_of(const RunRow& r) {
  std::string name = fmt::format("{}, {} x {}, dp {} tp {} pp {}", r.model.name, r.gpus, r.gpu, r.dp, r.tp, r.pp);
  if (r.cp > 1) name += fmt::format(" cp {}", r.cp);
  if (r.ep > 1) name += fmt::format(" ep {}", r.ep);
  return name + fmt::format(", {} x {} x {} tokens", r.accumulation, r.microbatch, r.seq);
}

/// If a source does not state the recompute of a run, assumes that of most of its other runs.
void assume_recompute(std::vector<RunRow>& rows) {
  std::map<std::string, std::map<std::string, int>> said;
  for (const RunRow& row : rows)
    if (!row.recompute_text.empty()) ++said[row.source + row.framework][to_string(row.recompute)];
  for (RunRow& row : rows) {
    const auto others = said.find(row.source + row.framework);
    if (!row.recompute_text.empty() || !row.unusable.empty()) continue;
    if (others == said.end()) {
      row.assumed.emplace_back("no recompute");
      continue;
    }
    const auto most =
        std::ranges::max_element(others->second, [](const auto& a, const auto& b) { return a.second < b.second; });
    row.recompute = recompute_from_string(most->first);
    row.assumed.emplace_back("recompute as in the source's other runs");
  }
}

}  // namespace

/// A model cut to fewer layers belongs to the same group, and so do releases of one architecture (Llama 2 70B, Llama 3
/// 70B).
std::string run_group(const RunRow& row) {
  const ModelSpec& m = row.model;
  std::string width = fmt::format("{} | {} wide, ffn {}", row.framework, m.d_model, m.ffn);
  return m.experts > 0 ? fmt::format("{}, {} experts", width, m.experts) : width;
}

bool ends_count_as_layers(const RunRow& row) { return row.model.layers % (row.pp * row.vp) != 0; }

std::vector<RunRow> run_rows(const CsvTable& table, const std::function<void(const CsvRow&, RunRow&)>& fill) {
  auto rows = rows_of<RunRow>(table, [&](const CsvTable&, const CsvRow& cells, RunRow& row) {
    fill(cells, row);
    row.interconnect = interconnect_of(row.interconnect.fabric, row.gpu, row.gpus_per_node);
    row.model.check("shape of the model");
    check_mesh(row);
    complete_batch(row);
  });
  for (RunRow& row : rows) {
    row.group = run_group(row);
    row.origin = Origins::published().of(row.source);
    row.name = row.unusable.empty()     ? name_of(row)
               : row.model.name.empty() ? fmt::format("line {}", row.line)
                                        : fmt::format("{}, {} x {}", row.model.name, row.gpus, row.gpu);
  }
  assume_recompute(rows);
  return rows;
}

std::vector<RunRow> read_run_rows(const std::filesystem::path& file) {
  const std::vector<std::string> header = read_csv_header(file);
  const bool tables = std::ranges::find(header, "measured_metric") != header.end();
  return tables ? read_simulator_tables(file) : read_training_runs(file);
}

namespace {

std::vector<RunRow> rows_of_tables(const std::filesystem::path& folder, const std::vector<const char*>& tables) {
  std::vector<RunRow> out;
  for (const char* table : tables)
    for (RunRow& row : read_run_rows(folder / table)) out.push_back(std::move(row));
  return out;
}

}  // namespace

std::vector<RunRow> published_training_runs(const std::filesystem::path& measurements) {
  return rows_of_tables(measurements, {"training_runs.csv", "torchtitan_runs.csv", "later_runs.csv", "runs_2026.csv",
                                       "runs_late_2026.csv", "own_runs.csv"});
}

std::vector<RunRow> published_memory_runs(const std::filesystem::path& measurements) {
  return rows_of_tables(measurements, {"training_runs.csv", "simulator_tables.csv", "torchtitan_runs.csv"});
}

std::vector<RunRow> published_runs(const std::filesystem::path& measurements) {
  std::vector<RunRow> out = published_training_runs(measurements);
  for (RunRow& row : read_run_rows(measurements / "simulator_tables.csv")) out.push_back(std::move(row));
  return out;
}

}  // namespace wt
