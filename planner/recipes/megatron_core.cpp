// Megatron-LM core_v0.16.1: the flags of pretrain_gpt.py (megatron/training/arguments.py).
#include <algorithm>

#include "planner/recipes/launch.hpp"
#include "planner/recipes/megatron.hpp"
#include "planner/recipes/megatron_yaml.hpp"

namespace wt {
namespace {

/// An fp8 or fp4 format with its flag and recipe. The first entry of a word is written.
struct NarrowFlags {
  const char* precision;
  const char* flag;
  const char* format;
  const char* recipe;
};
const std::vector<NarrowFlags> kNarrowFlags{{"amp_fp8", "fp8-format", "hybrid", "tensorwise"},
                                            {"amp_fp8", "fp8-format", "hybrid", "delayed"},
                                            {"amp_fp8_blockwise", "fp8-format", "e4m3", "blockwise"},
                                            {"amp_mxfp8", "fp8-format", "e4m3", "mxfp8"},
                                            {"amp_nvfp4", "fp4-format", "e2m1", "nvfp4"}};

const RecipeWords<NumberFormat> kMomentFormats{{"fp32", NumberFormat::fp32},
                                               {"bf16", NumberFormat::bf16},
                                               {"fp16", NumberFormat::fp16},
                                               {"fp8", NumberFormat::fp8}};

const char* const kSummedInFp32 = "accumulate-allreduce-grads-in-fp32";  ///< bf16 implies it

void write_core_precision(RecipeDraft& draft, MegatronKeys& keys) {
  const std::string word = precision_word(draft.run);
  if (word == "amp_fp16") {
    draft.out.put("fp16", true);
    if (!draft.run.pure_reduction) draft.out.put(kSummedInFp32, true);
  } else if (draft.run.precision == Precision::bf16) {
    draft.out.put("bf16", true);
  }
  for (const NarrowFlags& narrow : kNarrowFlags)
    if (word == narrow.precision && !draft.out.has(narrow.flag)) {
      draft.out.put(narrow.flag, narrow.format);
      draft.out.put(std::string(narrow.flag).substr(0, 3) + "-recipe", narrow.recipe);
    }
  const NumberFormat moments = draft.run.precisions.moments;
  if (moments != NumberFormat::fp32 && draft.run.precision == Precision::bf16) {
    keys.put_flag("use_precision_aware_optimizer", true);
    for (const char* flag : {"exp-avg-dtype", "exp-avg-sq-dtype"})
      draft.out.put(flag, word_of(kMomentFormats, moments, "bf16"));
  }
  draft.why["precisions"] = "Megatron-LM has no flag for this class of operations alone";
}

void read_core_precision(RecipeReading& reading, MegatronKeys& keys) {
  const bool half = reading.in.boolean("fp16", false), bf16 = reading.in.boolean("bf16", false);
  set_precision(reading.run, half ? "amp_fp16" : bf16 ? "amp_bf16" : "fp32");
  const bool summed = reading.in.boolean(kSummedInFp32, false);
  if (half) reading.run.pure_reduction = !summed;
  for (const std::string kind : {"fp8", "fp4"}) {
    if (!reading.in.has(kind + "-format")) continue;
    const std::string format = reading.in.text(kind + "-format", ""),
                      recipe = reading.in.text(kind + "-recipe", kind == "fp8" ? "delayed" : "nvfp4");
    set_precision(reading.run, narrow_precision(reading.in, kind + "-recipe", recipe));
  }
  if (reading.in.boolean("fp8-param-gather", false) && reading.in.has("fp8-format"))
    reading.run.precisions.gathered_weights = reading.run.precisions.forward;
  const std::string moments = reading.in.text("exp-avg-dtype", "fp32");
  const auto format = meaning_of(kMomentFormats, moments);
  if (!format) reading.in.fail("exp-avg-dtype", "found {}, needs fp32, bf16, fp16 or fp8", moments);
  if (reading.run.precision == Precision::bf16) reading.run.precisions.moments = *format;
  reading.in.text("exp-avg-sq-dtype", "");
  keys.flag("use_precision_aware_optimizer", false);
}

/// Flags of other releases, and deprecated ones, in the words of this one (arguments.py of each).
void modernize(Settings& in) {
  const auto becomes = [&](const char* old, const char* now, Settings::Value value) {
    if (!in.has(old)) return;
    in.mark_read(old);
    if (!in.has(now)) in.put(now, value.is_null() ? in.at(old) : std::move(value));
  };
  for (const auto& [old, now] : {std::pair{"use-custom-fsdp", "use-megatron-fsdp"},
                                 {"layernorm-epsilon", "norm-epsilon"},
                                 {"encoder-num-layers", "num-layers"},
                                 {"encoder-seq-length", "seq-length"},
                                 {"cuda-graph-modules", "cuda-graph-scope"}})
    becomes(old, now, nullptr);
  becomes("fp8-e4m3", "fp8-format", "e4m3");
  becomes("fp8-hybrid", "fp8-format", "hybrid");
  becomes("use-rotary-position-embeddings", "position-embedding-type", "rope");
  becomes("no-position-embedding", "position-embedding-type", "none");
  becomes("enable-cuda-graph", "cuda-graph-impl", "local");
  becomes("external-cuda-graph", "cuda-graph-impl", "transformer_engine");
  if (!in.boolean("moe-layer-recompute", false)) return;
  in.put("recompute-granularity", "selective");
  Settings::Value modules = in.texts("recompute-modules");
  modules.push_back("moe");
  in.put("recompute-modules", modules);
}

void write_core(RecipeDraft& draft) {
  MegatronKeys keys(draft.out, true);
  const RunSpec& run = draft.run;
  write_megatron_model(draft, keys);
  draft.out.put("padded-vocab-size", run.model.vocab);
  draft.out.put("tokenizer-type", "NullTokenizer");
  draft.out.put("mock-data", true);
  write_megatron_layout(draft, keys);
  write_megatron_training(draft, keys);
  draft.out.put("max-position-embeddings", std::max(run.seq, run.model.learned_positions));
  draft.out.put("attention-dropout", 0.0);
  draft.out.put("hidden-dropout", 0.0);
  write_core_precision(draft, keys);
  write_megatron_switches(draft, keys);
  draft.command = torchrun_command(draft, "pretrain_gpt.py");
  draft.next_step = fmt::format(
      "{} pretrain.sh in a checkout of Megatron-LM core_v0.16.1; --fake-process-group on one GPU is a dry run",
      nodes_and_gpus(draft).first > 1 ? "sbatch" : "bash");
}

void read_core(RecipeReading& reading) {
  modernize(reading.in);
  MegatronKeys keys(reading.in, true);
  if (reading.model) {
    reading.run.model = *reading.model;
    need_same_shape(reading, keys);
    for (const char* said :
         {"vocab_size", "padded_vocab_size", "make_vocab_size_divisible_by", "tokenizer_type", "tokenizer_model"})
      keys.value(said);
  } else {
    read_megatron_model(reading, keys, megatron_default_model());
  }
  read_megatron_layout(reading, keys, launched_world(reading));
  read_megatron_training(reading, keys);
  read_core_precision(reading, keys);
  read_megatron_switches(reading, keys);
  reading.in.integer("max-position-embeddings", 0);
  for (const char* flag : {"attention-dropout", "hidden-dropout"})
    if (const double dropout = reading.in.number(flag, 0.1); dropout > 0)
      reading.assume("{}: found {}, taken as 0: no run of ours drops activations", flag, dropout);
}

Settings parse_core(const std::string& text, const std::string& origin, const RecipeSource& source) {
  const bool sections =
      text.find("MODEL_ARGS:") != std::string::npos || text.find("language_model:") != std::string::npos;
  if (!sections) return settings_from_shell(text, origin, source);
  const Settings file = settings_from_pyyaml(text, origin);
  return is_megatron_yaml(file) ? megatron_from_yaml(file, source) : settings_from_shell(text, origin, source);
}

}  // namespace

std::string narrow_precision(const Settings& settings, const std::string& key, const std::string& recipe) {
  const auto known = std::ranges::find_if(kNarrowFlags, [&](const NarrowFlags& one) { return recipe == one.recipe; });
  if (known == kNarrowFlags.end())
    settings.fail(key, "found {}, needs tensorwise, delayed, blockwise, mxfp8 or nvfp4", recipe);
  return known->precision;
}

const RecipeTranslator kMegatronCore{"Megatron-LM core_v0.16.1",
                                     "pretrain.sh",
                                     true,
                                     write_core,
                                     read_core,
                                     nullptr,
                                     parse_core,
                                     "--lr",
                                     "--lr-warmup-iters",
                                     "--data-path and --tokenizer-type in place of --mock-data and NullTokenizer",
                                     "megatron-core"};

}  // namespace wt
