#include "sim/validate/routing_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "configs/spec/error.hpp"
#include "sim/validate/csv.hpp"
#include "sim/validate/step_work.hpp"

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
  return std::all_of(columns.begin(), columns.end(), [&](const std::string& column) {
    return std::find(header.begin(), header.end(), column) != header.end();
  });
}

/// Load columns and r0 to r(n-1), n >= 2.
std::vector<std::string> load_columns(const std::vector<std::string>& header) {
  std::vector<std::string> columns = kLoadColumns;
  for (std::size_t rank = 0; has_all(header, {fmt::format("r{}", rank)}); ++rank)
    columns.push_back(fmt::format("r{}", rank));
  return columns;
}

constexpr double kLargest = 1e7;              // of any size of a model, batch or machine
constexpr std::int64_t kMostBlocks = 100000;  // layers x microbatches; a step of so many takes seconds to price

std::int64_t whole(const CsvTable& table, const CsvRow& row, const std::string& column, double lowest) {
  const double value = needed_number(table, row, table.at(column), lowest);
  if (value > kLargest || value != std::floor(value))
    throw_error(Code::usage, "{}: line {}: column '{}': found {}, needs a whole number from {} to {:g}",
                table.file.string(), row.line, column, value, lowest, kLargest);
  return static_cast<std::int64_t>(value);
}

RoutedSetup setup_of(const CsvTable& table, const CsvRow& row) {
  const auto count = [&](const char* column) { return whole(table, row, column, 1); };
  const auto text = [&](const char* column) { return row.cells[table.at(column)]; };
  const std::string where = fmt::format("{}: line {}", table.file.string(), row.line);
  RoutedSetup s;
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
  run.gpu = text("gpu");
  run.interconnect = text("interconnect");
  run.gpus = run.dp = run.shard_group = count("gpus");
  run.gpus_per_node = count("gpus_per_node");
  run.ep = count("expert_parallel");
  run.zero_stage = 3;
  run.recompute = RunRow::Recompute::full;
  run.seq = count("sequence_tokens");
  run.accumulation = count("microbatches");
  run.global_batch = count("sequences");
  const std::int64_t parts = run.gpus * run.accumulation;
  if (run.global_batch % parts != 0)
    throw_error(Code::usage, "{}: found {} sequences for {} GPUs x {} microbatches, needs a multiple", where,
                run.global_batch, run.gpus, run.accumulation);
  run.microbatch = run.global_batch / parts;
  if (model.layers * run.accumulation > kMostBlocks)
    throw_error(Code::usage, "{}: found {} layers x {} microbatches, allowed are {} together", where, model.layers,
                run.accumulation, kMostBlocks);
  if (model.d_model % model.heads != 0)
    throw_error(Code::usage, "{}: found a width of {} for {} heads, needs a multiple", where, model.d_model,
                model.heads);
  model.check(where);
  layout_of(run).check(model, where);
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
    return;  // some other file that happens to lie beside
  }
  if (has_all(header, kSetupColumns)) context.setups.merge(read_routed_setups(file));
  if (has_all(header, kLoadColumns) && load_columns(header).size() > kLoadColumns.size())
    context.loads.merge(read_rank_loads(file));
}

void add_folder(const fs::path& folder, RoutedContext& context) {
  std::set<fs::path> files;  // in one order everywhere
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ".csv") files.insert(entry.path());
  for (const fs::path& file : files) add_tables(file, context);
}

}  // namespace

std::vector<PlacedStep> read_placed_steps(const fs::path& file) {
  const CsvTable table =
      read_csv(file, {"dataset", "method", "model_name", "aux_loss", "avg_time_ms"}, OtherColumns::ignored);
  refuse_broken(table);
  std::vector<PlacedStep> rows;
  for (const CsvRow& cells : table.rows) {
    PlacedStep row{cells.line, cells.cells[0], cells.cells[1], cells.cells[2]};
    row.aux_loss = needed_number(table, cells, table.at("aux_loss"), 0);
    row.seconds = needed_number(table, cells, table.at("avg_time_ms"), 0) * 1e-3;
    if (row.seconds <= 0)
      throw_error(Code::usage, "{}: line {}: column 'avg_time_ms': found 0, needs a time above 0", file.string(),
                  cells.line);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::map<std::pair<std::string, std::string>, FullestShares> read_rank_loads(const fs::path& file) {
  const CsvTable table = read_csv(file, load_columns(read_csv_header(file)));
  refuse_broken(table);
  if (table.columns.size() < kLoadColumns.size() + 2)
    throw_error(Code::usage, "{}: line 1: found no columns r0 and r1, needs the rows of two ranks or more",
                file.string());
  std::map<std::pair<std::string, std::string>, std::map<std::int64_t, std::map<std::int64_t, double>>> seen;
  for (const CsvRow& row : table.rows) {
    std::vector<double> rows;
    for (std::size_t column = kLoadColumns.size(); column < table.columns.size(); ++column)
      rows.push_back(needed_number(table, row, column, 0));
    const double sum = std::accumulate(rows.begin(), rows.end(), 0.0);
    if (sum <= 0)
      throw_error(Code::usage, "{}: line {}: found no rows on any rank, needs some", file.string(), row.line);
    auto& layer = seen[{row.cells[table.at("model")], row.cells[table.at("method")]}][whole(table, row, "layer", 0)];
    const std::int64_t iteration = whole(table, row, "iter", 0);
    const double share = *std::max_element(rows.begin(), rows.end()) * static_cast<double>(rows.size()) / sum;
    if (!layer.emplace(iteration, share).second)
      throw_error(Code::usage, "{}: line {}: found iteration {} of this method, model and layer twice, needs it once",
                  file.string(), row.line, iteration);
  }
  std::map<std::pair<std::string, std::string>, FullestShares> loads;
  for (const auto& [key, layers] : seen) {
    const auto& first = layers.begin()->second;
    for (const auto& [layer, iterations] : layers) {
      if (layer != static_cast<std::int64_t>(loads[key].size()) || iterations.size() != first.size())
        throw_error(Code::usage, "{}: {} of {}: found layer {} with {} iterations, needs every layer from 0 with {}",
                    file.string(), key.second, key.first, layer, iterations.size(), first.size());
      std::vector<double> shares;
      for (const auto& [iteration, share] : iterations) shares.push_back(share);
      shares.erase(shares.begin(), shares.end() - static_cast<std::ptrdiff_t>(std::min(kSettled, shares.size())));
      loads[key].push_back(std::move(shares));
    }
  }
  return loads;
}

std::map<std::string, RoutedSetup> read_routed_setups(const fs::path& file) {
  const CsvTable table = read_csv(file, kSetupColumns);
  refuse_broken(table);
  std::map<std::string, RoutedSetup> setups;
  for (const CsvRow& row : table.rows) {
    RoutedSetup setup = setup_of(table, row);
    const std::string name = setup.run.model.name;
    if (!setups.emplace(name, std::move(setup)).second)
      throw_error(Code::usage, "{}: line {}: found the model '{}' twice, needs it once", file.string(), row.line, name);
  }
  return setups;
}

RoutedContext read_routed_context(const fs::path& file, const fs::path& reference) {
  RoutedContext context;  // what is there first stays
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  add_folder(folder, context);
  if (!fs::equivalent(folder, reference)) add_folder(reference, context);
  return context;
}

}  // namespace wt
