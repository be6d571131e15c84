#include <map>
#include <regex>
#include <sstream>

#include "configs/base/error.hpp"
#include "sim/measurements/run_tables.hpp"

namespace wt {
namespace {

enum { source, framework, interconnect, model, gpu, n_gpus, parallelism, batch, precision, metric, value };
constexpr double kGiB = 1 << 30;

/// The number after the word `key`: 2 for "TP" in "TP2 DP1 PP2". `otherwise` if the text has no such word.
std::int64_t word(const std::string& text, const std::string& key, std::int64_t otherwise) {
  static std::map<std::string, std::regex> known;
  auto words = known.find(key);
  if (words == known.end()) words = known.emplace(key, std::regex("(?:^| )" + key + " ?(\\d{1,9})(?= |$)")).first;
  std::smatch found;
  if (!std::regex_search(text, found, words->second)) return otherwise;
  return std::stoll(found[1]);
}

/// A GPT as Megatron-LM builds it: FFN of four widths, GELU, LayerNorm, biases everywhere, tied embeddings.
void fill_gpt(ModelSpec& m, std::int64_t layers, std::int64_t width, std::int64_t heads) {
  m.layers = layers;
  m.d_model = width;
  m.heads = m.kv_heads = heads;
  m.head_dim = heads > 0 ? width / heads : 0;
  m.ffn = 4 * width;
  m.vocab = 51200;  // GPT-2's, padded for tensor parallelism (Korthikanti et al. 2022, section 6; vTrain, section V)
  m.activation = Activation::gelu;
  m.norm = Norm::layernorm;
  m.norm_bias = m.tied = true;
  m.attention.bias = AttentionSpec::Bias::all;
}

void fill_model(const std::string& name, ModelSpec& m) {
  struct Shape {
    std::int64_t layers, width, heads;
  };
  static const std::map<std::string, Shape> published = {// Korthikanti et al. 2022, table 3
                                                         {"megatron-22B", {48, 6144, 64}},
                                                         {"gpt3-175B", {96, 12288, 96}},
                                                         {"turing-530B", {105, 20480, 128}},
                                                         {"megatron-1T", {128, 25600, 160}}};
  m.name = name;
  if (const auto found = published.find(name); found != published.end())
    fill_gpt(m, found->second.layers, found->second.width, found->second.heads);
  else if (name.starts_with("gpt "))
    fill_gpt(m, word(name, "l", 0), word(name, "h", 0), word(name, "a", 0));
  else
    throw_usage("model: found '{}', needs a shape as in 'gpt h1024 l12 a16'", name);
}

/// `whole_GiB`: 100 % of a memory share; 0 = the table does not say.
void fill_measured(const std::string& what, double measured, double whole_GiB, RunRow& row) {
  if (!(measured > 0)) throw_usage("measured_value: found {}, needs a number above 0", measured);
  if (what == "iteration_time_s") {
    row.step_s = measured;
  } else if (what == "iteration_time_ms") {
    row.step_s = measured * 1e-3;
  } else if (what == "GiB_weights+optimizer") {
    row.memory_of = MemoryOf::states;
    row.memory_bytes = measured * kGiB;
  } else if (what == "GiB_activations") {
    row.memory_of = MemoryOf::activations;
    row.memory_bytes = measured * kGiB;
  } else if (what.starts_with("activation_mem_pct_of_none")) {
    if (whole_GiB == 0)
      throw_usage("no GiB_activations of '{}' without recompute and split norms, of which this is a share",
                  row.model.name);
    row.memory_of = MemoryOf::activations;
    row.memory_bytes = measured / 100 * whole_GiB * kGiB;
  } else {
    throw_usage("measured_metric '{}' is neither a step time nor a memory", what);
  }
}

/// Activations of each model without recompute and without sequence parallelism, in GiB.
std::map<std::string, double> whole_activations_GiB(const CsvTable& table) {
  std::map<std::string, double> out;
  for (const CsvRow& cells : table.rows)
    if (cells.cells[metric] == "GiB_activations" && cells.cells[parallelism].ends_with("recompute=none tpcomm=ar"))
      if (double GiB = 0; std::istringstream(cells.cells[value]) >> GiB) out[cells.cells[model]] = GiB;
  return out;
}

}  // namespace

std::vector<RunRow> read_simulator_tables(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file,
                                  {"source", "framework", "interconnect", "model", "gpu", "n_gpus", "parallelism",
                                   "batch/seq", "precision", "measured_metric", "measured_value"},
                                  OtherColumns::ignored);
  const std::map<std::string, double> whole_GiB = whole_activations_GiB(table);
  return run_rows(table, [&](const CsvRow& cells, RunRow& row) {
    const std::string &layout = cells.cells[parallelism], &size = cells.cells[batch];
    row.source = cells.cells[source];
    row.gpu = cells.cells[gpu];
    fill_model(cells.cells[model], row.model);
    row.framework = cells.cells[framework];
    row.interconnect.fabric = cells.cells[interconnect];
    row.precision = precision_recipe("amp_" + cells.cells[precision], "precision");
    row.gpus = needed_whole_number(table, cells, n_gpus, 1);
    row.tp = word(layout, "TP", 1);
    row.pp = word(layout, "PP", 1);
    row.dp = word(layout, "DP", 1);
    row.vp = word(layout, "int", 1);
    row.sequence_parallel = layout.find("tpcomm=rs_ag") != std::string::npos;
    row.recompute_text = layout;
    if (layout.find("full") != std::string::npos)
      row.recompute = Recompute::block;
    else if (layout.find("attn_only") != std::string::npos)
      row.recompute = recompute_from_string("core");
    row.seq = word(size, "seq", 0);
    row.microbatch = word(size, "mbs", 0);
    row.global_batch = word(size, "batch", 0);
    if (row.seq < 1) throw_usage("batch/seq: found '{}', needs 'batch 16 mbs 8 seq 1024'", size);
    const auto whole = whole_GiB.find(cells.cells[model]);
    fill_measured(cells.cells[metric], needed_number(table, cells, value, 0),
                  whole == whole_GiB.end() ? 0 : whole->second, row);
  });
}

}  // namespace wt
