// Pipelines of torchtitan 0.2.2: distributed/pipeline_parallel.py.
#include <algorithm>

#include "configs/base/text.hpp"
#include "planner/recipes/torchtitan.hpp"

namespace wt {
namespace {

Settings::Value titan_parts(const std::vector<std::int64_t>& chunks) {
  Settings::Value parts = Settings::Value::array();
  std::int64_t layer = 0;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    Settings::Value part = Settings::Value::array();
    if (chunk == 0) part.push_back("tok_embeddings");
    for (std::int64_t i = 0; i < chunks[chunk]; ++i) part.push_back(fmt::format("layers.{}", layer++));
    if (chunk + 1 == chunks.size()) part.push_back("norm"), part.push_back("output");
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Distributes layers over stages as generate_llm_fqn_per_model_part does. Embedding and head count as layers.
std::vector<std::int64_t> titan_chunks(std::int64_t layers, std::int64_t stages, std::int64_t first_less,
                                       std::int64_t last_less) {
  const std::int64_t all = layers + first_less + last_less;
  std::vector<std::int64_t> out;
  for (std::int64_t stage = 0; stage < stages; ++stage) out.push_back(all / stages + (stage < all % stages ? 1 : 0));
  out.front() -= first_less;
  out.back() -= last_less;
  return out;
}

std::vector<std::int64_t> read_titan_parts(RecipeReading& reading) {
  const Settings::Value parts = reading.in.value("parallelism.module_fqns_per_model_part");
  std::vector<std::int64_t> out;
  for (const Settings::Value& part : parts) {
    if (!part.is_array())
      reading.in.fail("parallelism.module_fqns_per_model_part", "needs a list of lists of module names");
    out.push_back(std::ranges::count_if(part, [](const Settings::Value& module) {
      return module.is_string() && module.get<std::string>().starts_with("layers.");
    }));
  }
  return out;
}

void read_titan_chunks(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  const std::int64_t layers = reading.run.model.layers;
  const auto count = [&](const char* key, std::int64_t fallback, std::int64_t least) {
    return reading.in.integer(std::string("parallelism.pipeline_parallel_") + key, fallback, least);
  };
  const std::int64_t first = count("first_stage_less_layers", 1, 0), last = count("last_stage_less_layers", 1, 0),
                     each = count("layers_per_stage", 0, 1);
  std::vector<std::int64_t> chunks = read_titan_parts(reading);
  if (each > 0) l.virtual_stages = (layers + first + last + each - 1) / each / l.pipeline;
  if (!chunks.empty()) l.virtual_stages = static_cast<std::int64_t>(chunks.size()) / l.pipeline;
  if (l.virtual_stages < 1)
    reading.in.fail("parallelism.pipeline_parallel_degree", "found {}, needs a layer in each stage", l.pipeline);
  if (chunks.empty()) chunks = titan_chunks(layers, l.pipeline * l.virtual_stages, first, last);
  set_chunks(l, std::move(chunks), layers);
}

}  // namespace

void write_titan_pipeline(RecipeDraft& draft) {
  const Layout& l = draft.run.layout;
  if (l.pipeline == 1) return;
  const bool v = l.schedule == Schedule::dualpipe_v;
  draft.out.put("parallelism.pipeline_parallel_schedule", v                      ? "DualPipeV"
                                                          : l.virtual_stages > 1 ? "Interleaved1F1B"
                                                                                 : "1F1B");
  draft.out.put("parallelism.pipeline_parallel_microbatch_size", even_microbatch(draft.run));
  // dual_pipe_v.py refuses recompute with it.
  if (v)
    draft.out.put("parallelism.pipeline_parallel_expert_parallel_overlap", l.exchange_overlap && !l.recompute.any());
  const std::vector<std::int64_t> chunks = l.layers_of_chunks(draft.run.model.layers);
  if (std::equal(chunks.begin() + 1, chunks.end(), chunks.begin())) {
    draft.out.put("parallelism.pipeline_parallel_layers_per_stage", chunks.front());
    draft.out.put("parallelism.pipeline_parallel_first_stage_less_layers", 0);
    draft.out.put("parallelism.pipeline_parallel_last_stage_less_layers", 0);
  } else {
    draft.out.put("parallelism.module_fqns_per_model_part", titan_parts(chunks));
  }
  draft.why["fsdp_config.pipeline_schedule"] = "it has no ZB-H1";
  draft.why["fsdp_config.pipeline_layout"] = "its parts have no modules of multi-token prediction";
}

void read_titan_pipeline(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  if (l.pipeline == 1) return;
  l.reshard_after_forward = l.reduce_every_microbatch = false;
  const std::string word = reading.in.text("parallelism.pipeline_parallel_schedule", "1F1B"), schedule = lower(word);
  const bool single = schedule == "1f1b" || schedule == "gpipe";
  l.virtual_stages = single ? 1 : 2;
  if (schedule == "dualpipev") {
    l.schedule = Schedule::dualpipe_v;
    l.exchange_overlap =
        reading.in.boolean("parallelism.pipeline_parallel_expert_parallel_overlap", true) && l.expert > 1;
  } else if (schedule != "1f1b" && schedule != "interleaved1f1b") {
    reading.assume("parallelism.pipeline_parallel_schedule: found {}, taken as {}", word,
                   single ? "1F1B" : "interleaved 1F1B");
  }
  read_titan_chunks(reading);
}

}  // namespace wt
