// Shared by the builders of a step's program: the rank's layers, the sizes of resident memory, and the end of the step.
#pragma once
#include <map>

#include "sim/program/compose/block_ops.hpp"
#include "sim/program/compose/group_ops.hpp"

namespace wt {

class StepBuilder : protected OpFactory {
 protected:
  /// The part of the model that the rank has.
  struct Part {
    std::vector<int> layers;  ///< ascending; empty on a stage with only the embedding or the head
    bool embedding = true;    ///< the embedding matrix, for any use
    bool head = true;
  };
  StepBuilder(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t expert_rank,
              Part part);
  static Part whole(const ModelSpec& model);
  static Loop loop(Loop::Index index, int first, int last, Body body) {
    return {index, first, last, first > last, std::move(body)};
  }

  GroupOps groups(int layer = 0) const { return {model_, layout_, options_, layer, expert_rank_}; }
  BlockOps blocks(int layer) const { return {model_, layout_, options_, layer, expert_rank_}; }
  /// The block's groups that this layer has.
  std::vector<Group> block_groups(int layer) const;
  bool has_embedding() const { return part_.embedding && !model_.tied; }
  bool has_head() const { return part_.head; }

  /// The recompute of the layout without modules that this layer lacks.
  LayerRecompute recompute_of(int layer) const;
  /// Consecutive layers with the same body, for one loop. Their neighbours count as well, because a body gathers for a
  /// neighbouring layer.
  struct LayerRange {
    int first, last;
    int like;  ///< the first layer of the first range with the same body
  };
  std::vector<LayerRange> equal_layers(int first, int last) const;
  /// Adds a loop over each range. Ranges with the same body share what `body` makes of their first layer. `descending`:
  /// the last range first.
  template <class MakeBody>
  static void add_loops(Nodes& out, const std::vector<LayerRange>& ranges, bool descending, const MakeBody& body) {
    std::map<int, Body> made;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const LayerRange& run = ranges[descending ? ranges.size() - 1 - i : i];
      const auto [entry, fresh] = made.try_emplace(run.like);
      if (fresh) entry->second = body(run.like);
      const int from = descending ? run.last : run.first, to = descending ? run.first : run.last;
      out.push_back(loop(Loop::Index::layer, from, to, entry->second));
    }
  }

  /// Sum of a size over all groups of this rank.
  double over_groups(std::int64_t (*elements)(const ModelSpec&, const Layout&, Group, std::int64_t)) const;
  /// Elements of the model whose optimizer state this rank keeps.
  double kept_elements() const;
  /// Elements of this rank's adapters; 0 if the model itself is trained.
  double adapter_elements() const;
  /// Elements whose moments this rank keeps: of the model, or of its adapters.
  double trained_elements() const { return frozen() ? adapter_elements() : kept_elements(); }
  /// Master copies, moments of what is trained, adapters in the compute type, and their gradients.
  void add_states();
  /// Before the first microbatch: casts the adapters to the compute type from their masters, which every rank has.
  void add_adapter_weights();
  /// Further memory that the stack holds throughout the step.
  void add_framework_buffers();
  /// Tables and masks that are resident in any layout, and router biases.
  void add_tables();
  /// Norm of the gradients, optimizer, router biases, loss.
  void add_epilogue();
  /// The optimizer, after the op `after`; later ops wait for "optimizer". Offloaded parts pass through the host's link
  /// and then its CPU, in parallel with the GPU's part (step_optimizer.cpp).
  void add_optimizer(const std::string& after);

  Program program_;
  Part part_;

 private:
  std::vector<std::int64_t> chunk_layers_;  ///< Layout::layers_of_chunks

  bool same_copies(int a, int b) const;
  bool biased() const { return model_.moe_layers() > 0 && model_.router.bias_update_rate > 0; }
  std::int64_t router_loads() const { return group_elements(model_, layout_, Group::router_bias, 0); }
  /// Once a step: reduces the adapters' gradients over the ranks with the same adapters.
  void add_adapter_reduce();
  /// The op that completes the adapters' gradients; empty: no op reduces them.
  std::string last_adapter_gradient() const;
  /// The ops after which the step's gradients are complete.
  std::vector<Ref> last_gradients() const;
  /// Sums the squares over a further axis; returns the op with the result.
  std::string add_norm_sum(const std::string& name, Axis axis, const std::string& after);
  void add_bias_update();
  /// Elements of Muon's matrices whose momenta this rank keeps, without padding.
  double muon_states() const;
  /// Gathers the group's matrices of this rank's layers, in bf16, over the ranks that share their momenta, then runs
  /// five iterations on the owner's share of them, or on all of them.
  void add_muon(Group group, const std::string& after, std::vector<std::string>& done);
  void add_offload(double states, const std::string& after);
};

}  // namespace wt
