// The trainer's executor: walks the step program and executes it. It issues collectives where the program says, waits
// for them where an op needs them, and records each op's times under its id.
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
#include "trainer/executor/host_activations.hpp"
#include "trainer/executor/parameter_buffers.hpp"
#include "trainer/executor/routed_rows.hpp"
#include "trainer/executor/state_before.hpp"
#include "trainer/executor/step_marks.hpp"
#include "trainer/faults/fault_point.hpp"
#include "trainer/model/batch.hpp"
#include "trainer/model/segments.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

/// What the ranks do after a step. If ranks ask for different things, the last one of this list counts.
enum class AfterStep { go_on, regroup, end };

struct StepResult {
  double loss = 0;  ///< mean cross-entropy over the global batch
  /// The same for each module of multi-token prediction, over the tokens with a target that far ahead.
  std::vector<double> mtp_losses;
  double aux_loss = 0, z_loss = 0;
  double gradient_norm = 0;
  std::vector<std::int64_t> repeated;  ///< ranks with wrong gradients in the first attempt, if the step was repeated
  AfterStep after = AfterStep::go_on;  ///< the same on all ranks
  StepTimeline timeline;
  /// [microbatch][layer] -> rows per logical expert that this rank sent.
  std::vector<std::vector<std::vector<std::int64_t>>> routing;
};

/// A step's gradients are not finite, on every rank; Code::runtime. The state has not changed.
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
  Executor(const RunSpec& run, const RankWork& work, Communicators& communicators, StepClock& clock,
           std::vector<ShardedGroup> groups = {});
  ~Executor();

  /// One optimizer step. `load` returns microbatch m of this step; `learning_rate` is that of this step (counted from
  /// 1).
  StepResult run_step(std::int64_t step, double learning_rate, const std::function<Microbatch(int)>& load);

  /// The sum of this rank's cross-entropy over targets other than WT_IGNORED_TARGET, by a step's forward pass, without
  /// changing the state. Collective. `load` returns microbatch m, with as many sequences as a step's first one. Modules
  /// of multi-token prediction do not count.
  double evaluate(std::int64_t step, std::int64_t microbatches, const std::function<Microbatch(int)>& load);

  /// From the next step on, `experts` (T, k) replaces the router's choice of experts.
  void force_routing(std::function<at::Tensor(int microbatch, int layer)> experts) { forced_ = std::move(experts); }

  /// From the next step on, the loss is the sum over targets divided by `tokens`: the global batch's targets, where not
  /// all tokens have one.
  void set_loss_tokens(std::int64_t tokens) { segments_.set_loss_tokens(static_cast<double>(tokens)); }

  /// From the next step on, each step asks this rank what should follow, and tells the others (StepResult::after).
  void ask_what_follows(std::function<AfterStep()> asked) { what_follows_ = std::move(asked); }
  /// From the next step on, saves the state that a step changes in `before`, which must outlive this.
  void keep_state_in(StateBefore& before) { before_ = &before; }

  /// From the next step on, calls `good` before the optimizer uses the gradients. False: the step is repeated from its
  /// beginning, and `good` is called again.
  void check_gradients(std::function<bool(std::int64_t step)> good) { gradients_good_ = std::move(good); }

  /// The microbatches of a step, in sequences.
  const Microbatches& sequences() const { return sequences_; }
  const Program& program() const { return program_; }
  /// All groups this rank owns shards of, in a fixed order.
  std::vector<ShardedGroup>& groups() { return buffers_.groups(); }
  at::Device device() const { return device_; }
  /// The kernel that computes attention.
  std::string attention_backend() const;

 private:
  /// What a rank adds to a sum over all ranks; the smaller one cannot reach the larger one with fewer than 2^16 ranks.
  static constexpr float kAsksToEnd = 1, kAsksToRegroup = 0x1p-16F;
  struct RepeatStep {};
  /// Gives faults access to a gradient, weight or moment of a layer's dense parameters, or to an activation.
  void give_tensor(const FaultEffect& what, const std::function<void(HostNumbers)>& change);
  /// Throws RepeatStep before anything of the state has changed.
  StepResult attempt_step();
  /// Clears the state of the previous step.
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
  /// Takes the layer's input, and for a module of multi-token prediction the embeddings.
  void take_input(const OpInstance& instance, LayerState& s);
  /// Handles the further gradients of such a module's backward; `module`: its state before that.
  void finish_module(const OpInstance& instance, const ModuleState& module);
  /// The tokens that the module in that layer is given.
  at::Tensor module_tokens(std::int64_t layer) const;
  void project(const OpInstance& instance, LayerState& s);
  void attention(const OpInstance& instance, LayerState& s);
  void ffn(const OpInstance& instance, LayerState& s);
  void experts(const OpInstance& instance, LayerState& s);
  void combine(const OpInstance& instance, LayerState& s);
  void head_loss();
  /// What autograd may save of a layer beside its own activations: weights, positions, the layer's output.
  std::vector<at::Tensor> staying(int layer) const;
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
  Microbatches sequences_;
  at::ScalarType type_;
  Program program_;
  std::vector<OpInstance> ops_;
  ParameterBuffers buffers_;
  std::map<const ShardedGroup*, at::Tensor> reduced_;
  Segments segments_;
  ActivationExchange exchange_;
  ExpertCopiesExchange copies_;
  HostActivations host_activations_;
  RoutedRows routed_;
  StepMarks marks_;

  std::function<at::Tensor(int, int)> forced_;
  std::function<AfterStep()> what_follows_;
  std::function<bool(std::int64_t)> gradients_good_;
  StateBefore* before_ = nullptr;

  // State of the current step.
  std::int64_t step_ = 0;
  bool evaluates_ = false;              ///< no faults are injected in evaluations
  Action action_ = Action::load_batch;  ///< of the next op
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
