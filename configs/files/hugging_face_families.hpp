// The families of Hugging Face's config.json, by model_type: what each is, without transformers. Facts of a family are
// those of its classes in transformers 5.24 (configuration_NAME.py, modeling_NAME.py), or of the model's own code where
// transformers has none (bailing_moe, minicpm, exaone).
#pragma once
#include <map>
#include <string>

#include "configs/files/hugging_face_config.hpp"

namespace wt {

using FamilyReader = void (*)(const HuggingFaceConfig&, ModelSpec&);
using Families = std::map<std::string, FamilyReader>;

/// Llama's block with other norms, biases, activations and windows.
const Families& dense_families();
/// Blocks from before Llama, and parallel ones.
const Families& older_families();
/// Experts with attention of heads.
const Families& expert_families();
/// Latent attention, with experts or without.
const Families& latent_families();
/// Linear mixers between layers of attention.
const Families& mixer_families();
/// Attention of other widths in some layers.
const Families& unequal_families();

/// All of them.
const Families& hugging_face_families();
/// Why a known family is not read; "" for any other word.
std::string why_not_read(const std::string& model_type);

/// Readers that one file needs from another.
void read_qwen_moe(const HuggingFaceConfig& config, ModelSpec& m, const FamilyDefaults& family = {});
/// Nemotron-H and Nemotron 3: each layer holds only Mamba-2, attention, an FFN or experts.
void read_nemotron_h(const HuggingFaceConfig& config, ModelSpec& m);

}  // namespace wt
