// Builds the step program of an HSDP + expert-parallel MoE run: the one place that knows what FSDP does.
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
  std::int64_t last_microbatch = 0;  ///< sequences of the step's last microbatch, 0 = Layout::microbatch as all others
  double gradient_bytes = 4;         ///< of an element that is reduced over ranks
  double tensor_traffic = 1;         ///< share of its collectives that a stack leaves beside a tensor group's products
  MemoryFacts memory = {};           ///< of the stack: what it keeps, and how it holds weights and gradients
  bool materialised_scores = false;  ///< attention without a fused kernel keeps its scores
  OptimizerKind optimizer = OptimizerKind::adamw;
  double offload_fraction = 0;         ///< of its states, which lie in the host's memory
  std::int64_t step_microbatches = 0;  ///< of the step where the program has only the first of them; 0 = as many
  Precisions precisions = {};          ///< of what is sent and kept; prices have those of products
  /// The model's weights are frozen, and these adapters are trained: weights have no gradients and no moments.
  std::optional<AdapterShape> lora = {};
  bool frozen() const { return lora.has_value(); }
};

/// `gloo`: collectives are Gloo's, which need scratch; NCCL reduces in place.
ProgramOptions program_options(std::int64_t seq, const Microbatches& sequences, Precision precision, bool gloo);
ProgramOptions program_options(const RunSpec& run);

/// One program per rank class and the class of each rank. Ranks that hold equally many experts share a class; their
/// different loads come from the routing that executors bind.
struct ProgramSet {
  std::vector<Program> programs;
  std::vector<int> class_of_rank;
};

/// Throws Error{usage} where the layout does not fit the model (Layout::check), or the last microbatch is larger than
/// others.
ProgramSet build_program_set(const ModelSpec& model, const Layout& layout, const ProgramOptions& options);
/// Its programs of the pipeline stages from `first` to `end` - 1, for what is asked stage by stage.
std::vector<Program> build_stages(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                                  std::int64_t first, std::int64_t end);
/// What their ranks of one stage hold through the whole step (Program::resident).
std::vector<Buffer> resident_buffers(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                                     std::int64_t stage);

/// Elements of the flat buffer of a parameter group on one rank when gathered, before padding: dense = one layer's
/// attention, norms, router, FFN; expert = this rank's expert slots of one layer; router_bias = the biases of all
/// layers, which every rank holds whole. `layer` matters to dense and expert alone. Adapters have
/// AdapterShape::elements: none here.
std::int64_t group_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer);
/// Elements of one slot that the group's layers of that number share: those of the largest of them, padded.
std::int64_t slot_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t slot,
                           std::int64_t slots);
/// How many layers' gathered weights, and whole gradients, a rank holds at once; layer l uses number l modulo that.
std::int64_t weight_slots(const ModelSpec& model, const Layout& layout);
std::int64_t gradient_slots(const ModelSpec& model, const Layout& layout);
/// The axis whose ranks keep the same optimizer state.
Axis state_copies_axis(const Layout& layout);
/// Of a step, summed over the world at its end beside the losses of multi-token prediction: loss, balancing loss,
/// z-loss, and the ranks that were asked to end.
inline constexpr std::int64_t kStepTerms = 4;
/// The axis a group is sharded over; elements of one rank's shard, and of the part of it whose optimizer state the rank
/// keeps (all padded to equal shares).
Axis shard_axis(Group group);
std::int64_t shard_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer);
std::int64_t state_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer);

}  // namespace wt
