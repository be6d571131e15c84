// A stack: the framework that a run trains with, as far as it changes what a step takes. Facts here come from its
// documentation; the constants of the step-time model (sim/validate/step_model.hpp) are fitted.
#pragma once
#include <string>
#include <vector>

namespace wt {

class YamlMap;

/// Fused attention: FlashAttention-2 and what has its shape (Triton's, SDPA's), written for Ampere; or cuDNN's
/// (Transformer Engine), which has kernels of its own for later GPUs, as FlashAttention-3 has.
enum class FusedAttention { flash2, cudnn };

struct StackSpec {
  std::string name;
  std::vector<std::string> frameworks;  ///< words by which a table of measurements names it
  /// Layers are dealt to pipeline stages so that embedding and output projection count as layers do; else evenly.
  bool balanced_stages = false;
  FusedAttention attention = FusedAttention::flash2;
  std::string source;
};

/// Throws Error{usage}: unknown keys, no framework.
StackSpec stack_from_yaml(YamlMap& map);
/// A preset of configs/stacks by name, or a file.
StackSpec read_stack(const std::string& name_or_file);
/// All presets, by name.
std::vector<StackSpec> read_stacks();
/// The one with the longest word in the framework's text; none fits = a stack of that name that nothing is known of.
StackSpec stack_of(const std::string& framework, const std::vector<StackSpec>& stacks);

}  // namespace wt
