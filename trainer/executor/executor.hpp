// The trainer's executor: walks the step program and does it. Collectives are issued where the program says and waited
// for where an op needs them; what each op took is recorded under its id.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/files/run.hpp"
#include "sim/program/timeline.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/executor/activation_exchange.hpp"
#include "trainer/executor/expert_copies_exchange.hpp"
#include "trainer/executor/parameter_buffers.hpp"
#include "trainer/executor/routed_rows.hpp"
#include "trainer/executor/state_before.hpp"
#include "trainer/executor/step_marks.hpp"
#include "trainer/faults/fault_point.hpp"
#include "trainer/model/batch.hpp"
#include "trainer/model/segments.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

/// What ranks are asked to do after a step; of several the last.
enum class AfterStep { go_on, regroup, end };

struct StepResult {
  double loss = 0;  ///< mean cross-entropy over the global batch
  /// The same of each module of multi-token prediction, over the tokens that have a target so far on.
  std::vector<double> mtp_losses;
  double aux_loss = 0, z_loss = 0;
  double gradient_norm = 0;
  std::vector<std::int64_t> repeated;  ///< ranks whose gradients were wrong once, for which the step was repeated
  AfterStep after = AfterStep::go_on;  ///< the same on all ranks
  StepTimeline timeline;
  /// [microbatch][layer] -> rows per logical expert that this rank sent.
  std::vector<std::vector<std::vector<std::int64_t>>> routing;
};

/// The gradients of a step are no numbers, on every rank; runtime. Nothing of the state has changed.
class Diverged : public Error {
 public:
  Diverged(std::int64_t rank, std::int64_t step, double norm)
      : Error(Code::runtime,
              fmt::format("rank {}: step {}: gradient norm is {}; the loss has diverged or the data is damaged", rank,
                          step, norm)),
        step_(step) {}
  std::int64_t step() const { return step_; }

 private:
  std::int64_t step_;
};

class Executor {
 public:
  /// Builds the program of this rank's class, the shards and the slots, on the clock's device. All outlive it.
  /// `groups`: of an executor of this rank's part before, whose state goes on; empty: made anew.
  Executor(const RunSpec& run, Communicators& communicators, StepClock& clock, std::vector<ShardedGroup> groups = {});
  ~Executor();

  /// One optimizer step. `load` gives microbatch m of this step; `learning_rate` is that of this step (counted from 1).
  StepResult run_step(std::int64_t step, double learning_rate, const std::function<Microbatch(int)>& load);

  /// Cross-entropy over the targets that are none of WT_IGNORED_TARGET, of this rank: the forward pass of a step, which
  /// changes nothing of the state. Collective. `load` gives microbatch m, of as many sequences as a step's first.
  /// Modules of multi-token prediction do not count.
  double evaluate(std::int64_t step, std::int64_t microbatches, const std::function<Microbatch(int)>& load);

  /// From the next step on, the router's choice of experts (T, k) is what `experts` says, not what its scores say.
  void force_routing(std::function<at::Tensor(int microbatch, int layer)> experts) { forced_ = std::move(experts); }

  /// From the next step on, the loss is the sum over targets divided by so many: those of the global batch, where not
  /// all tokens have one.
  void set_loss_tokens(std::int64_t tokens) { segments_.set_loss_tokens(static_cast<double>(tokens)); }

  /// From the next step on, each asks this rank what is to follow it, and tells the others (StepResult::after).
  void ask_what_follows(std::function<AfterStep()> asked) { what_follows_ = std::move(asked); }
  /// From the next step on, keeps there what it changes; `before` outlives this.
  void keep_state_in(StateBefore& before) { before_ = &before; }

  /// From the next step on, asked before the optimizer takes the gradients; false: the step is done again from its
  /// beginning, and then asked again.
  void check_gradients(std::function<bool(std::int64_t step)> good) { gradients_good_ = std::move(good); }

  const Program& program() const { return program_; }
  /// All groups this rank owns shards of, in a fixed order.
  std::vector<ShardedGroup>& groups() { return buffers_.groups(); }
  at::Device device() const { return device_; }
  /// Which kernel computes attention.
  std::string attention_backend() const;

 private:
  /// What a rank adds to the step's sum over all ranks; fewer than 2^16 of the smaller one do not make a larger one.
  static constexpr float kAsksToEnd = 1, kAsksToRegroup = 0x1p-16F;
  struct RepeatStep {};
  /// A gradient, weight or moment of a layer's dense parameters, or what flows between layers: for faults.
  void give_tensor(const FaultEffect& what, const std::function<void(HostNumbers)>& change);
  /// Throws RepeatStep before anything of the state has changed.
  StepResult attempt_step();
  /// Forgets the step before.
  void begin_pass();
  void run_op(std::size_t index);
  void wait_for_all();
  void execute(const OpInstance& instance);
  void wait_for(std::size_t index);
  /// Throws Error{runtime} when the op issued another collective than the program says: kind, axis, bytes.
  void check_issued(const OpInstance& instance, double rows) const;
  LayerRecompute recompute_of(const OpInstance& instance) const;
  void load_batch(int microbatch);
  void embed(bool backward);
  /// The layer's input, and of a module of multi-token prediction the embeddings.
  void take_input(const OpInstance& instance, LayerState& s);
  /// What backward of such a module gives beside the block's gradients; `module` as it was before that.
  void finish_module(const OpInstance& instance, const ModuleState& module);
  /// The tokens that the module in that layer is given.
  at::Tensor module_tokens(std::int64_t layer) const;
  void project(const OpInstance& instance, LayerState& s);
  void attention(const OpInstance& instance, LayerState& s);
  void ffn(const OpInstance& instance, LayerState& s);
  void experts(const OpInstance& instance, LayerState& s);
  void combine(const OpInstance& instance, LayerState& s);
  void head_loss();
  void refresh(const OpInstance& instance);
  void unshard(const OpInstance& instance);
  void reduce_gradients(const OpInstance& instance);
  void accumulate(const OpInstance& instance);
  void reduce_replicas(const OpInstance& instance);
  /// (E,) fp32 of a layer, undefined without loss-free balancing.
  at::Tensor router_bias(std::int64_t layer);
  void update_bias();
  void gradient_norm();
  void optimizer_step();

  const RunSpec& run_;
  Communicators& communicators_;
  StepClock& clock_;
  at::Device device_;
  std::int64_t rank_;
  at::ScalarType type_;
  Program program_;
  std::vector<OpInstance> ops_;
  ParameterBuffers buffers_;
  std::map<const ShardedGroup*, at::Tensor> reduced_;
  Segments segments_;
  ActivationExchange exchange_;
  ExpertCopiesExchange copies_;
  RoutedRows routed_;
  StepMarks marks_;

  std::function<at::Tensor(int, int)> forced_;
  std::function<AfterStep()> what_follows_;
  std::function<bool(std::int64_t)> gradients_good_;
  StateBefore* before_ = nullptr;

  // of the step under way
  std::int64_t step_ = 0;
  bool evaluates_ = false;              ///< faults strike training
  Action action_ = Action::load_batch;  ///< of the op that is next
  double learning_rate_ = 0;
  const std::function<Microbatch(int)>* load_ = nullptr;
  Microbatch batch_;
  std::vector<LayerState> layers_;
  at::Tensor activation_, activation_gradient_;
  at::Tensor norm_, losses_;
  at::Tensor cross_entropy_;  ///< (1 + modules) fp64, summed over this rank's tokens
  RouterLoss router_loss_;
  StepResult result_;
  Pending issued_;  ///< set by execute() when the op is a collective
};

}  // namespace wt
