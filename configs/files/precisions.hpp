// In which number formats a run computes, sends and keeps: one for each class of operations. A recipe sets all of them
// by one word, as frameworks do.
#pragma once
#include <string>
#include <vector>

#include "configs/files/layout.hpp"

namespace YAML {
class Emitter;
}

namespace wt {

/// fp8: one scale a tensor; fp8_blockwise: one for each 128 values (DeepSeek-V3, arXiv 2412.19437, section 3.3); mxfp8:
/// one for each 32 (OCP Microscaling Formats 1.0); nvfp4: one for each 16 (NVIDIA, arXiv 2509.25149).
enum class NumberFormat { fp32, tf32, fp16, bf16, fp8, fp8_blockwise, mxfp8, nvfp4 };
std::string to_string(NumberFormat format);
/// Bytes of an element, with its share of its block's scale.
double bytes_of(NumberFormat format);

/// By class of operations. bf16 stands for the run's compute type, which may be fp32 or fp16, too. The defaults are
/// those of 16 bits.
struct Precisions {
  NumberFormat forward = NumberFormat::bf16;           ///< matrix products, but for embedding and output projection
  NumberFormat input_gradients = NumberFormat::bf16;   ///< their backward products: dgrad
  NumberFormat weight_gradients = NumberFormat::bf16;  ///< wgrad
  NumberFormat fp32_products = NumberFormat::tf32;     ///< of fp32 tensors: tf32, or fp32 = without tensor cores
  NumberFormat attention = NumberFormat::bf16;         ///< the attention kernel, both passes
  NumberFormat dispatch = NumberFormat::bf16;          ///< rows on their way to experts, forward; back they are bf16
  NumberFormat gathered_weights = NumberFormat::bf16;  ///< of shards (FSDP) or of ranks that updated them (ZeRO-1)
  NumberFormat master_weights = NumberFormat::fp32;    ///< that the optimizer updates
  NumberFormat moments = NumberFormat::fp32;           ///< of AdamW
  friend bool operator==(const Precisions&, const Precisions&) = default;
};

/// Whether all is in the compute type, and the optimizer's state in fp32: what runs on CPUs, too.
bool plain_precisions(Precision compute, const Precisions& precisions);
/// Bytes of what is sent or held in a format over those of the compute type.
double share_of_compute(NumberFormat format);

/// What `precision` of a run file names.
struct PrecisionRecipe {
  std::string word;
  Precision compute = Precision::bf16;  ///< of tensors between products
  Precisions precisions = {};
};
/// The words: fp32 (products without tensor cores), tf32, amp_fp16, amp_bf16, amp_fp8, amp_fp8_blockwise, amp_mxfp8 and
/// amp_nvfp4. The narrow ones have all three products of a layer in that format, as recipes of Transformer Engine
/// (transformer_engine.common.recipe), and everything else as amp_bf16.
const std::vector<PrecisionRecipe>& precision_recipes();
/// Throws Error{usage}, saying `where`, for another word.
const PrecisionRecipe& precision_recipe(const std::string& word, const std::string& where);

/// `precision` and `precisions` of a run file.
PrecisionRecipe read_precisions(YamlMap& map);
/// What read_precisions reads back to the same.
void write_precisions(YAML::Emitter& out, Precision compute, const Precisions& precisions);

}  // namespace wt
