// Number formats of torchtitan 0.2.2: training.* for 16 and 32 bits, converters of the model below
// (components/quantization/float8.py and mx.py; sections quantize.* of config/job_config.py). A section without its
// converter has no effect.
#include <algorithm>

#include "planner/recipes/torchtitan.hpp"

namespace wt {
namespace {

struct TitanConverters {
  const char* precision;
  const char* linear;   ///< every product but those of experts
  const char* grouped;  ///< those of experts
};
const std::vector<TitanConverters> kTitanConverters{{"amp_fp8", "quantize.linear.float8", "quantize.grouped_mm.float8"},
                                                    {"amp_mxfp8", "quantize.linear.mx", "quantize.grouped_mm.mx"}};
const char* const kConverters = "model.converters";
const char* const kGather = "quantize.linear.float8.enable_fsdp_float8_all_gather";

void write_titan_converters(RecipeDraft& draft, const TitanConverters& converters) {
  const RunSpec& run = draft.run;
  const std::string linear = converters.linear, grouped = converters.grouped;
  std::vector<std::string> words{linear};
  if (run.model.experts > 0) words.push_back(grouped);
  draft.out.put(kConverters, words);
  draft.out.put(linear + ".filter_fqns", std::vector<std::string>{"output", "router.gate"});  // as they are simulated
  if (run.precisions.forward == NumberFormat::fp8)
    draft.out.put(kGather, run.precisions.gathered_weights == NumberFormat::fp8);
  else
    draft.out.put(linear + ".recipe_name", "mxfp8_cublas");
  if (run.model.experts > 0) draft.out.put(grouped + ".fqns", std::vector<std::string>{"experts"});
}

}  // namespace

void write_titan_formats(RecipeDraft& draft) {
  const RunSpec& run = draft.run;
  draft.out.put("training.mixed_precision_param", run.precision == Precision::bf16 ? "bfloat16" : "float32");
  draft.out.put("training.mixed_precision_reduce", "float32");
  draft.out.put("training.dtype", "float32");
  draft.why["fsdp_config.mixed_precision"] = "it reduces in fp32 alone";
  draft.why["precision"] = draft.why["precisions"] =
      "its formats are fp32, bf16, float8 and, without tensor groups, mxfp8";
  const std::string word = precision_word(run);
  for (const TitanConverters& converters : kTitanConverters)
    if (word == converters.precision && (word != "amp_mxfp8" || run.layout.tensor == 1))  // mx.py refuses these
      write_titan_converters(draft, converters);
}

void read_titan_formats(RecipeReading& reading) {
  RunSpec& run = reading.run;
  if (reading.in.text("training.mixed_precision_param", "bfloat16") == "float32") set_precision(run, "fp32");
  const std::vector<std::string> words = reading.in.texts(kConverters);
  const auto has = [&](const std::string& word) { return std::ranges::find(words, word) != words.end(); };
  std::size_t known = 0;
  for (const TitanConverters& converters : kTitanConverters) {
    const std::string linear = converters.linear, grouped = converters.grouped;
    const bool experts = has(grouped) && !reading.in.texts(grouped + ".fqns").empty();
    known += (has(linear) ? 1 : 0) + (has(grouped) ? 1 : 0);
    if (!has(linear) && !experts) continue;
    set_precision(run, converters.precision);
    if (!has(linear) || (run.model.experts > 0 && !experts))
      reading.assume("{}: found {} alone, taken as {} of all products", kConverters, has(linear) ? linear : grouped,
                     converters.precision);
    reading.in.texts(linear + ".filter_fqns");
    const std::string recipe = reading.in.text(linear + ".recipe_name", "");
    if (recipe.find("rowwise") != std::string::npos)
      reading.assume("{}.recipe_name: found {}, taken as one scale a tensor", linear, recipe);
  }
  if (run.precisions.forward == NumberFormat::fp8 && reading.in.boolean(kGather, false))
    run.precisions.gathered_weights = NumberFormat::fp8;
  if (reading.in.text("training.dtype", "float32") == "bfloat16")  // weights, gradients and AdamW's state
    run.precisions.master_weights = run.precisions.moments = NumberFormat::bf16;
  if (known < words.size())
    reading.assume("{}: found {}, of which those are simulated that compute in float8 or mx", kConverters,
                   Settings::Value(words).dump());
}

}  // namespace wt
