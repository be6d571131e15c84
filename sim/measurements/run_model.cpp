// The model that a line of a table of training runs describes.
#include <fmt/format.h>

#include <cmath>
#include <regex>

#include "sim/measurements/run_line.hpp"

namespace wt {
namespace {

/// Whether the embedding is also the output projection. GPTs and MPTs tie them; for other models the number of
/// parameters decides.
bool tied(const ModelSpec& model, double parameters) {
  if (model.activation == Activation::gelu) return true;
  if (parameters == 0) return false;
  ModelSpec shared = model;
  shared.tied = true;
  return std::abs(static_cast<double>(shared.total_parameters()) - parameters) <
         std::abs(static_cast<double>(model.total_parameters()) - parameters);
}

bool gated(const std::string& said) {
  if (said == "1" || said == "1.0" || said == "True" || said == "true" || said == "TRUE") return true;
  if (said.empty() || said == "0" || said == "0.0" || said == "False" || said == "false" || said == "FALSE")
    return false;
  throw_usage("gated: found '{}', allowed 1 or 0", said);
}

/// Differences between a row's shape and its preset's: column, the preset's value, the row's value.
class Contradictions {
 public:
  explicit Contradictions(const RunLine& line) : line_(line) {}
  void check(const char* column, std::int64_t preset) {
    if (const auto said = line_.count(column, 1e7); said && *said != preset) add(column, preset);
  }
  void add(const char* column, std::int64_t preset) { add(column, fmt::format("{}", preset)); }
  void add(const char* column, const std::string& preset) {
    list_ += fmt::format("{}{} {} and {}", list_.empty() ? "" : "; ", column, preset, line_.text(column));
  }
  void refuse(const std::string& preset) const {
    if (!list_.empty())
      throw_usage("preset {} is another model than the row's: {}; correct the row, or leave its preset out", preset,
                  list_);
  }

 private:
  const RunLine& line_;
  std::string list_;
};

/// Whether the row says that its model is cut: then it has layers of its own.
bool cut(const RunLine& line) {
  static const std::regex words("\\b(cut|truncated|proxy)\\b|\\b[0-9]+[ -]?layers?\\b", std::regex::icase);
  return std::regex_search(line.text("model"), words);
}

/// Compares the row's columns with the preset `m`. Empty cells are not compared.
void check_preset(const RunLine& line, const std::string& preset, const ModelSpec& m) {
  constexpr std::int64_t kPadding = 1024;  // vocabularies are padded to multiples of 128 and of the tensor group
  constexpr double kOfParameters = 0.25;   // relative: sources round, and some count no embeddings
  Contradictions wrong(line);
  if (!cut(line)) wrong.check("layers", m.layers);
  wrong.check("hidden", m.d_model);
  wrong.check("heads", m.heads);
  if (!m.attention.mla.on()) {  // latent attention has no key-value heads and no single head width
    wrong.check("kv_heads", m.kv_heads);
    wrong.check("head_dim", m.head_dim);
  }
  wrong.check("experts", m.experts);
  if (line.has("arch_type", "dense") && m.experts > 0) wrong.add("arch_type", "moe");
  if (line.has("arch_type", "moe") && m.experts == 0) wrong.add("arch_type", "dense");
  if (m.experts > 0) {
    wrong.check("top_k", m.top_k);
    wrong.check("expert_ffn", m.ffn);
    if (m.dense_layers > 0)
      wrong.check("ffn_hidden", m.dense_ffn);
    else if (line.text("expert_ffn").empty())
      wrong.check("ffn_hidden", m.ffn);
    // A source may count several shared experts as one wide expert.
    const auto shared = line.count("shared_experts");
    const bool none = line.text("shared_experts") == "0",
               right = shared == 1 || (shared && *shared * m.ffn == m.shared_ffn);
    if ((none && m.shared_ffn > 0) || (shared && (m.shared_ffn == 0 || !right)))
      wrong.add("shared_experts", fmt::format("of width {}", m.shared_ffn));
  } else {
    wrong.check("ffn_hidden", m.ffn);
  }
  if (!line.text("gated").empty() && gated(line.text("gated")) != m.gated()) wrong.add("gated", m.gated() ? 1 : 0);
  if (const auto vocab = line.count("vocab", 1e7); vocab && (*vocab < m.vocab || *vocab >= m.vocab + kPadding))
    wrong.add("vocab", m.vocab);
  ModelSpec own = m;
  own.layers = line.needed("layers", 1e4);
  own.mtp_layers = 0;
  const double parameters = static_cast<double>(own.total_parameters()), said = line.real("params_total");
  if (said > 0 && std::abs(said / parameters - 1) > kOfParameters)
    wrong.add("params_total", fmt::format("{:.3g}", parameters));
  wrong.refuse(preset);
}

/// A preset of configs/models with as many layers as the run had. Multi-token prediction is off unless the row has a
/// pipeline_layout.
ModelSpec preset_model(const RunLine& line, const std::string& preset) {
  ModelSpec m = read_model(preset);
  check_preset(line, preset, m);
  m.layers = line.needed("layers", 1e4);
  m.mtp_layers = 0;
  return m;
}

void fill_latent_attention(const RunLine& line, ModelSpec& m) {
  const auto rank = line.count("kv_lora_rank");
  if (!rank) return;
  MlaSpec& mla = m.attention.mla;
  mla.kv_lora_rank = *rank;
  mla.q_lora_rank = line.count("q_lora_rank").value_or(0);
  mla.qk_nope_head_dim = line.needed("qk_nope_head_dim");
  mla.qk_rope_head_dim = line.needed("qk_rope_head_dim");
  mla.v_head_dim = line.needed("v_head_dim");
  m.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
}

}  // namespace

void fill_model(const RunLine& line, RunRow& row) {
  ModelSpec& m = row.model;
  if (line.has("arch_type", "hybrid") && line.text("preset").empty())
    throw_usage("layers of several kinds, needs a preset");
  if (line.has("arch_evidence", "sparse attention"))
    throw_usage("sparse attention and hyper-connections are not modelled");
  if (line.has("framework", "expert loop")) throw_usage("experts one by one in Python are not modelled");
  if (const std::string& preset = line.text("preset"); !preset.empty()) {
    const std::string name = m.name;
    m = preset_model(line, preset);
    m.name = name;
    return;
  }
  m.layers = line.needed("layers", 1e4);
  m.d_model = line.needed("hidden");
  m.activation = gated(line.text("gated")) ? Activation::swiglu : Activation::gelu;
  const auto heads = line.count("heads");
  m.heads = heads.value_or(std::max<std::int64_t>(1, m.d_model / 128));
  if (!heads) row.assumed.emplace_back("heads of 128");
  m.kv_heads = line.count("kv_heads").value_or(m.heads);
  m.head_dim = line.count("head_dim").value_or(m.d_model / m.heads);  // Qwen3's heads together are wider than d_model
  fill_latent_attention(line, m);
  m.experts = line.count("experts").value_or(0);
  if (m.experts > 0) {
    m.ffn = line.text("expert_ffn").empty() ? line.needed("ffn_hidden") : line.needed("expert_ffn");
    m.top_k = line.needed("top_k");
    m.shared_ffn = line.count("shared_ffn").value_or(line.count("shared_experts").value_or(0) * m.ffn);
    m.dense_layers = line.count("dense_layers", 1e4).value_or(0);
    if (m.dense_layers > 0) m.dense_ffn = line.needed("ffn_hidden");
    if (const auto width = line.count("expert_width")) {  // a projection makes rows narrower before they are sent
      m.ffn = m.ffn * *width / m.d_model;
      row.assumed.push_back(
          fmt::format("experts of the model's width and {} hidden units, with as many weights as "
                      "those on rows of {}",
                      m.ffn, *width));
    }
  } else if (const auto ffn = line.count("ffn_hidden")) {
    m.ffn = *ffn;
  } else {
    // Llama's rule: 4 d_model, two thirds of it because the gate adds a matrix, in multiples of 256.
    const std::int64_t width = m.activation == Activation::swiglu ? 8 * m.d_model / 3 : 4 * m.d_model;
    m.ffn = (width + 255) / 256 * 256;
    row.assumed.push_back(fmt::format("FFN of {}", m.ffn));
  }
  const auto parameters = line.real("params_total");
  if (const auto vocab = line.count("vocab", 1e7)) {
    m.vocab = *vocab;
  } else {
    if (parameters == 0) throw_usage("neither vocabulary nor parameters said");
    m.vocab = 1;  // the two vocabulary matrices are the parameters that the layers leave
    const double left = parameters - static_cast<double>(m.total_parameters());
    m.vocab = std::max<std::int64_t>(1, std::llround(left / static_cast<double>(2 * m.d_model)));
    row.assumed.push_back(fmt::format("vocabulary of {}", m.vocab));
  }
  m.mtp_layers = line.count("mtp_layers", 1e2).value_or(0);
  m.norm = m.activation == Activation::swiglu ? Norm::rmsnorm : Norm::layernorm;
  if (line.has("framework", "Megatron") && m.norm == Norm::layernorm) {  // GPT: biases everywhere
    m.norm_bias = true;
    if (line.text("biases") != "0") m.attention.bias = AttentionSpec::Bias::all;
  }
  if (line.text("positions") == "learned") m.learned_positions = line.needed("seq_len", 1e8);
  m.tied = line.text("tied").empty() ? tied(m, parameters) : line.text("tied") == "1";
}

}  // namespace wt
