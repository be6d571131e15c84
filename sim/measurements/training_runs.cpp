#include "configs/base/error.hpp"
#include "sim/measurements/run_line.hpp"
#include "sim/measurements/run_tables.hpp"
#include "sim/measurements/sentence.hpp"

namespace wt {
namespace {

const std::vector<std::string> kNeeded = {"gpu", "n_gpus", "model", "layers", "hidden", "seq_len"};
const std::vector<std::string> kOptional = {"row_id",
                                            "source_id",
                                            "cuda_graphs",
                                            "preset",
                                            "framework",
                                            "gpus_per_node",
                                            "interconnect",
                                            "arch_type",
                                            "arch_evidence",
                                            "heads",
                                            "kv_heads",
                                            "head_dim",
                                            "ffn_hidden",
                                            "expert_ffn",
                                            "gated",
                                            "vocab",
                                            "experts",
                                            "top_k",
                                            "shared_experts",
                                            "params_total",
                                            "fsdp_mode",
                                            "fsdp_shard_group",
                                            "dp",
                                            "ep",
                                            "etp",
                                            "tp",
                                            "pp",
                                            "vp",
                                            "pipeline_layout",
                                            "cp",
                                            "micro_batch",
                                            "grad_accum",
                                            "act_ckpt",
                                            "precision",
                                            "moe_routing",
                                            "dispatcher",
                                            "ep_overlap",
                                            "global_batch_seqs",
                                            "step_time_s",
                                            "mem_gb",
                                            "peak_kind",
                                            "outcome",
                                            "optimizer",
                                            "attention",
                                            "dropout",
                                            "loss",
                                            "weight_gradients",
                                            "expert_products",
                                            "biases",
                                            "tied",
                                            "activation_offload",
                                            "positions",
                                            "dense_layers",
                                            "mtp_layers",
                                            "shared_ffn",
                                            "expert_width",
                                            "kv_lora_rank",
                                            "q_lora_rank",
                                            "qk_nope_head_dim",
                                            "qk_rope_head_dim",
                                            "v_head_dim",
                                            "tokens_per_s_per_gpu"};

/// Whether the framework is NeMo. NeMo's AutoModel is another stack.
bool trained_by_nemo(const std::string& framework) { return has_match(framework, "NeMo(?! ?AutoModel)"); }

/// Whether the framework builds on Megatron-Core, whose recipes shard the optimizer state (ZeRO-1).
bool on_megatron_core(const RunLine& line) {
  return has_match(line.text("framework"), "Megatron-Core|SimuMax|Megatron-Bridge") ||
         trained_by_nemo(line.text("framework"));
}

void fill_sharding(const RunLine& line, RunRow& row) {
  const std::string& mode = line.text("fsdp_mode");
  if (has_match(mode, "ZeRO[- ]?(stage ?)?[12]|SHARD_GRAD_OP|distributed optimizer")) {  // weights are not sharded
    row.zero_stage = 1;
  } else if (has_match(mode, "ZeRO[- ]?0|DDP|NO_SHARD|^(none|no|false|0)$")) {
    row.zero_stage = 0;
  } else if (has_match(mode, "ZeRO[- ]?(stage ?)?3|FSDP|HSDP|FULL_SHARD|HYBRID")) {
    row.zero_stage = 3;
  } else if (!mode.empty()) {
    throw_usage("fsdp_mode: found '{}', known are ZeRO-0 to ZeRO-3, DDP, FSDP, HSDP and FSDP's sharding strategies",
                mode);
  } else if (on_megatron_core(line)) {
    row.zero_stage = 1;
    row.assumed.emplace_back("distributed optimizer");
  } else if (has_match(line.text("framework"), "FSDP|ZeRO[- ]?3")) {
    row.zero_stage = 3;
    row.assumed.emplace_back("weights over all ranks");
  }
  note_unknown_sharding(line, row);
  row.shard_group = row.zero_stage == 0 ? 1 : line.count("fsdp_shard_group").value_or(row.dp * row.cp);
  if (row.dp * row.cp % row.shard_group != 0)
    throw_usage("{} data-parallel ranks in shard groups of {}", row.dp * row.cp, row.shard_group);
  row.experts_beside_shards =
      row.zero_stage == 3 && row.shard_group < row.dp * row.cp && !has_match(mode, "HSDP|HYBRID");
}

/// Degrees that are not stated follow from the number of GPUs; otherwise they are 1.
void fill_degrees(const RunLine& line, RunRow& row) {
  const auto tp = line.count("tp", 1e4), pp = line.count("pp", 1e4), dp = line.count("dp");
  row.cp = line.count("cp", 1e4).value_or(1);
  row.pp = pp.value_or(1);
  const std::int64_t others = dp.value_or(0) * row.pp * row.cp;
  row.tp = tp.value_or(others > 0 && row.gpus % others == 0 ? row.gpus / others : 1);
  if (!tp && others == 0) row.assumed.emplace_back("no tensor parallelism");
  if (!pp) row.assumed.emplace_back("no pipeline");
  row.dp = dp.value_or(std::max<std::int64_t>(1, row.gpus / (row.tp * row.pp * row.cp)));
}

void fill_mesh(const RunLine& line, RunRow& row) {
  row.gpus = line.needed("n_gpus");
  row.gpus_per_node = line.count("gpus_per_node").value_or(8);
  fill_degrees(line, row);
  row.vp = row.pp > 1 ? line.count("vp", 1e4).value_or(1) : 1;
  if (row.pp > 1 && line.has("framework", "DualPipeV")) row.schedule = Schedule::dualpipe_v, row.vp = 2;
  row.ep = line.count("ep", 1e4).value_or(1);
  // Experts are split over the tensor group as well, unless there are more expert ranks than replicas: then each tensor
  // rank has experts of its own (Megatron-Core's folding). Megatron-Bridge's recipes set etp to 1.
  const auto said = line.count("etp", 1e4);
  const bool bridge = line.has("framework", "Megatron-Bridge");
  const std::int64_t etp = said.value_or(!bridge && row.dp * row.cp % row.ep == 0 ? row.tp : 1);
  if (!said && bridge && row.tp > 1 && row.ep > 1)
    row.assumed.emplace_back("whole experts, as Megatron-Bridge's recipes have");
  if (etp != 1 && etp != row.tp)
    throw_usage("etp: found {} with tensor groups of {}; modelled are experts cut over all of a group or none", etp,
                row.tp);
  row.whole_experts = etp < row.tp && line.count("experts").value_or(0) > 0;
  // Recipes of Megatron-Core, nanotron and torchtitan use it whenever there is tensor parallelism. Megatron-LM of 2021,
  // its fork Megatron-DeepSpeed, metaseq (which has Megatron's products), and InternEvo's table do not.
  const bool ampere = line.has("gpu", "A100") || line.has("gpu", "V100");
  const bool first = (line.text("framework") == "Megatron-LM" || line.has("framework", "Megatron-DeepSpeed") ||
                      line.has("framework", "metaseq")) &&
                     ampere,
             old = first || line.has("framework", "InternEvo");
  row.sequence_parallel = row.tp > 1 && (!old || line.has("act_ckpt", "sequence parallel"));
}

/// Layers of the pipeline's chunks, and whether the model has modules of multi-token prediction.
void fill_chunks(const RunLine& line, RunRow& row) {
  const std::string& said = line.text("pipeline_layout");
  if (said.empty()) return;
  row.pipeline_layout = pipeline_layout_from_string(said, "pipeline_layout");
  row.model.mtp_layers = row.pipeline_layout.modules;
}

/// If a source does not state the routing: what the framework's recipes do.
void fill_recipe_routing(const RunLine& line, RunRow& row) {
  if (row.routing != RunRow::Routing::unsaid || row.model.experts == 0) return;
  // moe_pad_expert_input_to_capacity with a moe_expert_capacity_factor of 1: NVIDIA/dgxc-benchmarking
  // grok1/grok1_314b.yaml; MegatronTokenDropCallback of NVIDIA/NeMo's performance recipes (mixtral_8x7b.py).
  if (trained_by_nemo(line.text("framework")))
    row.assumed.emplace_back("experts filled to a capacity of 1, as NeMo's recipes do");
  // moe_router_force_load_balancing: Megatron-Bridge docs/performance-summary.md, footnote.
  else if (line.has("framework", "Megatron-Bridge"))
    row.assumed.emplace_back("balance forced, as Megatron-Bridge's recipes do");
  else
    return;
  row.routing = RunRow::Routing::balanced;
}

void fill_microbatch(const RunLine& line, RunRow& row) {
  if (const auto said = line.count("micro_batch", 1e5)) {
    row.microbatch = *said;
  } else if (row.accumulation > 0 && row.global_batch > 0) {
    row.microbatch = row.global_batch / (row.dp * row.accumulation);
  } else {
    row.microbatch = 1;
    row.assumed.emplace_back("microbatch of 1");
  }
}

void fill_time(const RunLine& line, RunRow& row) {
  const double rate = line.real("tokens_per_s_per_gpu") * static_cast<double>(row.gpus);
  row.step_s = line.real("step_time_s");
  if (row.step_s == 0 && rate > 0) row.step_s = static_cast<double>(row.tokens()) / rate;
}

}  // namespace

std::vector<RunRow> read_training_runs(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file, kNeeded, OtherColumns::ignored, kOptional);
  return run_rows(table, [&](const CsvRow& cells, RunRow& row) {
    const RunLine line(table, cells);
    row.id = line.text("row_id");
    row.source = line.text("source_id");
    row.framework = line.text("framework");
    row.gpu = line.text("gpu");
    row.interconnect.fabric = line.text("interconnect");
    row.model.name = line.text("model");
    row.model.source = line.text("arch_evidence");
    row.precision = precision_recipe(precision_word(line, row), "precision");
    if (line.has("precision", "PURE")) row.gradient_bytes = 2;  // Composer reduces gradients in the compute type
    fill_memory(line, row);
    fill_row_stack(line, row);
    row.seq = line.needed("seq_len", 1e8);
    fill_mesh(line, row);
    fill_sharding(line, row);
    fill_recompute(line, row);
    fill_model(line, row);
    fill_experts(line, row);
    fill_chunks(line, row);
    fill_recipe_routing(line, row);
    row.accumulation = line.count("grad_accum", 1e5).value_or(0);
    row.global_batch = line.count("global_batch_seqs").value_or(0);
    fill_microbatch(line, row);
    if (row.global_batch == 0) row.global_batch = row.dp * row.microbatch * row.accumulation;
    fill_time(line, row);
  });
}

}  // namespace wt
