// The number formats in which a run computes, sends and stores, one per class of operations. A recipe sets all of them
// by one word, as frameworks do.
#pragma once
#include <string>
#include <vector>

#include "configs/files/layout.hpp"

namespace YAML {
class Emitter;
}

namespace wt {

/// fp8: one scale a tensor. fp8_blockwise: one per 128 values (DeepSeek-V3, arXiv 2412.19437, section 3.3). mxfp8: one
/// per 32 (OCP Microscaling Formats 1.0). nvfp4: one per 16 (NVIDIA, arXiv 2509.25149).
enum class NumberFormat { fp32, tf32, fp16, bf16, fp8, fp8_blockwise, mxfp8, nvfp4 };
std::string to_string(NumberFormat format);
/// Bytes of an element, including its share of the block's scale.
double bytes_of(NumberFormat format);

/// Formats by class of operations. bf16 stands for the run's compute type, which may also be fp32 or fp16. The defaults
/// are those of 16-bit training.
struct Precisions {
  NumberFormat forward = NumberFormat::bf16;           ///< matrix products except embedding and output projection
  NumberFormat input_gradients = NumberFormat::bf16;   ///< their backward products: dgrad
  NumberFormat weight_gradients = NumberFormat::bf16;  ///< wgrad
  NumberFormat fp32_products = NumberFormat::tf32;     ///< products of fp32 tensors: tf32, or fp32 (no tensor cores)
  NumberFormat attention = NumberFormat::bf16;         ///< the attention kernel, both passes
  NumberFormat dispatch = NumberFormat::bf16;  ///< rows sent to experts in forward; all other exchanges are bf16
  NumberFormat gathered_weights = NumberFormat::bf16;  ///< gathered from shards (FSDP) or from updating ranks (ZeRO-1)
  NumberFormat master_weights = NumberFormat::fp32;    ///< updated by the optimizer
  NumberFormat moments = NumberFormat::fp32;           ///< AdamW's
  friend bool operator==(const Precisions&, const Precisions&) = default;
};

/// Whether every class has the compute type and the optimizer's state is fp32: what CPUs support as well.
bool plain_precisions(Precision compute, const Precisions& precisions);
/// Bytes of an element in a format over those in the compute type.
double share_of_compute(NumberFormat format);

/// A value of the key `precision`.
struct PrecisionRecipe {
  std::string word;
  Precision compute = Precision::bf16;  ///< type of tensors between products
  Precisions precisions = {};
};
/// fp32 (products without tensor cores), tf32, amp_fp16, amp_bf16, amp_fp8, amp_fp8_blockwise, amp_mxfp8 and amp_nvfp4.
/// The fp8 and fp4 recipes compute a layer's three products in that format, like the recipes of Transformer Engine
/// (transformer_engine.common.recipe), and everything else as amp_bf16 does.
const std::vector<PrecisionRecipe>& precision_recipes();
/// Those in which plans are made: fp32 on shared cores alone.
const std::vector<std::string>& planned_precisions();
/// Throws Error{usage} with `where` for another word.
const PrecisionRecipe& precision_recipe(const std::string& word, const std::string& where);

/// Reads `precision` and `precisions` of a run file.
PrecisionRecipe read_precisions(YamlMap& map);
/// Writes these keys for read_precisions.
void write_precisions(YAML::Emitter& out, Precision compute, const Precisions& precisions);

}  // namespace wt
