#include "sim/measurements/routing_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "configs/base/error.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/measurements/origins.hpp"
#include "sim/measurements/run_layout.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kLoadColumns = {"method", "model", "layer", "iter"};
const std::vector<std::string> kSetupColumns = {"model_name",
                                                "layers",
                                                "hidden",
                                                "ffn",
                                                "experts",
                                                "top_k",
                                                "heads",
                                                "kv_heads",
                                                "vocabulary",
                                                "sequences",
                                                "sequence_tokens",
                                                "microbatches",
                                                "gpu",
                                                "gpus",
                                                "gpus_per_node",
                                                "interconnect",
                                                "expert_parallel",
                                                "loads_dataset",
                                                "loads_aux_loss",
                                                "source"};

bool has_all(const std::vector<std::string>& header, const std::vector<std::string>& columns) {
  return std::ranges::all_of(
      columns, [&](const std::string& column) { return std::ranges::find(header, column) != header.end(); });
}

/// Load columns and r0 to r(n-1), n >= 2.
std::vector<std::string> load_columns(const std::vector<std::string>& header) {
  std::vector<std::string> columns = kLoadColumns;
  for (std::size_t rank = 0; has_all(header, {fmt::format("r{}", rank)}); ++rank)
    columns.push_back(fmt::format("r{}", rank));
  return columns;
}

// Layers x GPUs, and replayed microbatches: a step of this size takes about seven seconds.
constexpr std::int64_t kMostBlocks = 100000, kMostMicrobatches = 3;

RoutedSetup setup_of(const CsvTable& table, const CsvRow& row) {
  const auto count = [&](const char* column) { return needed_whole_number(table, row, table.at(column), 1); };
  const auto text = [&](const char* column) { return row.cells[table.at(column)]; };
  const std::string where = fmt::format("{}: line {}", table.file.string(), row.line);
  RoutedSetup s;
  s.base = text("base_model");
  RunRow& run = s.run;
  ModelSpec& model = run.model;
  model.name = text("model_name");
  model.layers = count("layers");
  model.d_model = count("hidden");
  model.ffn = count("ffn");
  model.experts = count("experts");
  model.top_k = count("top_k");
  model.heads = count("heads");
  model.kv_heads = count("kv_heads");
  model.vocab = count("vocabulary");
  model.head_dim = model.d_model / model.heads;
  run.line = row.line;
  run.source = text("source");
  run.origin = Origins::published().of(run.source);
  run.framework = text("framework");
  run.precision = precision_recipe("amp_bf16", "precision");
  run.routing = RunRow::Routing::natural;
  run.gpu = text("gpu");
  run.gpus = run.dp = run.shard_group = count("gpus");
  run.gpus_per_node = count("gpus_per_node");
  run.interconnect = interconnect_of(text("interconnect"), run.gpu, run.gpus_per_node);
  run.ep = count("expert_parallel");
  run.zero_stage = 3;
  run.recompute = Recompute::block;
  run.seq = count("sequence_tokens");
  run.accumulation = count("microbatches");
  run.global_batch = count("sequences");
  const std::int64_t parts = run.gpus * run.accumulation;
  if (run.global_batch % parts != 0)
    throw_usage("{}: found {} sequences for {} GPUs x {} microbatches, needs a multiple", where, run.global_batch,
                run.gpus, run.accumulation);
  run.microbatch = run.global_batch / parts;
  if (model.d_model % model.heads != 0)
    throw_usage("{}: found a width of {} for {} heads, needs a multiple", where, model.d_model, model.heads);
  check_setup(s, where);
  s.loads_dataset = text("loads_dataset");
  s.loads_aux_loss = needed_number(table, row, table.at("loads_aux_loss"), 0);
  return s;
}

void add_tables(const fs::path& file, RoutedContext& context) {
  std::vector<std::string> header;
  try {
    header = read_csv_header(file);
  } catch (const Error& e) {
    if (e.code() != Code::usage) throw;
    return;  // another file in the same folder
  }
  if (has_all(header, kSetupColumns)) context.setups.merge(read_routed_setups(file, context.refused));
  if (has_all(header, kLoadColumns) && load_columns(header).size() > kLoadColumns.size())
    context.loads.merge(read_rank_loads(file, context.refused));
}

void add_folder(const fs::path& folder, RoutedContext& context) {
  std::set<fs::path> files;  // sorted: the same order on every machine
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ".csv") files.insert(entry.path());
  for (const fs::path& file : files) add_tables(file, context);
}

}  // namespace

void check_setup(const RoutedSetup& setup, const std::string& where) {
  const RunRow& run = setup.run;
  const std::int64_t replayed = std::min(run.accumulation, kMostMicrobatches);
  if (run.model.layers * run.gpus * replayed > kMostBlocks)
    throw_usage("{}: found {} layers on {} GPUs x {} microbatches, allowed are {} together", where, run.model.layers,
                run.gpus, replayed, kMostBlocks);
  run.model.check(where);
  layout_of(run).check(run.model, where);
}

std::vector<PlacedStep> read_placed_steps(const fs::path& file) {
  const CsvTable table = read_csv(file, {"method", "model_name", "avg_time_ms"}, OtherColumns::ignored,
                                  {"dataset", "aux_loss", "base_model", "experts", "top_k"});
  return rows_of<PlacedStep>(table, [](const CsvTable& from, const CsvRow& cells, PlacedStep& row) {
    row.dataset = cells.cells[from.at("dataset")];
    row.method = cells.cells[from.at("method")];
    row.model = cells.cells[from.at("model_name")];
    row.aux_loss = number(from, cells, from.at("aux_loss"), 0).value_or(0);
    row.seconds = needed_number(from, cells, from.at("avg_time_ms"), 0) * 1e-3;
    row.base = cells.cells[from.at("base_model")];
    row.experts = whole_number(from, cells, from.at("experts"), 1).value_or(0);
    row.top_k = whole_number(from, cells, from.at("top_k"), 1).value_or(0);
    if ((row.experts == 0) != (row.top_k == 0))
      throw_usage("columns 'experts' and 'top_k': found one of them, needs both or none");
    if (row.seconds <= 0) throw_usage("column 'avg_time_ms': found 0, needs a time above 0");
  });
}

namespace {

/// One line of a recording, or what is wrong with it.
struct LoadLine {
  std::int64_t line = 0, layer = 0, iteration = 0;
  std::pair<std::string, std::string> key;  ///< model, method
  std::vector<double> loads = {};           ///< rows of each rank over the mean of all ranks
  std::string unusable = {};
};

void fill_load(const CsvTable& table, const CsvRow& row, LoadLine& out) {
  out.key = {row.cells[table.at("model")], row.cells[table.at("method")]};
  std::vector<double>& rows = out.loads;
  for (std::size_t column = kLoadColumns.size(); column < table.columns.size(); ++column)
    rows.push_back(needed_number(table, row, column, 0));
  const double sum = std::accumulate(rows.begin(), rows.end(), 0.0);
  if (sum <= 0) throw_usage("{}: line {}: found no rows on any rank, needs some", table.file.string(), row.line);
  out.layer = needed_whole_number(table, row, table.at("layer"), 0);
  out.iteration = needed_whole_number(table, row, table.at("iter"), 0);
  for (double& each : rows) each *= static_cast<double>(rows.size()) / sum;
}

using Layers = std::map<std::int64_t, std::map<std::int64_t, std::vector<double>>>;

/// Throws Error{usage} if a layer or an iteration is missing.
RankLoads settled(const Layers& layers, const std::string& name) {
  RankLoads out;
  const std::size_t iterations = layers.begin()->second.size();
  for (const auto& [layer, loads] : layers) {
    if (layer != static_cast<std::int64_t>(out.size()) || loads.size() != iterations)
      throw_usage("{}: found layer {} with {} iterations, needs every layer from 0 with {}", name, layer, loads.size(),
                  iterations);
    std::vector<std::vector<double>> last;
    for (const auto& [iteration, ranks] : loads) last.push_back(ranks);
    last.erase(last.begin(), last.end() - static_cast<std::ptrdiff_t>(std::min(kSettled, last.size())));
    out.push_back(std::move(last));
  }
  return out;
}

}  // namespace

std::map<std::pair<std::string, std::string>, RankLoads> read_rank_loads(const fs::path& file,
                                                                         std::vector<std::string>& refused) {
  const CsvTable table = read_csv(file, load_columns(read_csv_header(file)));
  if (table.columns.size() < kLoadColumns.size() + 2)
    throw_usage("{}: line 1: found no columns r0 and r1, needs the rows of two ranks or more", file.string());
  std::map<std::pair<std::string, std::string>, Layers> seen;
  std::set<std::pair<std::string, std::string>> broken;
  for (const LoadLine& line : rows_of<LoadLine>(table, fill_load)) {
    std::string wrong = line.unusable;
    if (wrong.empty() && !seen[line.key][line.layer].emplace(line.iteration, line.loads).second)
      wrong = fmt::format("{}: line {}: found iteration {} of this method, model and layer twice, needs it once",
                          file.string(), line.line, line.iteration);
    if (wrong.empty()) continue;
    broken.insert(line.key);
    refused.push_back(std::move(wrong));
  }
  std::map<std::pair<std::string, std::string>, RankLoads> loads;
  for (const auto& [key, layers] : seen) {
    if (broken.count(key)) continue;
    try {
      loads[key] = settled(layers, fmt::format("{}: {} of {}", file.string(), key.second, key.first));
    } catch (const Error& e) {
      if (e.code() != Code::usage) throw;
      loads.erase(key);
      refused.emplace_back(e.what());
    }
  }
  return loads;
}

std::map<std::string, RoutedSetup> read_routed_setups(const fs::path& file, std::vector<std::string>& refused) {
  const CsvTable table = read_csv(file, kSetupColumns, OtherColumns::ignored, {"framework", "base_model"});
  struct Line {
    std::int64_t line = 0;
    RoutedSetup setup;
    std::string unusable = {};
  };
  std::map<std::string, RoutedSetup> setups;
  for (Line& line :
       rows_of<Line>(table, [](const CsvTable&from, const CsvRow&row, Line&out) { out.setup = setup_of(from, row); })) {
    const std::string name = line.setup.run.model.name;
    if (line.unusable.empty() && !setups.emplace(name, std::move(line.setup)).second)
      line.unusable =
          fmt::format("{}: line {}: found the model '{}' twice, needs it once", file.string(), line.line, name);
    if (!line.unusable.empty()) refused.push_back(line.unusable);
  }
  return setups;
}

RoutedContext read_routed_context(const fs::path& file, const fs::path& reference) {
  RoutedContext context;  // merging keeps the first entry for a key
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  add_folder(folder, context);
  for (auto& [name, setup] : context.setups) setup.beside = true;
  if (!fs::equivalent(folder, reference)) add_folder(reference, context);
  return context;
}

}  // namespace wt
