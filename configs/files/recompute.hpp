// Which activations backward computes again instead of keeping them, by layer, in LLM Foundry's vocabulary:
// activation_checkpointing_target names modules and the blocks (layers) in which they are recomputed. Training results
// do not depend on it, bit for bit, unless the saved block inputs are compressed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

/// The part of a block that is recomputed. Modules from `core` on are only simulated. Except `products`, their words
/// are those of Megatron-Core's recompute_modules (transformer_config.py).
enum class Module {
  block,      ///< everything, from the block's input; rows are exchanged again with experts on other ranks
  attention,  ///< norm to router, from the block's input; the choice of experts is kept
  experts,    ///< gate and up products and SwiGLU, from the experts' input rows; nothing is exchanged again
  norm,       ///< the normalised rows, from the norm's input and 1/rms; Megatron-Core's layernorm
  core,       ///< the attention kernel, from q, k and v (Korthikanti et al. 2022); Megatron-Core's core_attn
  products,  ///< `block`, but attention and the results of every second matrix product are kept: torchtitan's selective
             ///< recompute by op
  moe,       ///< router, exchanges, shared and routed experts, from their normalised input; keeps the choice of experts
  moe_act,   ///< the activation between the experts' two products, from the first one's output
  mla_up_proj,     ///< q, k and v of latent attention, from the latent vectors
  mlp,             ///< the FFN of layers without experts, from its input
  shared_experts,  ///< from their input
};
std::string to_string(Module module);
std::vector<Module> every_module();

/// What one layer recomputes, a flag per Module. `block` is set alone or with `products`, whose results it then keeps.
/// Others combine unless one is part of the other.
struct LayerRecompute {
  bool block = false, attention = false, experts = false, norm = false, core = false, products = false, moe = false,
       moe_act = false, mla_up_proj = false, mlp = false, shared_experts = false;
  bool recomputes_attention() const { return block || attention; }
  bool recomputes_experts() const { return block || experts || moe; }
  bool recomputes_ffn() const { return block || moe || mlp || shared_experts; }
  /// Whether rows are exchanged again with their experts.
  bool exchanges_again() const { return block || moe; }
  friend bool operator==(const LayerRecompute&, const LayerRecompute&) = default;
};

/// Format in which block inputs are kept for recompute: unchanged, or one byte a value with one fp32 scale per 128
/// values of a row (kernels.h, wt_quantize_blocks).
enum class Compression { none, int8, fp8 };
std::string to_string(Compression compression);

class Recompute {
 public:
  static const Recompute none, block;

  /// first-n, last-k and middle-m of the blocks, or range-i-j: i to j-1. They may reach beyond the last block. In each
  /// chunk of a pipeline (without one, in the model): chunk-n, the first n (Megatron-Core's recompute_method block),
  /// and every-n, blocks n, 2n, ... counted from 1 (torchtitan). torchtitan counts across a rank's chunks, which
  /// differs where n does not divide them; that is not modelled.
  struct Blocks {
    enum class Which { first, last, middle, range, chunk, every } which = Which::first;
    std::int64_t a = 0, b = 0;  ///< n, or i and j
    bool counted_in_chunks() const { return which == Which::chunk || which == Which::every; }
    friend bool operator==(const Blocks&, const Blocks&) = default;
  };
  struct Rule {
    Module module = Module::block;
    std::vector<Blocks> blocks;  ///< their union; empty = every block
    friend bool operator==(const Rule&, const Rule&) = default;
  };

  Compression compression = Compression::none;

  bool any() const { return !rules_.empty(); }
  const std::vector<Rule>& rules() const { return rules_; }
  /// One rule a module; throws Error{usage} at a second one.
  void add(Rule rule);
  /// Blocks of multi-token prediction are treated like the last layer. `chunk_layers`: Layout::layers_of_chunks of a
  /// pipeline; none = one chunk.
  LayerRecompute of(std::int64_t layer, std::int64_t layers, const std::vector<std::int64_t>& chunk_layers = {}) const;
  bool has(Module module) const;
  /// Whether no rule names blocks.
  bool all_layers_alike() const;
  /// Whether the layers depend on the chunks of a pipeline.
  bool counts_in_chunks() const;
  /// The same, with ranges in place of chunk-n and every-n, for formats that lack them.
  Recompute as_ranges(std::int64_t layers, const std::vector<std::int64_t>& chunk_layers = {}) const;
  /// Throws Error{usage}: a rule that selects no block of this model, every-n in a chunk of fewer layers, a block or a
  /// module both as a whole and in parts, compression of inputs from which nothing is recomputed.
  void check(std::int64_t layers, const std::string& where, const std::vector<std::int64_t>& chunk_layers = {}) const;
  friend bool operator==(const Recompute&, const Recompute&) = default;

 private:
  std::vector<Rule> rules_;  ///< ordered by module
};
inline const Recompute Recompute::none{};

/// "none", "block", "attention+experts", "moe_act+mla_up_proj", "attention:first-2,last-2+experts:range-2-5",
/// "block:every-2", "block/int8".
std::string to_string(const Recompute& recompute);
/// Reads what to_string writes. Throws Error{usage}.
Recompute recompute_from_string(const std::string& text);

/// Reads the keys of fsdp_config: activation_checkpointing (true or false), activation_checkpointing_target (none = the
/// whole block; a module; a list of modules; a map from modules to blocks: a number n = the first n, a list of numbers
/// and words, or words separated by commas), activation_compression (none, int8, fp8).
Recompute read_recompute(YamlMap& fsdp_config);
/// Writes the same keys into an open map.
void write_recompute(YAML::Emitter& out, const Recompute& recompute);

}  // namespace wt
