// Rotary positions (Su et al. 2021), and their scaling beyond the pretraining length, with the names of Hugging Face's
// `rope_scaling`. The frequencies are computed only here; trainer, tests and model descriptions call rope_frequencies.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

/// The kind of scaling and its fields under their Hugging Face names. Fields of other kinds keep their defaults.
struct RopeScaling {
  enum class Kind {
    none,
    linear,  ///< positions divided by `factor` (Chen et al. 2023, "position interpolation")
    llama3,  ///< long wavelengths divided by `factor`, short ones kept (Llama 3.1)
    yarn,    ///< the same by number of rotations within the original length, with attention scaled (Peng et al. 2023;
             ///< DeepSeek-V2/V3, Qwen)
  };
  Kind kind = Kind::none;
  double factor = 1;
  std::int64_t original_max_position_embeddings = 0;  ///< llama3, yarn: pretraining length, tokens
  double low_freq_factor = 0, high_freq_factor = 0;   ///< llama3: rotations in that length, as in rope_frequencies
  double beta_fast = 32, beta_slow = 1;   ///< yarn: rotations; pairs above beta_fast keep, below beta_slow are divided
  bool truncate = true;                   ///< yarn: round the limits of the ramp outwards to whole pairs
  double mscale = 0, mscale_all_dim = 0;  ///< yarn: weights of log(factor) in rope_amplitude; 0 = not given
  double attention_factor = 0;            ///< yarn: rope_amplitude itself; 0 = computed from factor and mscale

  bool on() const { return kind != Kind::none; }
  bool operator==(const RopeScaling&) const = default;
  /// Throws Error{usage} with `where` and the key for values outside a formula's domain.
  void check(const std::string& where) const;
};

/// "default" (none), "linear", "llama3", "yarn": rope_type of a config.json.
std::string to_string(RopeScaling::Kind kind);
/// Its inverse; false for another word.
bool rope_kind_from_string(const std::string& word, RopeScaling::Kind& kind);
inline constexpr const char* kRopeKinds = "default, linear, llama3, yarn";

/// Calls visit(key, pointer to member, required) for each field of a kind; reader and writer share it.
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

/// Radians per position of each pair of a head's `dim` rotated elements; dim / 2 values. Unscaled: pair i turns by
/// theta^(-2i / dim) (Su et al. 2021, eq. 15). linear: all divided by factor. llama3, with L the original length and r
/// = L * frequency / 2 pi rotations in it: r >= high_freq_factor kept, r < low_freq_factor divided by factor,
/// interpolated in r between them (meta-llama/llama-models, apply_scaling). yarn: kept up to the pair with beta_fast
/// rotations in L, divided from the pair with beta_slow on, a ramp over pairs between them (Peng et al. 2023,
/// section 3.2; the ramp of its code). All as in transformers 4.57 modeling_rope_utils.py, in double instead of fp32.
std::vector<double> rope_frequencies(const RopeScaling& scaling, double theta, std::int64_t dim);

/// The factor on cosines and sines. yarn: attention_factor if given; m(mscale) / m(mscale_all_dim) if both are given
/// (DeepSeek-V2); otherwise m(1), with m(w) = 1 + 0.1 w log(factor) (Peng et al. 2023, eq. 22). Other kinds: 1.
double rope_amplitude(const RopeScaling& scaling);

/// The factor on latent attention's q k products in addition to 1 / sqrt(head_dim): m(mscale_all_dim)^2, as in
/// DeepSeek's own modeling code of V2 and V3 and in transformers' V3. (transformers 4.57 omits it in V2.)
double latent_softmax_factor(const RopeScaling& scaling);

/// Reads the map `rope_scaling` of our YAML: rope_type and its fields by their Hugging Face names.
RopeScaling rope_scaling_from_yaml(YamlMap map);
/// Writes the map for rope_scaling_from_yaml.
void rope_scaling_to_yaml(const RopeScaling& scaling, YAML::Emitter& out);

}  // namespace wt
