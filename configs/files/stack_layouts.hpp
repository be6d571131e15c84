// Which layouts a stack's trainer supports, and a plan for it may choose. Facts from its documentation and source code.
#pragma once
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/recompute.hpp"

namespace wt {

class YamlMap;

/// Whether a stack supports expert slots in another order than the model's, and copies of experts.
enum class PlacementSupport { none, order, copies };

/// A feature that a stack's file omits is not supported. The first of several values is the stack's default.
struct StackLayouts {
  bool replicas = true;          ///< several copies of the model (HSDP)
  bool expert_replicas = true;   ///< also where experts are divided over ranks
  bool optimizer_shard = false;  ///< optimizer state divided over the replicas (HFSDP, ZeRO-1)
  std::vector<bool> reshard_after_forward = {true};
  std::vector<bool> reduce_every_microbatch = {true};
  bool tensor = false;
  /// For tensor groups; a search uses the first unless the study says otherwise.
  std::vector<bool> sequence_parallel = {true};
  std::vector<Schedule> schedules = {};  ///< of a pipeline; empty = no pipeline
  bool interleaved = false;              ///< 1F1B with several chunks a stage
  std::vector<Schedule> overlaps = {Schedule::one_f_one_b,
                                    Schedule::dualpipe_v};  ///< schedules with which exchanges of rows can overlap
                                                            ///< another microbatch, if the stack supports overlap
  std::vector<bool> context_ring = {};                      ///< empty = no context parallelism
  std::vector<Recompute> recompute = {Recompute::none, Recompute::block};
  /// How it selects blocks for partial recompute. The first one is used for the model without a pipeline.
  std::vector<Recompute::Blocks::Which> recompute_blocks = {};
  std::vector<Module> recompute_also = {};    ///< further modules that it supports, but no search tries
  bool recompute_anywhere = false;            ///< any of its modules in any blocks, as by LLM Foundry's targets
  std::vector<Compression> compression = {};  ///< supported compression of block inputs
  bool smaller_last_microbatch = false;
  /// Another order is only a renaming: any trainer can run it with permuted expert weights and router rows.
  PlacementSupport placement = PlacementSupport::order;

  /// The subset that a search with adapters tries (check_lora.hpp).
  StackLayouts with_adapters() const;
  /// Whether it recomputes these modules, in all layers or in blocks that it can select. Ignores compression.
  bool runs(const Recompute& recompute) const;
  /// Everything that can be simulated: the typical stack.
  static StackLayouts all();
  /// Throws Error{usage} with the setting of the layout that stack `name` does not support, in the words of run files.
  void check(const Layout& layout, const std::string& name) const;
};

/// The map `layouts` of a stack file. Throws Error{usage}.
StackLayouts stack_layouts_from_yaml(YamlMap map);

}  // namespace wt
