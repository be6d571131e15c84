#include "configs/files/rope_spec.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

using Kind = RopeScaling::Kind;

constexpr const char* kKindWords[] = {"default", "linear", "llama3", "yarn"};
constexpr double kTurn = 2 * std::numbers::pi;

/// m(weight) of rope_amplitude; 1 for a factor up to 1.
double log_factor(double factor, double weight) { return factor <= 1 ? 1 : 1 + 0.1 * weight * std::log(factor); }

double llama3_frequency(const RopeScaling& s, double plain) {
  const double rotations = static_cast<double>(s.original_max_position_embeddings) * plain / kTurn;
  if (rotations >= s.high_freq_factor) return plain;  // equal factors, as in Llama-4 Scout's file: no band between them
  if (rotations < s.low_freq_factor) return plain / s.factor;
  const double kept = (rotations - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - kept) * plain / s.factor + kept * plain;
}

/// yarn: the pairs between which frequencies change from kept to divided.
struct Ramp {
  double first, last;
  Ramp(const RopeScaling& s, double theta, double dim) {
    const auto pair_of = [&](double rotations) {  // the pair with this many rotations within the original length
      return dim * std::log(static_cast<double>(s.original_max_position_embeddings) / (rotations * kTurn)) /
             (2 * std::log(theta));
    };
    first = pair_of(s.beta_fast), last = pair_of(s.beta_slow);
    if (s.truncate) first = std::floor(first), last = std::ceil(last);
    first = std::max(first, 0.0), last = std::min(last, dim - 1);
    if (first == last) last += 0.001;  // avoids a division by zero; the ramp becomes a step
  }
  double divided(double pair) const { return std::clamp((pair - first) / (last - first), 0.0, 1.0); }
};

}  // namespace

std::string to_string(Kind kind) { return word_for(kind, kKindWords); }

bool rope_kind_from_string(const std::string& word, Kind& kind) {
  const auto known = enumerator_of<Kind>(word, kKindWords);
  kind = known.value_or(kind);
  return known.has_value();
}

void RopeScaling::check(const std::string& where) const {
  const auto need = [&](bool good, const char* key, double found, const char* needs) {
    if (!good) throw_usage("{}: rope_scaling.{}: found {}, {} needs {}", where, key, found, to_string(kind), needs);
  };
  if (kind == Kind::none) return;
  need(factor >= 1 && std::isfinite(factor), "factor", factor, "a number >= 1");
  if (kind == Kind::linear) return;
  need(original_max_position_embeddings >= 1, "original_max_position_embeddings",
       static_cast<double>(original_max_position_embeddings), "a whole number >= 1");
  if (kind == Kind::llama3) {
    need(low_freq_factor > 0, "low_freq_factor", low_freq_factor, "a number > 0");
    need(high_freq_factor >= low_freq_factor, "high_freq_factor", high_freq_factor, "at least low_freq_factor");
    return;
  }
  need(beta_slow > 0, "beta_slow", beta_slow, "a number > 0");
  need(beta_fast >= beta_slow, "beta_fast", beta_fast, "at least beta_slow");
  need(mscale >= 0, "mscale", mscale, "a number >= 0");
  need(mscale_all_dim >= 0, "mscale_all_dim", mscale_all_dim, "a number >= 0");
  need(attention_factor >= 0, "attention_factor", attention_factor, "a number > 0, or none");
}

std::vector<double> rope_frequencies(const RopeScaling& s, double theta, std::int64_t dim) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < dim / 2; ++i)
    out.push_back(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim)));
  if (s.kind == Kind::linear)
    for (double& frequency : out) frequency /= s.factor;
  if (s.kind == Kind::llama3)
    for (double& frequency : out) frequency = llama3_frequency(s, frequency);
  if (s.kind == Kind::yarn) {
    const Ramp ramp(s, theta, static_cast<double>(dim));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double divided = ramp.divided(static_cast<double>(i));
      out[i] = out[i] / s.factor * divided + out[i] * (1 - divided);
    }
  }
  return out;
}

double rope_amplitude(const RopeScaling& s) {
  if (s.kind != Kind::yarn) return 1;
  if (s.attention_factor > 0) return s.attention_factor;
  if (s.mscale > 0 && s.mscale_all_dim > 0)
    return log_factor(s.factor, s.mscale) / log_factor(s.factor, s.mscale_all_dim);
  return log_factor(s.factor, 1);
}

double latent_softmax_factor(const RopeScaling& s) {
  const double m = s.kind == Kind::yarn ? log_factor(s.factor, s.mscale_all_dim) : 1;
  return m * m;
}

RopeScaling rope_scaling_from_yaml(YamlMap map) {
  RopeScaling out;
  const std::string word = map.text("rope_type");
  if (!rope_kind_from_string(word, out.kind)) map.fail("rope_type", "found '{}', allowed {}", word, kRopeKinds);
  for_rope_fields(out.kind, [&](const char* key, auto member, bool required) {
    auto& value = out.*member;
    if (!required && !map.has(key)) return;
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(value)>, bool>)
      value = map.boolean(key, true);
    else if constexpr (std::is_same_v<std::remove_reference_t<decltype(value)>, double>)
      value = map.number(key);
    else
      value = map.integer(key, 1);
  });
  map.finish();
  return out;
}

void rope_scaling_to_yaml(const RopeScaling& s, YAML::Emitter& out) {
  const RopeScaling usual;
  out << YAML::BeginMap << YAML::Key << "rope_type" << YAML::Value << to_string(s.kind);
  for_rope_fields(s.kind, [&](const char* key, auto member, bool required) {
    if (required || s.*member != usual.*member) out << YAML::Key << key << YAML::Value << fmt::format("{}", s.*member);
  });
  out << YAML::EndMap;
}

}  // namespace wt
