// What builders of a step's program share: which layers the rank has, the sizes of what it holds all the time, and the
// end of the step.
#pragma once
#include <algorithm>
#include <map>

#include "sim/program/compose/block_ops.hpp"
#include "sim/program/compose/group_ops.hpp"

namespace wt {

class StepBuilder : protected OpFactory {
 protected:
  /// What of the model the rank has.
  struct Part {
    std::vector<int> layers;  ///< ascending; none on a stage with the embedding or the head alone
    bool embedding = true;    ///< the matrix, whatever it is there for
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
  /// Those of the block's groups that this layer has.
  std::vector<Group> block_groups(int layer) const;
  bool has_embedding() const { return part_.embedding && !model_.tied; }
  bool has_head() const { return part_.head; }

  /// Without modules that this layer has not.
  LayerRecompute recompute_of(int layer) const;
  /// Neighbouring layers whose bodies are the same: one loop. What comes before and after a layer counts, because its
  /// body gathers for a neighbour.
  struct LayerRange {
    int first, last;
    int like;  ///< the first layer of the first range with the same body
  };
  std::vector<LayerRange> equal_layers(int first, int last) const;
  /// A loop over each range; ranges with the same body share what `body` makes of their first layer. In order, or the
  /// last first.
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
  /// Of this rank's adapters; 0 where the model itself is trained.
  double adapter_elements() const;
  /// Whose moments this rank keeps: those of the model, or of the adapters beside it.
  double trained_elements() const { return frozen() ? adapter_elements() : over_groups(state_elements); }
  /// Master copies, and the moments of what is trained; adapters in the compute type, and their gradients.
  void add_states();
  /// Before the first microbatch: the adapters in the compute type from their masters, which every rank has.
  void add_adapter_weights();
  /// What the stack holds through the step besides.
  void add_framework_buffers();
  /// Tables and masks that are resident whatever the layout, and router biases.
  void add_tables();
  /// Norm of the gradients, optimizer, router biases, loss.
  void add_epilogue();
  /// Optimizer behind the op `after`; what others wait for is called "optimizer". What is offloaded goes over the
  /// host's link and through its CPU one after the other, beside the GPU's part (step_optimizer.cpp).
  void add_optimizer(const std::string& after);

  Program program_;
  Part part_;

 private:
  std::vector<std::int64_t> chunk_layers_;  ///< Layout::layers_of_chunks

  bool same_copies(int a, int b) const;
  bool biased() const { return model_.moe_layers() > 0 && model_.router.bias_update_rate > 0; }
  std::int64_t router_loads() const { return group_elements(model_, layout_, Group::router_bias, 0); }
  /// Gradients of the adapters, once a step, over the ranks that have the same ones.
  void add_adapter_reduce();
  /// The op behind which they are whole; empty: they are from the beginning.
  std::string last_adapter_gradient() const;
  /// The ops behind which the step's gradients are whole.
  std::vector<Ref> last_gradients() const;
  /// The next sum of the squares over an axis; returns the op that has it.
  std::string add_norm_sum(const std::string& name, Axis axis, const std::string& after);
  void add_bias_update();
  /// Elements of Muon's matrices whose momenta this rank keeps, padding left out.
  double muon_states() const;
  /// The group's matrices of all layers of this rank, in bf16, over the ranks that share their momenta, then five
  /// iterations on the owner's share of them.
  void add_muon(Group group, const std::string& after, std::vector<std::string>& done);
  void add_offload(double states, const std::string& after);
};

}  // namespace wt
