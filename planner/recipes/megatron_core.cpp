// Megatron-LM core_v0.16.1: the flags of pretrain_gpt.py (megatron/training/arguments.py).
#include <algorithm>

#include "planner/recipes/launch.hpp"
#include "planner/recipes/megatron.hpp"

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
    const auto& all = kNarrowFlags;
    const auto known = std::ranges::find_if(
        all, [&](const NarrowFlags& narrow) { return kind + "-format" == narrow.flag && recipe == narrow.recipe; });
    if (known == all.end())
      reading.in.fail(kind + "-recipe", "found {}, needs tensorwise, delayed, blockwise, mxfp8 or nvfp4", recipe);
    set_precision(reading.run, known->precision);
  }
  const std::string moments = reading.in.text("exp-avg-dtype", "fp32");
  const auto format = meaning_of(kMomentFormats, moments);
  if (!format) reading.in.fail("exp-avg-dtype", "found {}, needs fp32, bf16, fp16 or fp8", moments);
  if (reading.run.precision == Precision::bf16) reading.run.precisions.moments = *format;
  reading.in.text("exp-avg-sq-dtype", "");
  keys.flag("use_precision_aware_optimizer", false);
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
  draft.out.put("max-position-embeddings", run.seq);
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
  MegatronKeys keys(reading.in, true);
  if (reading.model)
    reading.run.model = *reading.model;
  else
    read_megatron_model(reading, keys, megatron_default_model());
  const std::int64_t said = torchrun_world(reading.in);
  read_megatron_layout(reading, keys, reading.world(said, "nproc-per-node"));
  read_megatron_training(reading, keys);
  read_core_precision(reading, keys);
  read_megatron_switches(reading, keys);
  reading.in.integer("max-position-embeddings", 0);
  for (const char* flag : {"attention-dropout", "hidden-dropout"})
    if (const double dropout = reading.in.number(flag, 0.1); dropout > 0)
      reading.assume("{}: found {}, taken as 0: no run of ours drops activations", flag, dropout);
}

Settings parse_core(const std::string& text, const std::string& origin, const RecipeSource&) {
  return settings_from_shell(text, origin);
}

}  // namespace

const RecipeTranslator kMegatronCore{"Megatron-LM core_v0.16.1",
                                     "pretrain.sh",
                                     true,
                                     write_core,
                                     read_core,
                                     nullptr,
                                     parse_core,
                                     "--lr",
                                     "--lr-warmup-iters",
                                     "--data-path and --tokenizer-type in place of --mock-data and NullTokenizer"};

}  // namespace wt
