// A layout: how the ranks of a run are arranged and what each of them holds. Mesh axes as in HSDP with experts inside:
// world = pipeline x replicate x shard x tensor; `shard` ranks together hold one copy of a stage's tensor slice (the
// HSDP replica size); `expert` and `context` divide shard; expert_shard = shard / expert. replicate x 1 is DDP, 1 x
// shard FSDP, anything else HSDP; replicate x 1 with optimizer_shard = replicate is ZeRO-1 (Megatron's distributed
// optimizer).
//
// The trainer runs replicate, shard, expert and context; tensor, pipeline, context_ring and recompute of modules from
// Module::core on are simulated alone, so that runs of other stacks can be replayed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/recompute.hpp"

namespace wt {

class YamlMap;
struct ModelSpec;

enum class Precision { fp32, bf16 };  ///< of compute and gathered weights; masters, gradients and AdamW state are fp32

std::string to_string(Precision precision);

/// Order of a pipeline stage's microbatches. one_f_one_b: Narayanan et al. 2021 (arXiv 2104.04473), interleaved where
/// stages have several chunks; zero_bubble: ZB-H1 of Qi et al. 2023 (arXiv 2401.10241), gradients of inputs before
/// those of weights; dualpipe_v: DualPipe of DeepSeek-V3 (arXiv 2412.19437, section 3.2.1) with one copy of the
/// weights. A stage has two chunks, one on the way to the head and one on the way from it, so that each microbatch
/// turns round at the last stage. DualPipe of 2 p ranks is two of these of p ranks each, which hold each other's
/// weights.
enum class Schedule { one_f_one_b, zero_bubble, dualpipe_v };
std::string to_string(Schedule schedule);
/// "1f1b", "zero_bubble", "dualpipe_v".
const std::vector<std::string>& schedule_names();
std::optional<Schedule> schedule_from_string(const std::string& word);

/// How the rows of tokens get to their experts on other ranks, and back. alltoall: each row by itself, through the
/// collective library. deepep and hybridep (deepseek-ai/DeepEP, docs of Megatron-Core's flex dispatcher): a token goes
/// once to each node, or rack, that has some of its experts, and on over NVLink to each of their ranks. uccl (UCCL-EP,
/// uccl-project/uccl): DeepEP's kernels, whose messages between nodes threads of the host send.
enum class Dispatcher { alltoall, deepep, hybridep, uccl };
std::string to_string(Dispatcher dispatcher);
const std::vector<std::string>& dispatcher_names();
std::optional<Dispatcher> dispatcher_from_string(const std::string& word);

/// What of a step is recorded as CUDA graphs, which the host launches as one: nothing; attention and router with what
/// prepares the dispatch (Megatron-Core's scopes attn, moe_router, moe_preprocess); or everything.
enum class CudaGraphs { none, partial, full };
std::string to_string(CudaGraphs graphs);

struct Layout {
  std::int64_t replicate = 1;
  std::int64_t shard = 1;
  std::int64_t expert = 1;
  std::int64_t microbatch =
      1;  ///< sequences a group of `context` ranks processes at once; the last ones of a step may be fewer
  Recompute recompute;  ///< none
  /// placement[layer][slot] = logical expert; expert rank e owns slots [e*n/expert, (e+1)*n/expert) of the n in a row.
  /// An expert listed more than once has copies, which share its rows. Empty = identity.
  std::vector<std::vector<std::int64_t>> placement;
  std::int64_t context =
      1;  ///< neighbouring ranks that share each sequence (context parallelism, keys and values gathered)
  /// Replicas over which the optimizer state of a shard is cut further; divides replicate. 1: every replica keeps all
  /// of it (HSDP); more: hybrid FSDP with a fully sharded optimizer (HFSDP), its weights gathered once a step.
  std::int64_t optimizer_shard = 1;
  bool reshard_after_forward = true;    ///< false: gathered weights stay from forward to backward (ZeRO-2)
  bool reduce_every_microbatch = true;  ///< false: gradients stay whole until the last microbatch of a step
  std::int64_t tensor = 1;          ///< neighbouring ranks that share every product of a layer (Shoeybi et al. 2019)
  bool sequence_parallel = false;   ///< norms and residuals cut over the tensor ranks, too (Korthikanti et al. 2022)
  std::int64_t pipeline = 1;        ///< stages
  std::int64_t virtual_stages = 1;  ///< chunks of neighbouring layers a stage has (interleaved schedule, dualpipe_v)
  Schedule schedule = Schedule::one_f_one_b;
  /// Keys and values go round the context ranks while attention works on those that are there (ring attention, Liu et
  /// al. 2023, arXiv 2310.01889), and round again in backward; else they are gathered, and kept.
  bool context_ring = false;
  /// Layers of each chunk of neighbouring ones, in the model's order; whose a chunk is says stage_of(). Empty = equally
  /// many. The first chunk may have the embedding alone, the last one the output projection. Simulated alone.
  std::vector<std::int64_t> chunk_layers = {};
  /// Modules of multi-token prediction are in the last chunk but one, which then needs no layer; else in the last.
  bool modules_before_head = false;
  /// Tensor ranks have experts of their own (Megatron-Core's expert tensor parallelism of 1): `expert` ranks are
  /// neighbours among shard x tensor ranks. Else experts are cut over the tensor group as other products are.
  bool whole_experts = false;
  Dispatcher dispatcher = Dispatcher::alltoall;
  CudaGraphs cuda_graphs = CudaGraphs::none;
  /// Rows of one microbatch's forward pass travel while another's backward pass computes, and the other way round
  /// (Megatron-Core's overlap_moe_expert_parallel_comm). Simulated alone.
  bool exchange_overlap = false;

  std::int64_t world() const { return pipeline * replicate * shard * tensor; }
  /// Ranks that hold one copy of weights and optimizer state together: what a lost node takes along.
  std::int64_t state_ranks() const { return pipeline * shard * tensor * optimizer_shard; }
  /// Ranks of one pipeline stage; rank / stage_ranks() is the stage.
  std::int64_t stage_ranks() const { return replicate * shard * tensor; }
  /// Which of the replicate x shard data ranks a rank is: those of one tensor group and of all stages are the same one.
  std::int64_t data_rank(std::int64_t rank) const { return rank % stage_ranks() / tensor; }
  /// What of it is simulated alone, in the words of run files; empty = it trains.
  std::vector<std::string> untrainable() const;
  bool trainable() const { return untrainable().empty(); }
  /// Weights are gathered once a step and gradients summed once, each in one buffer of the compute or gradient type
  /// that holds them all: what Megatron does. shard is then ZeRO-1, too.
  bool resident_weights() const {
    return (tensor > 1 || pipeline > 1) && !reshard_after_forward && !reduce_every_microbatch;
  }
  /// Ranks over which a replica's experts are dealt and sharded.
  std::int64_t expert_ranks() const { return shard * (whole_experts ? tensor : 1); }
  std::int64_t expert_shard() const { return expert_ranks() / expert; }
  /// Which of the ranks that hold different tokens' rows, in the order in which they share experts: / expert is the
  /// expert group, % expert the place in it.
  std::int64_t row_rank(std::int64_t rank) const { return whole_experts ? rank % stage_ranks() : data_rank(rank); }
  /// The stage that has a chunk: one after the other, with dualpipe_v forth and back.
  std::int64_t stage_of(std::int64_t chunk) const {
    return schedule == Schedule::dualpipe_v && chunk >= pipeline ? 2 * pipeline - 1 - chunk : chunk % pipeline;
  }
  /// Layers of each chunk: chunk_layers, or equally many. Where they do not divide, embedding and output projection
  /// stand for layers of the first and the last chunk, as Megatron-Core's account_for_embedding_in_pipeline_split and
  /// account_for_loss_in_pipeline_split do, and further layers are missing at the ends. At most two chunks more than
  /// layers.
  std::vector<std::int64_t> layers_of_chunks(std::int64_t layers) const;
  /// Groups of ranks that read different sequences.
  std::int64_t data_ranks() const { return replicate * shard / context; }
  /// Expert slots of a layer over all expert ranks: the model's experts and the further copies.
  std::int64_t slots(const ModelSpec& model) const;
  std::int64_t slots_per_rank(const ModelSpec& model) const { return slots(model) / expert; }
  /// Logical expert in a slot of a layer.
  std::int64_t expert_in_slot(std::int64_t layer, std::int64_t slot) const {
    return placement.empty() ? slot : placement[static_cast<std::size_t>(layer)][static_cast<std::size_t>(slot)];
  }
  /// "2x2 expert 2": replicate x shard; what differs from the default follows.
  std::string name() const;
  /// Throws Error{usage}: expert and context must divide shard, optimizer_shard replicate, expert the slots of a layer;
  /// every row of the placement must list every expert. tensor must divide heads and FFN widths, and go with kv_heads;
  /// a pipeline has a layer in every chunk but those with the embedding, the head or modules of multi-token prediction,
  /// and gathers weights and sums gradients once a step.
  void check(const ModelSpec& model, const std::string& where) const;
};

}  // namespace wt
