// A stack: the framework that a run trains with, as far as it changes the time and memory of a step. These facts come
// from its documentation and source code. The constants of the step-time model (sim/cost/stacks/step_constants.hpp) and
// of memory (sim/cost/memory/allocator_memory.hpp) are fitted.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/memory_facts.hpp"
#include "configs/files/precisions.hpp"
#include "configs/files/stack_layouts.hpp"

namespace wt {

class YamlMap;

/// Attention kernels. unnamed: not known, between the next two. flash2: FlashAttention-2 and kernels of its shape
/// (Triton's, SDPA's), written for Ampere. cudnn: Transformer Engine's, with kernels for later GPUs, like
/// FlashAttention-3. unfused: two products, with scores in memory.
enum class AttentionKernels { unnamed, flash2, cudnn, unfused };

/// Where the host waits for the number of arriving rows. experts: before every layer's experts, whose products need the
/// numbers on the host (Transformer Engine's GroupedLinear, MegaBlocks). exchange: before the exchange, only where rows
/// leave the rank. none: never (XLA has fixed shapes).
enum class SyncPoints { experts, exchange, none };
/// False for HybridEP, whose kernels read the numbers on the device. False if passes overlap: the GPU computes another
/// microbatch meanwhile.
bool waits_for_rows(SyncPoints points, std::int64_t expert, Dispatcher dispatcher, bool passes_overlap);

/// Libraries of grouped products, the products of a rank's experts in one call. torch: torch._grouped_mm; torch_scaled:
/// torch._scaled_grouped_mm, by rows in fp8; te: a loop of cuBLAS products, as Transformer Engine's GroupedLinear and
/// the default build of grouped_gemm; cublas_batched: cuBLAS's grouped batches; windtunnel: this project's kernel or
/// torch._grouped_mm, the faster one.
inline constexpr std::array<const char*, 14> kGroupedLibraries = {
    "torch",   "torch_scaled", "te", "cublas_batched",    "cutlass",        "deepgemm",  "triton", "triton_tma",
    "tileops", "quack",        "ck", "triton_ragged_dot", "xla_ragged_dot", "windtunnel"};

/// Constants of the step-time model that differ between stacks, defined in sim/cost/stacks/step_constants.hpp.
inline constexpr std::array<const char*, 9> kStackFactors = {"products", "attention", "memory",    "item_s", "network",
                                                             "tensor",   "exchange",  "optimizer", "step_s"};

/// The largest change of a recipe's step time between two releases of a stack, up or down: the maximum of 26 pairs in
/// configs/measurements (Grok-1 on 512 H100 under NeMo 25.02 and 25.05, 21.0 and 15.9 s; 24 of them changed by less
/// than 1.09). Step times of an unmeasured release may be off by this factor.
inline constexpr double kReleaseDrift = 1.32;

struct StackSpec {
  std::string name;
  std::string release = {};                ///< requested (name@release); empty = any measured one
  std::vector<std::string> releases = {};  ///< with measured steps, named as in their tables
  std::vector<std::string> frameworks;     ///< words that identify it in measurement tables; none = not measured
  /// Layers are distributed over pipeline stages by cost: embedding and output projection count like layers. Otherwise
  /// evenly.
  bool balanced_stages = false;
  /// Gathers and reductions of a shard group use separate communicators. Otherwise they share one and run in the order
  /// of issue (PyTorch's FSDP by default, pytorch/pytorch#186335; assumed for others).
  bool separate_reduce_group = false;
  AttentionKernels attention = AttentionKernels::unnamed;
  std::string grouped_products = {};  ///< one of kGroupedLibraries; "" = unknown
  /// Supported dispatchers; the first is the default of its recipes, and what plans use.
  std::vector<Dispatcher> dispatchers = {Dispatcher::alltoall, Dispatcher::deepep, Dispatcher::hybridep,
                                         Dispatcher::uccl};
  bool exchange_overlap = true;  ///< exchanges of rows can overlap another microbatch
  bool cuda_graphs = true;       ///< the host can launch parts of a step, or all of it, as CUDA graphs
  SyncPoints sync_points = SyncPoints::experts;
  bool fused_routing = false;  ///< a few kernels of its own sort a layer's rows, in place of many small ones
  std::vector<NumberFormat> formats = {};  ///< formats below 16 bits in which it can compute the layers' products
  StackLayouts layouts = {};               ///< supported by its trainer
  MemoryFacts memory = pytorch_fsdp();
  bool memory_assumed = false;  ///< its memory use is not described; PyTorch FSDP's is assumed
  /// Known factors on the typical stack's constants, by name of kStackFactors, > 0. Other constants are fitted, or 1
  /// where the stack has no published steps.
  std::map<std::string, double> step = {};
  std::string source = {};

  bool measured_release() const;
  /// Throws Error{usage} with the setting of the layout that the stack lacks.
  void check_layout(const Layout& layout) const;
  /// Whether its memory use is known: from a file, or because its framework is known to behave like PyTorch's FSDP.
  bool memory_described() const { return !memory_assumed && (!frameworks.empty() || !(memory == pytorch_fsdp())); }
};

/// The stack that times assume where no stack is named: FSDP2, like our trainer.
constexpr const char* kDefaultStack = "torchtitan";

/// The preset for frameworks without measurements.
constexpr const char* kTypicalStack = "typical";

/// The key `loss_chunks` of stack and run files: a number of pieces, or liger (MemoryFacts::loss_chunks).
std::int64_t loss_chunks_from_yaml(YamlMap& map);
/// Throws Error{usage}: unknown keys, negative bytes.
StackSpec stack_from_yaml(YamlMap& map);
/// A preset of configs/stacks by name, or a file; "@" adds the release: "nemo@25.02".
StackSpec read_stack(const std::string& name_or_file);
/// All presets, by name.
std::vector<StackSpec> read_stacks();
/// The stack with the longest word that occurs in the framework's text, ignoring letter case. No match: a stack of that
/// name about which nothing is known.
StackSpec stack_of(const std::string& framework, const std::vector<StackSpec>& stacks);

}  // namespace wt
