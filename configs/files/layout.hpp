// A layout: how the ranks of a run are arranged, and what each holds. Mesh axes are those of HSDP with experts inside:
// world = pipeline x replicate x shard x tensor. `shard` ranks together hold one copy of a stage's tensor slice (the
// HSDP replica size). `expert` and `context` divide shard; expert_shard = shard / expert. replicate x 1 is DDP, 1 x
// shard is FSDP, everything else HSDP; replicate x 1 with optimizer_shard = replicate is ZeRO-1 (Megatron's distributed
// optimizer).
//
// The trainer supports replicate, shard, expert and context. Tensor, pipeline, context_ring and recompute of modules
// from Module::core on are only simulated, to predict runs of other stacks.
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

/// Order of a pipeline stage's microbatches. one_f_one_b: Narayanan et al. 2021 (arXiv 2104.04473), interleaved where a
/// stage has several chunks. zero_bubble: ZB-H1 of Qi et al. 2023 (arXiv 2401.10241), input gradients before weight
/// gradients. dualpipe_v: DualPipe of DeepSeek-V3 (arXiv 2412.19437, section 3.2.1) with one copy of the weights: a
/// stage has two chunks, one on the path to the head and one on the path back, and microbatches turn round at the last
/// stage. DualPipe on 2 p ranks is two of these on p ranks each, which hold each other's weights.
enum class Schedule { one_f_one_b, zero_bubble, dualpipe_v };
std::string to_string(Schedule schedule);
/// "1f1b", "zero_bubble", "dualpipe_v".
const std::vector<std::string>& schedule_names();
std::optional<Schedule> schedule_from_string(const std::string& word);

/// How rows reach their experts on other ranks, and return. alltoall: each row separately, through the collective
/// library. allgather: every rank gathers all tokens of its expert group, and a reduce-scatter sums the experts'
/// outputs (Megatron-Core's allgather dispatcher, Levanter's ring). deepep and hybridep (deepseek-ai/DeepEP, docs of
/// Megatron-Core's flex dispatcher): a token goes once to each node (or rack) that has some of its experts, then over
/// NVLink to each of their ranks. uccl (UCCL-EP, uccl-project/uccl): DeepEP's kernels, with host threads that send the
/// messages between nodes.
enum class Dispatcher { alltoall, allgather, deepep, hybridep, uccl };
std::string to_string(Dispatcher dispatcher);
const std::vector<std::string>& dispatcher_names();
std::optional<Dispatcher> dispatcher_from_string(const std::string& word);
/// Whether a token goes once to each place with some of its experts, however many of its rows go there.
bool sends_once(Dispatcher dispatcher);

/// Which part of a step is recorded as CUDA graphs, which the host launches as one: nothing; attention, router and
/// dispatch preparation (Megatron-Core's scopes attn, moe_router, moe_preprocess); or everything.
enum class CudaGraphs { none, partial, full };
std::string to_string(CudaGraphs graphs);

struct Layout {
  std::int64_t replicate = 1;
  std::int64_t shard = 1;
  std::int64_t expert = 1;
  std::int64_t microbatch =
      1;  ///< sequences that a group of `context` ranks processes at once; the last ones of a step may be fewer
  Recompute recompute;  ///< none
  /// placement[layer][slot] = logical expert; of the n slots of a layer, expert rank e owns e*n/expert up to, but not
  /// including, (e+1)*n/expert. An expert listed more than once has copies, which share its rows. Empty = identity.
  std::vector<std::vector<std::int64_t>> placement;
  std::int64_t context =
      1;  ///< neighbouring ranks that share each sequence (context parallelism, keys and values gathered)
  /// Replicas over which the optimizer state of a shard is further divided; divides replicate. 1: every replica keeps
  /// all of it (HSDP). More: hybrid FSDP with a fully sharded optimizer (HFSDP), whose weights are gathered once a
  /// step.
  std::int64_t optimizer_shard = 1;
  bool reshard_after_forward = true;    ///< false: gathered weights stay from forward to backward (ZeRO-2)
  bool reduce_every_microbatch = true;  ///< false: gradients stay whole until the last microbatch of a step
  std::int64_t tensor = 1;          ///< neighbouring ranks that share every product of a layer (Shoeybi et al. 2019)
  bool sequence_parallel = false;   ///< norms and residuals divided over the tensor ranks too (Korthikanti et al. 2022)
  std::int64_t pipeline = 1;        ///< stages
  std::int64_t virtual_stages = 1;  ///< chunks of consecutive layers per stage (interleaved schedule, dualpipe_v)
  Schedule schedule = Schedule::one_f_one_b;
  /// Ring attention (Liu et al. 2023, arXiv 2310.01889): keys and values travel around the context ranks while
  /// attention works on those that have arrived, and again in backward. Otherwise they are gathered and kept.
  bool context_ring = false;
  /// Layers of each chunk, in the model's order; stage_of() gives a chunk's stage. Empty = equally many. The first
  /// chunk may hold only the embedding, the last one only the output projection. Only simulated.
  std::vector<std::int64_t> chunk_layers = {};
  /// Modules of multi-token prediction are in the last chunk but one, which then may have no layer; otherwise in the
  /// last chunk.
  bool modules_before_head = false;
  /// Experts are not divided over tensor ranks (Megatron-Core's expert tensor parallelism of 1): the `expert` ranks are
  /// neighbours among shard x tensor ranks. Otherwise the tensor group divides experts like other products.
  bool whole_experts = false;
  Dispatcher dispatcher = Dispatcher::alltoall;
  CudaGraphs cuda_graphs = CudaGraphs::none;
  /// The all-to-alls of one microbatch's forward pass overlap another's backward pass, and the reverse (Megatron-Core's
  /// overlap_moe_expert_parallel_comm). Only simulated.
  bool exchange_overlap = false;
  /// What layers keep for backward goes to the host's memory and comes back before it is needed (LLM Foundry's
  /// activation_cpu_offload, TRL's activation_offloading).
  bool offload_activations = false;

  std::int64_t world() const { return pipeline * replicate * shard * tensor; }
  /// Ranks that together hold one copy of weights and optimizer state: the loss of any one of them loses the copy.
  std::int64_t state_ranks() const { return pipeline * shard * tensor * optimizer_shard; }
  /// Ranks of one pipeline stage; rank / stage_ranks() is the stage.
  std::int64_t stage_ranks() const { return replicate * shard * tensor; }
  /// Index among the replicate x shard data ranks, which all ranks of a tensor group and of all stages share.
  std::int64_t data_rank(std::int64_t rank) const { return rank % stage_ranks() / tensor; }
  /// The settings that are only simulated, in the words of run files; empty = the trainer supports it.
  std::vector<std::string> untrainable() const;
  bool trainable() const { return untrainable().empty(); }
  /// As Megatron does, weights are gathered once and gradients summed once per step, each in one buffer of the compute
  /// or gradient type that holds all of them. shard then acts as ZeRO-1.
  bool resident_weights() const {
    return (tensor > 1 || pipeline > 1) && !reshard_after_forward && !reduce_every_microbatch;
  }
  /// Ranks over which a replica's experts are distributed and sharded.
  std::int64_t expert_ranks() const { return shard * (whole_experts ? tensor : 1); }
  std::int64_t expert_shard() const { return expert_ranks() / expert; }
  /// Index among the ranks that hold different tokens' rows: divided by `expert` it is the expert group, modulo
  /// `expert` the position inside it.
  std::int64_t row_rank(std::int64_t rank) const { return whole_experts ? rank % stage_ranks() : data_rank(rank); }
  /// The stage of a chunk: round robin; with dualpipe_v forth and back.
  std::int64_t stage_of(std::int64_t chunk) const {
    return schedule == Schedule::dualpipe_v && chunk >= pipeline ? 2 * pipeline - 1 - chunk : chunk % pipeline;
  }
  /// chunk_layers, or equally many. Where chunks do not divide the layers, embedding and output projection count as
  /// layers of the first and the last chunk (Megatron-Core's account_for_embedding_in_pipeline_split and
  /// account_for_loss_in_pipeline_split), and chunks at the ends have fewer layers. At most two chunks more than
  /// layers.
  std::vector<std::int64_t> layers_of_chunks(std::int64_t layers) const;
  /// Groups of ranks that read different sequences.
  std::int64_t data_ranks() const { return replicate * shard / context; }
  /// Expert slots of a layer over all expert ranks: the model's experts and their extra copies.
  std::int64_t slots(const ModelSpec& model) const;
  std::int64_t slots_per_rank(const ModelSpec& model) const { return slots(model) / expert; }
  /// Logical expert in a slot of a layer.
  std::int64_t expert_in_slot(std::int64_t layer, std::int64_t slot) const {
    return placement.empty() ? slot : placement[static_cast<std::size_t>(layer)][static_cast<std::size_t>(slot)];
  }
  /// "2x2 expert 2": replicate x shard, then every setting that is not the default.
  std::string name() const;
  /// Throws Error{usage}. expert and context must divide shard, optimizer_shard replicate, and expert the slots of a
  /// layer. Every row of the placement must list every expert. tensor must divide heads and FFN widths, and divide or
  /// be a multiple of kv_heads. A pipeline needs a layer in every chunk without embedding, head or modules of
  /// multi-token prediction, and must gather weights and sum gradients once a step.
  void check(const ModelSpec& model, const std::string& where) const;
};

}  // namespace wt
