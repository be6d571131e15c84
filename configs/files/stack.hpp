// A stack: the framework that a run trains with, as far as it changes what a step takes, in time and in memory. Facts
// here come from its documentation and source code; the constants of the step-time model
// (sim/cost/stacks/step_constants.hpp) and of memory (sim/cost/memory/reserved_memory.hpp) are fitted.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/memory_facts.hpp"
#include "configs/files/stack_layouts.hpp"

namespace wt {

class YamlMap;

/// Kernels of attention: FlashAttention-2 and what has its shape (Triton's, SDPA's), written for Ampere; cuDNN's
/// (Transformer Engine), which has kernels of its own for later GPUs, as FlashAttention-3 has; or none that is fused:
/// two products, and scores in memory.
enum class AttentionKernels { flash2, cudnn, unfused };

/// Where the host waits until it knows how many rows come: before every layer's experts, whose products take the
/// numbers from it (Transformer Engine's GroupedLinear, MegaBlocks); before the exchange of rows, whose collective
/// does, and not where rows stay; or nowhere (XLA, whose programs have no shape to ask for).
enum class SyncPoints { experts, exchange, none };
/// HybridEP's kernels know the numbers without the host.
bool waits_for_rows(SyncPoints points, std::int64_t expert, Dispatcher dispatcher);

/// Constants of the step-time model that differ from stack to stack; sim/cost/stacks/step_constants.hpp says what each
/// is.
inline constexpr std::array<const char*, 9> kStackFactors = {"products", "attention", "memory",    "item_s", "network",
                                                             "tensor",   "exchange",  "optimizer", "step_s"};

/// By how much, either way, the same recipe's step moved from one release of a stack to the next: the farthest of 26
/// pairs in configs/measurements (Grok-1 on 512 H100 under NeMo 25.02 and 25.05, 21.0 and 15.9 s; 24 of them moved by
/// less than 1.09). Steps of a release that nobody measured may be off by it.
inline constexpr double kReleaseDrift = 1.32;

struct StackSpec {
  std::string name;
  std::string release = {};                ///< that was asked for (name@release); empty = any of those measured
  std::vector<std::string> releases = {};  ///< whose steps were measured, as their tables name them
  std::vector<std::string> frameworks;  ///< words by which a table of measurements names it; none = nobody measured it
  /// Layers are dealt to pipeline stages by cost, so that embedding and output projection count as layers do; else
  /// evenly.
  bool balanced_stages = false;
  /// Gathers and reductions of a shard group have a communicator each; else they share one, and go one after the other
  /// in the order of issue (PyTorch's FSDP unless told otherwise, pytorch/pytorch#186335; assumed of others).
  bool separate_reduce_group = false;
  AttentionKernels attention = AttentionKernels::flash2;
  /// That it has, the one that its recipes take first: what plans take.
  std::vector<Dispatcher> dispatchers = {Dispatcher::alltoall, Dispatcher::deepep, Dispatcher::hybridep,
                                         Dispatcher::uccl};
  bool exchange_overlap = true;  ///< exchanges of rows can run beside another microbatch
  bool cuda_graphs = true;       ///< the host can launch parts of a step, or all of it, as CUDA graphs
  SyncPoints sync_points = SyncPoints::experts;
  StackLayouts layouts = {};  ///< that its trainer runs
  MemoryFacts memory = pytorch_fsdp();
  bool memory_assumed = false;  ///< nobody described how it uses memory: taken for PyTorch's FSDP
  /// Factors on the typical stack's constants, by name of kStackFactors, above 0: known better than by a fit. Others
  /// are fitted, or 1 where the stack has no published steps.
  std::map<std::string, double> step = {};
  std::string source = {};

  bool measured_release() const;
  /// Throws Error{usage} naming what of the layout the stack does not have.
  void check_layout(const Layout& layout) const;
  /// A file says how it uses memory, or which framework that is known to use it as PyTorch's FSDP does.
  bool memory_described() const { return !memory_assumed && (!frameworks.empty() || !(memory == pytorch_fsdp())); }
};

/// The stack that prices are of where nobody names one: FSDP2, as our trainer's.
constexpr const char* kDefaultStack = "torchtitan";

/// The preset of frameworks that nobody measured.
constexpr const char* kTypicalStack = "typical";

/// Throws Error{usage}: unknown keys, negative bytes.
StackSpec stack_from_yaml(YamlMap& map);
/// A preset of configs/stacks by name, or a file; behind an @ the release that is meant: "nemo@25.02".
StackSpec read_stack(const std::string& name_or_file);
/// All presets, by name.
std::vector<StackSpec> read_stacks();
/// The one with the longest word (upper and lower case alike) in the framework's text; none fits = a stack of that name
/// that nothing is known of.
StackSpec stack_of(const std::string& framework, const std::vector<StackSpec>& stacks);

}  // namespace wt
