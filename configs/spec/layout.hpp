// A layout: how the ranks of a run are arranged and what each of them holds. Mesh axes as in HSDP with experts inside:
// world = replicate x shard; `shard` ranks together hold one copy of the model (the HSDP replica size); `expert` divides
// shard; expert_shard = shard / expert.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace wt {

class YamlMap;
struct ModelSpec;

enum class Recompute { none, block };
enum class Precision { fp32, bf16 };  ///< of compute and gathered weights; masters, gradients and AdamW state are fp32

std::string to_string(Recompute policy);
std::string to_string(Precision precision);
Recompute recompute_from_string(const std::string& word);

struct Layout {
  std::int64_t replicate = 1;
  std::int64_t shard = 1;
  std::int64_t expert = 1;
  std::int64_t microbatch = 1;  ///< sequences a rank processes at once
  Recompute recompute = Recompute::none;
  /// placement[layer][slot] = logical expert; expert rank e owns slots [e*E/expert, (e+1)*E/expert). Empty = identity.
  std::vector<std::vector<std::int64_t>> placement;

  std::int64_t world() const { return replicate * shard; }
  std::int64_t expert_shard() const { return shard / expert; }
  /// Logical expert in a slot of a layer.
  std::int64_t expert_in_slot(std::int64_t layer, std::int64_t slot) const {
    return placement.empty() ? slot : placement[static_cast<std::size_t>(layer)][static_cast<std::size_t>(slot)];
  }
  /// "2x2 expert 2": replicate x shard.
  std::string name() const;
  /// Throws Error{usage}: expert must divide shard and the model's experts, placement must be a permutation per layer.
  void check(const ModelSpec& model, const std::string& where) const;
};

}  // namespace wt
