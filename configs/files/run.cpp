#include "configs/files/run.hpp"

#include <array>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/adapted_modules.hpp"
#include "configs/files/check_lora.hpp"
#include "configs/files/limits.hpp"
#include "configs/files/pipeline_layout.hpp"
#include "configs/files/shared_cache.hpp"
#include "configs/files/stack.hpp"

namespace wt {
namespace {

void read_chunks(YamlMap& m, const ModelSpec& model, Layout& layout) {
  if (m.has("pipeline_chunk_layers")) {
    try {
      layout.chunk_layers = m.node("pipeline_chunk_layers").as<std::vector<std::int64_t>>();
    } catch (const YAML::Exception&) {
      m.fail("pipeline_chunk_layers", "needs a list of numbers of layers, one a chunk");
    }
  }
  if (!m.has("pipeline_layout")) return;
  if (m.has("pipeline_chunk_layers")) m.fail("pipeline_layout", "found pipeline_chunk_layers, too; needs one of them");
  const PipelineLayout said = pipeline_layout_from_string(m.text("pipeline_layout"), m.where("pipeline_layout"));
  if (said.modules != model.mtp_layers)
    m.fail("pipeline_layout", "found {} modules m; needs the model's {}", said.modules, model.mtp_layers);
  layout.chunk_layers = said.layers;
  layout.modules_before_head = said.modules_before_head;
}

void read_layout(YamlMap& map, RunSpec& run) {
  if (!map.has("fsdp_config")) return;
  YamlMap m = map.map("fsdp_config");
  Layout& layout = run.layout;
  layout.replicate = m.integer_or("data_parallel_replicate_degree", 1, 1);
  layout.shard = m.integer_or("data_parallel_shard_degree", 1, 1);
  layout.expert = m.integer_or("expert_parallel_degree", 1, 1);
  layout.context = m.integer_or("context_parallel_degree", 1, 1);
  const std::int64_t state = m.integer_or("optimizer_shard_degree", layout.shard, 1);
  if (state % layout.shard != 0)
    m.fail("optimizer_shard_degree", "needs a multiple of data_parallel_shard_degree = {}", layout.shard);
  layout.optimizer_shard = state / layout.shard;
  layout.reshard_after_forward = m.boolean("reshard_after_forward", true);
  layout.reduce_every_microbatch = m.choice("gradient_reduction", {"microbatch", "step"}, "microbatch") == "microbatch";
  run.pure_reduction = m.choice("mixed_precision", {"DEFAULT", "PURE"}, "DEFAULT") == "PURE";
  layout.context_ring = m.boolean("context_parallel_ring", false);
  layout.tensor = m.integer_or("tensor_parallel_degree", 1, 1);
  layout.sequence_parallel = m.boolean("sequence_parallel", false);
  layout.pipeline = m.integer_or("pipeline_parallel_degree", 1, 1);
  layout.schedule = m.enumerator("pipeline_schedule", schedule_names(), Schedule::one_f_one_b);
  layout.virtual_stages = m.integer_or("virtual_pipeline_degree", layout.schedule == Schedule::dualpipe_v ? 2 : 1, 1);
  read_chunks(m, run.model, layout);
  const std::int64_t cut = m.integer_or("expert_tensor_parallel_degree", layout.tensor, 1);
  if (cut != 1 && cut != layout.tensor)
    m.fail("expert_tensor_parallel_degree", "found {}, allowed 1 or tensor_parallel_degree = {}", cut, layout.tensor);
  layout.whole_experts = cut < layout.tensor;
  layout.dispatcher = m.enumerator("token_dispatcher", dispatcher_names(), Dispatcher::alltoall);
  layout.cuda_graphs = m.enumerator("cuda_graphs", std::array{"none", "partial", "full"}, CudaGraphs::none);
  layout.exchange_overlap = m.boolean("overlap_expert_exchange", false);
  layout.offload_activations = m.boolean("activation_cpu_offload", false);
  layout.recompute = read_recompute(m);
  if (m.has("expert_placement")) {
    const YAML::Node rows = m.node("expert_placement");
    try {
      layout.placement = rows.as<std::vector<std::vector<std::int64_t>>>();
    } catch (const YAML::Exception&) {
      m.fail("expert_placement", "needs one list of logical experts a layer");
    }
  }
  m.finish();
}

void read_smaller_layouts(YamlMap& map, RunSpec& run) {
  if (!map.has("smaller_layouts")) return;
  for (YamlMap& m : map.maps("smaller_layouts")) {
    RunSpec smaller = run;
    smaller.layout = {}, smaller.resilience = {};  // a layout without replicas cannot use verify_interval
    read_layout(m, smaller);
    smaller.microbatch_auto = false;
    smaller.layout.microbatch = m.integer("device_train_microbatch_size", 1);
    if (smaller.pure_reduction != run.pure_reduction)
      m.fail("fsdp_config", "found another mixed_precision than the run's, needs the same");
    m.finish();
    check_run(smaller, m.where("fsdp_config"));
    run.smaller_layouts.push_back(smaller.layout);
  }
}

void check_end_token(const DatasetSpec& data, const ModelSpec& model, const std::string& key) {
  if (data.finetuning && data.finetuning->eos_token_id && *data.finetuning->eos_token_id >= model.vocab)
    throw_usage("{}: found {}, the model's vocab_size is {}; needs a token below it", key,
                *data.finetuning->eos_token_id, model.vocab);
}

/// The fewest digits that read back to the same number.
std::string shortest(double value) { return fmt::format("{}", value); }

}  // namespace

void check_run(const RunSpec& run, const std::string& where) {
  run.model.check(where);
  run.layout.check(run.model, where);
  check_lora(run, where);
  if (run.layout.context > 1 && run.seq % (2 * run.layout.context) != 0)
    throw_usage(
        "{}: max_seq_len: found {}, context parallelism {} needs a multiple of {}: two pieces of each sequence a rank",
        where, run.seq, run.layout.context, 2 * run.layout.context);
  if (run.model.mtp_layers >= run.seq)
    throw_usage("{}: max_seq_len: found {}, {} modules of multi-token prediction need more", where, run.seq,
                run.model.mtp_layers);
  if (run.model.learned_positions > 0 && run.seq > run.model.learned_positions)
    throw_usage("{}: max_seq_len: found {}, the model has learned {} positions; needs at most that many", where,
                run.seq, run.model.learned_positions);
  if (run.dataset.packs() && run.model.attention.chunk > 0)
    throw_usage(
        "{}: train_loader.dataset.packing_ratio: found {} with attention in chunks of {}, whose chunks would begin "
        "anywhere in an example; needs none",
        where, run.dataset.finetuning->packing_ratio, run.model.attention.chunk);
  check_end_token(run.dataset, run.model, where + ": train_loader.dataset.eos_token_id");
  for (const EvalSet& set : run.evaluation.sets)
    check_end_token(set.dataset, run.model,
                    fmt::format("{}: eval_loader.dataset.eos_token_id of '{}'", where, set.label));
  const Precisions& p = run.precisions;
  if (run.layout.schedule != Schedule::one_f_one_b &&
      (p.input_gradients != p.forward || p.weight_gradients != p.forward))
    throw_usage(
        "{}: precisions: found products forward in {}, of input gradients in {}, of weight gradients in {} with {}, "
        "which times them alike; needs one format",
        where, to_string(p.forward), to_string(p.input_gradients), to_string(p.weight_gradients),
        to_string(run.layout.schedule));
  const std::int64_t ranks = run.layout.data_ranks();
  if (run.global_batch < 1 || run.global_batch % ranks != 0)
    throw_usage(
        "{}: global_train_batch_size: found {}, needs a multiple of {} = {}, so that all ranks have as many sequences",
        where, run.global_batch,
        run.layout.trainable() && run.layout.context == 1 ? "world" : "replicate x shard / context", ranks);
  if (run.layout.microbatch > run.global_batch / ranks)
    throw_usage(
        "{}: device_train_microbatch_size: found {}, needs at most the {} sequences that a rank has of "
        "global_train_batch_size = {}",
        where, run.layout.microbatch, run.global_batch / ranks, run.global_batch);
  if (const std::int64_t microbatches = run.global_batch / ranks / run.layout.microbatch;
      microbatches > limits::kMicrobatches)
    throw_usage("{}: device_train_microbatch_size: found {}, that is {} microbatches a step; allowed are at most {}",
                where, run.layout.microbatch, microbatches, limits::kMicrobatches);
  if (run.keep_checkpoints == 0)
    throw_usage(
        "{}: save_num_checkpoints_to_keep: found 0, needs at least 1, or -1 to keep all; `save: false` saves none",
        where);
  const std::int64_t alike = run.layout.context * run.layout.tensor;
  if (run.dataset.replication && *run.dataset.replication != alike)
    throw_usage(
        "{}: train_loader.dataset.replication: found {}, needs the {} ranks of context x tensor parallelism that read "
        "the same samples; leave it out",
        where, *run.dataset.replication, alike);
  const ResilienceSpec& r = run.resilience;
  if (r.verify_interval > 0 && run.layout.replicate == run.layout.optimizer_shard)
    throw_usage(
        "{}: verify_interval: found layout {}, which holds the state once; needs replicas, whose state is compared",
        where, run.layout.name());
  std::int64_t drawn = run.steps;
  for (const BatchRange& range : r.skipped) drawn += range.last - range.first + 1;
  if (!r.skipped.empty() && r.skipped.back().last > drawn)
    throw_usage("{}: skip_batches: found {}, the run draws {} batches, those that it skips among them", where,
                r.skipped.back().last, drawn);
}

Microbatches RunSpec::sequences() const {
  const std::int64_t ranks = layout.data_ranks();
  if (global_batch % ranks != 0)
    throw_usage("global_train_batch_size: found {} for {} ranks, needs a multiple of them", global_batch, ranks);
  return Microbatches::split(global_batch / ranks, layout.microbatch);
}

double RunSpec::flops_per_token() const {
  return wt::flops_per_token(model, lora ? std::optional(adapter_shape(model, *lora)) : std::nullopt, seq);
}

std::vector<std::string> untrainable(const RunSpec& run) {
  std::vector<std::string> out = run.layout.untrainable();
  // The trainer recomputes a norm only where a single product reads its output.
  const ModelSpec& m = run.model;
  for (std::int64_t layer = 0; layer < m.layers; ++layer)
    if (run.layout.recompute.of(layer, m.layers).norm &&
        (m.norm != Norm::rmsnorm || m.attention.mla.on() || m.ffn_width(layer) > 0)) {
      out.push_back(fmt::format(
          "recompute of norm in layer {}, where LayerNorm, latent attention, a dense FFN or shared experts follow",
          layer));
      break;
    }
  if (!plain_precisions(run.precision, run.precisions))
    out.emplace_back("number formats other than those of precision fp32 and amp_bf16");
  if (run.pure_reduction) out.emplace_back("mixed_precision PURE");
  if (m.router.aux_of_microbatch && m.router.aux_loss_weight > 0 && run.layout.context > 1)
    out.emplace_back("moe_loss_over microbatch under context parallelism");
  if (run.optimizer.kind == OptimizerKind::muon) out.push_back("optimizer " + to_string(run.optimizer.kind));
  if (run.optimizer.offload_fraction > 0)
    out.push_back(fmt::format("offload_fraction {} of the optimizer", run.optimizer.offload_fraction));
  const auto has_examples = [](const EvalSet& set) { return set.dataset.finetuning.has_value(); };
  const bool examples = run.dataset.finetuning || std::ranges::any_of(run.evaluation.sets, has_examples);
  if (examples && m.mtp_layers > 0)
    out.emplace_back("multi-token prediction on finetuning data, whose targets have gaps");
  return out;
}

namespace {

/// Writes the layout of the run, or one for fewer ranks.
void write_layout(YAML::Emitter& out, const RunSpec& run, const Layout& layout) {
  out << YAML::Key << "device_train_microbatch_size" << YAML::Value
      << (run.microbatch_auto ? "auto" : std::to_string(layout.microbatch));
  out << YAML::Key << "fsdp_config" << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "data_parallel_replicate_degree" << YAML::Value << layout.replicate;
  out << YAML::Key << "data_parallel_shard_degree" << YAML::Value << layout.shard;
  out << YAML::Key << "expert_parallel_degree" << YAML::Value << layout.expert;
  write_recompute(out, layout.recompute);
  out << YAML::Key << "context_parallel_degree" << YAML::Value << layout.context;
  out << YAML::Key << "optimizer_shard_degree" << YAML::Value << layout.shard * layout.optimizer_shard;
  out << YAML::Key << "reshard_after_forward" << YAML::Value << layout.reshard_after_forward;
  out << YAML::Key << "gradient_reduction" << YAML::Value << (layout.reduce_every_microbatch ? "microbatch" : "step");
  if (run.pure_reduction) out << YAML::Key << "mixed_precision" << YAML::Value << "PURE";
  if (layout.offload_activations) out << YAML::Key << "activation_cpu_offload" << YAML::Value << true;
  if (!layout.trainable()) {
    out << YAML::Key << "context_parallel_ring" << YAML::Value << layout.context_ring;
    out << YAML::Key << "tensor_parallel_degree" << YAML::Value << layout.tensor;
    out << YAML::Key << "sequence_parallel" << YAML::Value << layout.sequence_parallel;
    out << YAML::Key << "pipeline_parallel_degree" << YAML::Value << layout.pipeline;
    out << YAML::Key << "virtual_pipeline_degree" << YAML::Value << layout.virtual_stages;
    out << YAML::Key << "pipeline_schedule" << YAML::Value << to_string(layout.schedule);
    if (!layout.chunk_layers.empty())
      out << YAML::Key << "pipeline_layout" << YAML::Value
          << to_string(PipelineLayout{layout.layers_of_chunks(run.model.layers), run.model.mtp_layers,
                                      layout.modules_before_head});
    out << YAML::Key << "expert_tensor_parallel_degree" << YAML::Value << (layout.whole_experts ? 1 : layout.tensor);
    out << YAML::Key << "token_dispatcher" << YAML::Value << to_string(layout.dispatcher);
    out << YAML::Key << "cuda_graphs" << YAML::Value << to_string(layout.cuda_graphs);
    out << YAML::Key << "overlap_expert_exchange" << YAML::Value << layout.exchange_overlap;
  }
  if (!layout.placement.empty()) {
    out << YAML::Key << "expert_placement" << YAML::Value << YAML::BeginSeq;
    for (const auto& row : layout.placement) out << YAML::Flow << row;
    out << YAML::EndSeq;
  }
  out << YAML::EndMap;
}

Duration whole_duration(YamlMap& map) { return Duration::parse(map.text("max_duration"), map.where("max_duration")); }

/// Converts the run's durations.
RunClock clock_of(YamlMap& map, const RunSpec& run) {
  const std::string where = map.where("max_duration");
  // As in the sampler, an incomplete last batch is dropped.
  const auto epoch = [data = run.dataset, batch = run.samples_per_step(), where]() -> std::int64_t {
    const std::int64_t batches = samples_of_epoch(data, where) / batch;
    if (batches == 0) throw_usage("{}: {}: found less than one batch of {}", where, data.folder().string(), batch);
    return batches;
  };
  return {{run.global_batch, run.seq, epoch}, whole_duration(map)};
}

/// `file` appears in errors, and gives the name where run_name is missing.
RunSpec run_from_map(YamlMap map, const std::filesystem::path& file) {
  RunSpec run;
  run.name = map.text("run_name", file.stem().string());
  map.has("variables");  // marks the free keys, already used by references, as known
  run.model = model_of(map, &run.lora);
  read_layout(map, run);
  run.microbatch_auto = map.text("device_train_microbatch_size") == "auto";
  run.layout.microbatch = run.microbatch_auto ? 1 : map.integer("device_train_microbatch_size", 1);
  run.global_batch = map.integer("global_train_batch_size", 1, limits::kBatch);
  run.seq = map.integer("max_seq_len", 1, limits::kSequence);
  const PrecisionRecipe recipe = read_precisions(map);
  run.precision = recipe.compute;
  run.precisions = recipe.precisions;
  if (map.has("loss_chunks")) run.loss_chunks = loss_chunks_from_yaml(map);
  run.device = device_from_yaml(map);
  run.seed = static_cast<std::uint64_t>(map.integer_or("seed", 17, 0));
  if (map.has("train_loader"))
    run.dataset = read_train_loader(map.map("train_loader"), {{run.global_batch, run.seq}, whole_duration(map)});
  run.layout.check(run.model, file.string());  // before the batch is divided by the ranks
  const RunClock clock = clock_of(map, run);
  run.steps = clock.steps(map.where("max_duration"));
  read_optimizer(map, clock, run.optimizer);
  run.evaluation = read_evaluation(map, clock);
  check_caches(map, run.evaluation, run.dataset);
  run.save_interval = read_batches(map, "save_interval", clock, 0);
  run.keep_checkpoints = map.integer_or("save_num_checkpoints_to_keep", 2, -1);
  run.save = map.boolean("save", true);
  run.save_folder = map.text("save_folder", "");
  if (!run.save && !run.save_folder.empty())
    map.fail("save_folder", "found '{}' with save: false, needs save: true, or no folder", run.save_folder);
  run.autoresume = map.boolean("autoresume", true);
  run.load_path = map.text("load_path", "");
  if (map.has("callbacks")) {
    YamlMap callbacks = map.map("callbacks");
    YamlMap exporter = callbacks.map("hf_checkpointer");
    run.export_path = exporter.text("save_folder");
    run.export_precision = exporter.enumerator("precision", std::array{"float32", "bfloat16"}, Precision::fp32);
    exporter.finish();
    callbacks.finish();
  }
  run.dist_timeout_s = map.number_or("dist_timeout", 600, 1);
  run.resilience = read_resilience(map, clock);
  run.loggers = read_loggers(map);
  read_smaller_layouts(map, run);
  if (map.has("rehearsal")) {
    YamlMap rehearsal = map.map("rehearsal");
    run.rehearsal = read_rehearsal(rehearsal);
    if (run.rehearsal.rank >= run.layout.world())
      rehearsal.fail("rank", "found {}, the layout {} has ranks 0 to {}", run.rehearsal.rank, run.layout.name(),
                     run.layout.world() - 1);
  }
  map.finish();
  check_run(run, file.string());
  return run;
}

}  // namespace

RunSpec read_run(const std::filesystem::path& file) { return run_from_text(read_file(file, "a YAML file"), file); }

RunSpec run_from_text(const std::string& text, const std::filesystem::path& origin) {
  return run_from_map(YamlMap::from_text_with_references(text, origin.string()), origin);
}

std::string run_to_yaml(const RunSpec& run) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "run_name" << YAML::Value << run.name;
  out << YAML::Key << "max_duration" << YAML::Value << fmt::format("{}ba", run.steps);
  out << YAML::Key << "max_seq_len" << YAML::Value << run.seq;
  out << YAML::Key << "global_train_batch_size" << YAML::Value << run.global_batch;
  write_precisions(out, run.precision, run.precisions);
  if (run.loss_chunks)
    out << YAML::Key << "loss_chunks" << YAML::Value
        << (*run.loss_chunks == kLigerChunks ? "liger" : std::to_string(*run.loss_chunks));
  out << YAML::Key << "device" << YAML::Value << to_string(run.device);
  out << YAML::Key << "seed" << YAML::Value << run.seed;
  out << YAML::Key << "model" << YAML::Value;
  model_to_yaml(run.model, out, run.lora ? &*run.lora : nullptr);
  write_layout(out, run, run.layout);
  if (!run.smaller_layouts.empty()) {
    out << YAML::Key << "smaller_layouts" << YAML::Value << YAML::BeginSeq;
    for (const Layout& layout : run.smaller_layouts) {
      out << YAML::BeginMap;
      write_layout(out, run, layout);
      out << YAML::EndMap;
    }
    out << YAML::EndSeq;
  }
  optimizer_to_yaml(run.optimizer, run.tokens_per_step(), out);
  if (!run.dataset.empty()) train_loader_to_yaml(run.dataset, out << YAML::Key << "train_loader" << YAML::Value);
  evaluation_to_yaml(run.evaluation, out);
  out << YAML::Key << "save_interval" << YAML::Value << fmt::format("{}ba", run.save_interval);
  out << YAML::Key << "save_num_checkpoints_to_keep" << YAML::Value << run.keep_checkpoints;
  if (!run.load_path.empty()) out << YAML::Key << "load_path" << YAML::Value << run.load_path;
  if (!run.export_path.empty())
    out << YAML::Key << "callbacks" << YAML::Value << YAML::BeginMap << YAML::Key << "hf_checkpointer" << YAML::Value
        << YAML::BeginMap << YAML::Key << "save_folder" << YAML::Value << run.export_path << YAML::Key << "precision"
        << YAML::Value << (run.export_precision == Precision::fp32 ? "float32" : "bfloat16") << YAML::EndMap
        << YAML::EndMap;
  out << YAML::Key << "save" << YAML::Value << run.save;
  if (!run.save_folder.empty()) out << YAML::Key << "save_folder" << YAML::Value << run.save_folder;
  if (!run.autoresume) out << YAML::Key << "autoresume" << YAML::Value << run.autoresume;
  out << YAML::Key << "dist_timeout" << YAML::Value << shortest(run.dist_timeout_s);
  resilience_to_yaml(run.resilience, out);
  loggers_to_yaml(run.loggers, out);
  if (run.rehearsal != RehearsalSpec{})
    rehearsal_to_yaml(run.rehearsal, out << YAML::Key << "rehearsal" << YAML::Value);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace wt
