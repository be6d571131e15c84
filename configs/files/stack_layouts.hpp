// Which layouts a stack's trainer runs: what a plan for it may choose from. Facts of its documentation and source code.
#pragma once
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/recompute.hpp"

namespace wt {

class YamlMap;

/// Whether a stack has expert slots in another order than the model's, and copies of experts.
enum class PlacementSupport { none, order, copies };

/// What a stack's file does not name, it does not have. The first of several values is what it does unless told
/// otherwise.
struct StackLayouts {
  bool replicas = true;          ///< copies of the model beside each other (HSDP)
  bool expert_replicas = true;   ///< also where experts are on several ranks
  bool optimizer_shard = false;  ///< optimizer state cut over the replicas (HFSDP, ZeRO-1)
  std::vector<bool> reshard_after_forward = {true};
  std::vector<bool> reduce_every_microbatch = {true};
  bool tensor = false;
  /// Of tensor groups; a search takes the first unless the study says otherwise.
  std::vector<bool> sequence_parallel = {true};
  std::vector<Schedule> schedules = {};  ///< of a pipeline; empty = no pipeline
  bool interleaved = false;              ///< 1F1B with several chunks a stage
  std::vector<Schedule> overlaps = {Schedule::one_f_one_b,
                                    Schedule::dualpipe_v};  ///< with which exchanges of rows run beside another
                                                            ///< microbatch, where the stack has that
  std::vector<bool> context_ring = {};                      ///< empty = no context parallelism
  std::vector<Recompute> recompute = {Recompute::none, Recompute::block};
  /// How it names the blocks where only some are recomputed as a whole; first: of the model, which has no pipeline.
  std::vector<Recompute::Blocks::Which> recompute_blocks = {};
  std::vector<Module> recompute_also = {};    ///< modules beside those of `recompute`, which no search tries
  bool recompute_anywhere = false;            ///< any of its modules in any blocks, as LLM Foundry's targets say them
  std::vector<Compression> compression = {};  ///< of block inputs, beside none
  bool smaller_last_microbatch = false;
  /// Another order is a renaming: any trainer runs it once expert weights and router rows are permuted.
  PlacementSupport placement = PlacementSupport::order;

  /// Of them those that a search with adapters tries (check_lora.hpp).
  StackLayouts with_adapters() const;
  /// Its modules are recomputed, in all layers, or in blocks that it has a word for; whatever the compression.
  bool runs(const Recompute& recompute) const;
  /// Everything that can be simulated: of the typical stack.
  static StackLayouts all();
  /// Throws Error{usage} naming what of the layout the stack `name` does not run, in the words of run files.
  void check(const Layout& layout, const std::string& name) const;
};

/// The map `layouts` of a stack file. Throws Error{usage}.
StackLayouts stack_layouts_from_yaml(YamlMap map);

}  // namespace wt
