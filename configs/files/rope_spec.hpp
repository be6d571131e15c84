// Rotary positions (Su et al. 2021) and the ways of stretching them beyond the length that a model was pretrained at,
// as Hugging Face's `rope_scaling` names them. The frequencies stand here and nowhere else: the trainer's tables, the
// tests and what is said of a model all ask rope_frequencies.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

/// Which stretching, and its fields under their Hugging Face names; those of other kinds keep their defaults.
struct RopeScaling {
  enum class Kind {
    none,
    linear,  ///< positions divided by `factor` (Chen et al. 2023, "position interpolation")
    llama3,  ///< long wavelengths divided by `factor`, short ones kept (Llama 3.1)
    yarn,    ///< the same by rotations within the old length, and softer attention (Peng et al. 2023; DeepSeek-V2/V3,
             ///< Qwen)
  };
  Kind kind = Kind::none;
  double factor = 1;
  std::int64_t original_max_position_embeddings = 0;  ///< llama3, yarn: length of pretraining, in tokens
  double low_freq_factor = 0, high_freq_factor = 0;   ///< llama3: rotations within that length below and above which
  double beta_fast = 32, beta_slow = 1;   ///< yarn: rotations above which a pair is kept, below which divided
  bool truncate = true;                   ///< yarn: the pairs that those name are rounded outwards
  double mscale = 0, mscale_all_dim = 0;  ///< yarn: weights of log(factor) in rope_amplitude; 0 = not given
  double attention_factor = 0;            ///< yarn: rope_amplitude itself; 0 = by factor and mscale

  bool on() const { return kind != Kind::none; }
  bool operator==(const RopeScaling&) const = default;
  /// Throws Error{usage} on values that no formula takes, naming `where` and the key.
  void check(const std::string& where) const;
};

/// "default" (none), "linear", "llama3", "yarn": rope_type of a config.json.
std::string to_string(RopeScaling::Kind kind);
/// Its inverse; false for another word.
bool rope_kind_from_string(const std::string& word, RopeScaling::Kind& kind);
inline constexpr const char* kRopeKinds = "default, linear, llama3, yarn";

/// Calls visit(key, pointer to member, whether it must be given) for each field of a kind: reading and writing it in
/// one.
template <typename Visit>
void for_rope_fields(RopeScaling::Kind kind, Visit&& visit) {
  using enum RopeScaling::Kind;
  if (kind == none) return;
  visit("factor", &RopeScaling::factor, true);
  if (kind == linear) return;
  visit("original_max_position_embeddings", &RopeScaling::original_max_position_embeddings, true);
  if (kind == llama3) {
    visit("low_freq_factor", &RopeScaling::low_freq_factor, true);
    visit("high_freq_factor", &RopeScaling::high_freq_factor, true);
    return;
  }
  visit("beta_fast", &RopeScaling::beta_fast, false);
  visit("beta_slow", &RopeScaling::beta_slow, false);
  visit("truncate", &RopeScaling::truncate, false);
  visit("mscale", &RopeScaling::mscale, false);
  visit("mscale_all_dim", &RopeScaling::mscale_all_dim, false);
  visit("attention_factor", &RopeScaling::attention_factor, false);
}

/// Radians a position by which each pair of a head's `dim` rotated elements turns, dim / 2 values. Pair i of plain
/// positions: theta^(-2i / dim) (Su et al. 2021, eq. 15). linear: all divided by factor. llama3, with L the old length
/// and r = L * frequency / 2 pi rotations within it: r > high_freq_factor kept, r < low_freq_factor divided by factor,
/// between them interpolated in r (meta-llama/llama-models, apply_scaling). yarn: kept up to the pair that makes
/// beta_fast rotations within L, divided from the one that makes beta_slow, between them a ramp over pairs (Peng et al.
/// 2023, section 3.2 with the ramp of its code). All as in transformers 4.57 modeling_rope_utils.py, in double instead
/// of fp32.
std::vector<double> rope_frequencies(const RopeScaling& scaling, double theta, std::int64_t dim);

/// What cosines and sines are multiplied by. yarn: attention_factor where given; else m(mscale) / m(mscale_all_dim)
/// where both are (DeepSeek-V2), else m(1), with m(w) = 1 + 0.1 w log(factor) (Peng et al. 2023, eq. 22). 1 otherwise.
double rope_amplitude(const RopeScaling& scaling);

/// What latent attention's products of q and k are multiplied by beyond 1 / sqrt(head_dim): m(mscale_all_dim)^2, as in
/// DeepSeek's own modeling code of V2 and V3 and in transformers' V3. (transformers 4.57 leaves it out of V2.)
double latent_softmax_factor(const RopeScaling& scaling);

/// The map `rope_scaling` of our YAML: rope_type and its fields by their Hugging Face names.
RopeScaling rope_scaling_from_yaml(YamlMap& map);
/// The map that reads back to it.
void rope_scaling_to_yaml(const RopeScaling& scaling, YAML::Emitter& out);

}  // namespace wt
