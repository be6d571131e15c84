// Reads the columns of a table of training runs that are about memory.
#include "configs/base/error.hpp"
#include "sim/measurements/run_line.hpp"
#include "sim/measurements/sentence.hpp"

namespace wt {
namespace {

constexpr double kGpuGiB = 1 << 30;

/// One of the words; the cell may be empty.
template <class Value>
std::optional<Value> known_word(const RunLine& line, const char* column,
                                std::initializer_list<std::pair<const char*, Value>> known) {
  const std::string& text = line.text(column);
  if (text.empty()) return std::nullopt;
  std::string allowed;
  for (const auto& [word, value] : known) {
    if (text == word) return value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(word);
  }
  throw_usage("{}: found '{}', allowed {}, or nothing", column, text, allowed);
}

/// "GB200 (184.3 GiB usable)", "H100-80GB". A driver shows a little less than the gigabytes of a name: an H100-80GB has
/// 79.1 GiB.
double gpu_bytes(const std::string& gpu) {
  constexpr double kShownOfNamed = 79.1 / 80;
  std::smatch found;
  if (std::regex_search(gpu, found, compiled(R"((\d+(?:\.\d+)?) ?GiB usable)"))) return std::stod(found[1]) * kGpuGiB;
  if (std::regex_search(gpu, found, compiled(R"((\d+) ?GB)"))) return std::stod(found[1]) * kShownOfNamed * kGpuGiB;
  return 0;
}

}  // namespace

void fill_memory(const RunLine& line, RunRow& row) {
  using Outcome = RunRow::Outcome;
  const std::string &outcome = line.text("outcome"), &optimizer = line.text("optimizer");
  row.outcome = outcome == "ran"                                                        ? Outcome::ran
                : outcome.starts_with("out of memory") || has_match(outcome, "^failed") ? Outcome::out_of_memory
                                                                                        : Outcome::unsaid;
  row.gpu_bytes = gpu_bytes(row.gpu);
  if (has_match(optimizer, "muon")) row.optimizer = OptimizerKind::muon;
  row.orthogonalize_everywhere = has_match(optimizer, "every matrix on every GPU");
  if (has_match(optimizer, "host memory")) row.offload_fraction = 1;
  row.memory_bytes = line.real("mem_gb") * kGpuGiB;  // all sources print GiB, as GB or GiB
  if (row.memory_bytes == 0) return;
  if (const std::string& kind = line.text("peak_kind"); !kind.empty()) {
    row.memory_of = has_match(kind, "allocated")  ? MemoryOf::peak_allocated
                    : has_match(kind, "reserved") ? MemoryOf::peak_reserved
                                                  : MemoryOf::peak;
  } else if (line.has("framework", "SimuMax")) {
    row.memory_of = MemoryOf::peak_allocated;
  } else if (line.has("framework", "torchtitan")) {
    row.memory_of = MemoryOf::peak_reserved;  // max_reserved_gib of its DeviceMemoryMonitor
  } else if (line.has("framework", "nanotron")) {
    row.memory_of = MemoryOf::peak_reserved;
    row.assumed.emplace_back("memory reserved on the first rank");  // up to three times the live memory
  } else {
    row.memory_of = MemoryOf::peak;
  }
}

void fill_row_stack(const RunLine& line, RunRow& row) {
  if (!line.text("activation_offload").empty()) throw_usage("activations in host memory are not modelled");
  RowStack& said = row.stack;
  said.attention = known_word<AttentionKernels>(line, "attention",
                                                {{"flash2", AttentionKernels::flash2},
                                                 {"cudnn", AttentionKernels::cudnn},
                                                 {"unfused", AttentionKernels::unfused}});
  said.dropout = known_word<bool>(line, "dropout", {{"1", true}, {"0", false}});
  said.weight_gradients = known_word<WeightGradients>(
      line, "weight_gradients",
      {{"added", WeightGradients::added}, {"in_place", WeightGradients::in_place}, {"dummy", WeightGradients::dummy}});
  said.grouped_products = known_word<bool>(line, "expert_products", {{"grouped", true}, {"sequential", false}});
  const std::string& loss = line.text("loss");
  std::smatch chunks;
  if (loss == "fused") {
    said.logit_bytes = kFusedLogit_bytes;
  } else if (loss == "liger") {
    said.loss_chunks = kLigerChunks;
  } else if (std::regex_match(loss, chunks, compiled(R"((\d{1,6}) chunks)")) && std::stoll(chunks[1]) > 0) {
    said.loss_chunks = std::stoll(chunks[1]);
  } else if (!loss.empty()) {
    throw_usage("loss: found '{}', allowed fused, liger, '8 chunks', or nothing", loss);
  }
}

}  // namespace wt
