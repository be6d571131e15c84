// Builds the step program of an HSDP + expert-parallel MoE run. Only this folder knows FSDP's order of operations.
#pragma once
#include <optional>
#include <vector>

#include "configs/files/adapted_modules.hpp"
#include "configs/files/layout.hpp"
#include "configs/files/memory_facts.hpp"
#include "configs/files/model.hpp"
#include "configs/files/optimizer.hpp"
#include "configs/files/precisions.hpp"
#include "sim/program/program.hpp"

namespace wt {

struct Microbatches;
struct RunSpec;

struct ProgramOptions {
  std::int64_t seq = 0;
  std::int64_t microbatches = 1;
  Precision precision = Precision::fp32;
  bool transport_scratch = false;    ///< all-gather and reduce-scatter each hold a full-size copy in flight (c10d/Gloo)
  std::int64_t last_microbatch = 0;  ///< sequences of the step's last microbatch; 0 = Layout::microbatch
  double gradient_bytes = 4;         ///< per element that is reduced over ranks
  double tensor_traffic = 1;         ///< share of a tensor group's collectives that the stack does not avoid
  MemoryFacts memory = {};           ///< what the stack keeps, and how it holds weights and gradients
  bool materialised_scores = false;  ///< attention without a fused kernel keeps its scores
  std::optional<std::int64_t> loss_chunks = {};  ///< in place of `memory`'s
  OptimizerKind optimizer = OptimizerKind::adamw;
  bool orthogonalize_everywhere = false;  ///< OptimizerSpec::orthogonalize_everywhere
  double offload_fraction = 0;            ///< share of the optimizer's state in host memory
  std::int64_t step_microbatches = 0;     ///< microbatches of the step, if the program has only the first ones; 0 = the
                                          ///< same number
  Precisions precisions = {};             ///< for what is sent and kept; times use those of products
  /// Only these adapters are trained: the model's weights are frozen and have no gradients and no moments.
  std::optional<AdapterShape> lora = {};
  bool frozen() const { return lora.has_value(); }
};

/// `gloo`: collectives are Gloo's, which need scratch memory; NCCL reduces in place.
ProgramOptions program_options(std::int64_t seq, const Microbatches& sequences, Precision precision, bool gloo);
/// `sequences`: of a rank in a step; without them, the even share.
ProgramOptions program_options(const RunSpec& run, const Microbatches& sequences);
ProgramOptions program_options(const RunSpec& run);

/// One program per rank class, and the class of each rank. Ranks with equally many experts share a class; their
/// different loads come from the routing that executors bind.
struct ProgramSet {
  std::vector<Program> programs;
  std::vector<int> class_of_rank;
};

/// Throws Error{usage} if the layout does not fit the model (Layout::check), or if the last microbatch is larger than
/// the others.
ProgramSet build_program_set(const ModelSpec& model, const Layout& layout, const ProgramOptions& options);
/// Only the programs of pipeline stages `first` to `end` - 1.
std::vector<Program> build_stages(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                                  std::int64_t first, std::int64_t end);
/// Buffers that ranks of one stage hold throughout the step (Program::resident).
std::vector<Buffer> resident_buffers(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                                     std::int64_t stage);

/// Elements of a parameter group's gathered buffer on one rank, before padding. dense: one layer's attention, norms,
/// router, FFN. expert: this rank's expert slots of one layer. router_bias: the biases of all layers, which every rank
/// has. `layer` matters only to dense and expert. Adapters count 0 here: see AdapterShape::elements.
std::int64_t group_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer);
/// Elements of one slot, which several layers of the group share: those of the largest such layer, padded.
std::int64_t slot_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t slot,
                           std::int64_t slots);
/// Number of layers whose gathered weights (or whole gradients) a rank holds at once. Layer l uses slot l modulo that.
std::int64_t weight_slots(const ModelSpec& model, const Layout& layout);
std::int64_t gradient_slots(const ModelSpec& model, const Layout& layout);
/// The axis whose ranks keep the same optimizer state.
Axis state_copies_axis(const Layout& layout);
/// Terms that are summed over the world at the end of a step, in addition to the losses of multi-token prediction:
/// loss, balancing loss, z-loss, and the number of ranks that were asked to end.
inline constexpr std::int64_t kStepTerms = 4;
/// The axis over which a group is sharded; elements of one rank's shard, and of the part whose optimizer state the rank
/// keeps (all padded to equal shares).
Axis shard_axis(Group group);
std::int64_t shard_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer);
std::int64_t state_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer);

}  // namespace wt
