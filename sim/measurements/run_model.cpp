// The model that a line of a table of training runs describes.
#include <cmath>

#include "sim/measurements/run_line.hpp"

namespace wt {
namespace {

/// Whether the embedding is the output projection, too: of GPTs and MPTs it is; elsewhere the number of parameters
/// tells.
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
  throw_error(Code::usage, "gated: found '{}', allowed 1 or 0", said);
}

/// Of configs/models, with as many layers as the run had. Multi-token prediction is off, as no row without a
/// pipeline_layout says otherwise.
ModelSpec preset_model(const std::string& preset, std::int64_t layers) {
  ModelSpec m = read_model(preset);
  m.layers = layers;
  m.mtp_layers = 0;
  return m;
}

}  // namespace

void fill_model(const RunLine& line, RunRow& row) {
  ModelSpec& m = row.model;
  if (line.has("arch_type", "hybrid") && line.text("preset").empty())
    throw_error(Code::usage, "layers of several kinds, needs a preset");
  if (line.has("arch_evidence", "sparse attention"))
    throw_error(Code::usage, "sparse attention and hyper-connections are not modelled");
  if (line.has("framework", "expert loop")) throw_error(Code::usage, "experts one by one in Python are not modelled");
  if (const std::string& preset = line.text("preset"); !preset.empty()) {
    const std::string name = m.name;
    m = preset_model(preset, line.needed("layers", 1e4));
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
  m.head_dim = line.count("head_dim").value_or(m.d_model / m.heads);  // Qwen3's together are wider than the model
  m.experts = line.count("experts").value_or(0);
  if (m.experts > 0) {
    m.ffn = line.text("expert_ffn").empty() ? line.needed("ffn_hidden") : line.needed("expert_ffn");
    m.top_k = line.needed("top_k");
    m.shared_ffn = line.count("shared_experts").value_or(0) * m.ffn;
  } else if (const auto ffn = line.count("ffn_hidden")) {
    m.ffn = *ffn;
  } else {
    // Llama's rule: 4 d_model, two thirds of it for the gate's sake, in multiples of 256.
    const std::int64_t width = m.activation == Activation::swiglu ? 8 * m.d_model / 3 : 4 * m.d_model;
    m.ffn = (width + 255) / 256 * 256;
    row.assumed.push_back(fmt::format("FFN of {}", m.ffn));
  }
  const auto parameters = line.real("params_total");
  if (const auto vocab = line.count("vocab", 1e7)) {
    m.vocab = *vocab;
  } else {
    if (parameters == 0) throw_error(Code::usage, "neither vocabulary nor parameters said");
    m.vocab = 1;  // both matrices of it are what the layers leave of the parameters
    const double left = parameters - static_cast<double>(m.total_parameters());
    m.vocab = std::max<std::int64_t>(1, std::llround(left / static_cast<double>(2 * m.d_model)));
    row.assumed.push_back(fmt::format("vocabulary of {}", m.vocab));
  }
  m.norm = m.activation == Activation::swiglu ? Norm::rmsnorm : Norm::layernorm;
  if (line.has("framework", "Megatron") && m.norm == Norm::layernorm) {  // GPT: biases everywhere
    m.norm_bias = true;
    m.attention.bias = AttentionSpec::Bias::all;
  }
  m.tied = tied(m, parameters);
}

}  // namespace wt
