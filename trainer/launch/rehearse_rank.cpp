#include "trainer/launch/rehearse_rank.hpp"

#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "reports/render/chrome_trace.hpp"
#include "sim/program/timeline_json.hpp"
#include "trainer/data/sample_order.hpp"
#include "trainer/data/sampler.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/executor/run_profile.hpp"
#include "trainer/launch/rehearsal_communicators.hpp"
#include "trainer/launch/worker.hpp"
#include "trainer/model/example_batch.hpp"
#include "trainer/model/forced_routing.hpp"
#include "trainer/parameters/learning_rate.hpp"
#include "trainer/pch.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

using nlohmann::json;

std::unique_ptr<RoutingSource> routing_of(const RunSpec& run) {
  if (run.model.router.drops())
    throw_usage(
        "rehearsal of model {}: found moe_capacity_factor {}, but the routing of a plan does not say what tokens chose "
        "before rows were dropped; needs a model without",
        run.model.name, run.model.router.capacity_factor);
  const std::string& file = run.rehearsal.routing;
  if (file.empty() || file == "balanced") return balanced_routing(run.model, run.tokens());
  return recorded_routing(file, run.model, run.tokens());
}

}  // namespace

/// This rank's tokens, from the data set or drawn.
class RehearsedBatches {
 public:
  RehearsedBatches(const RunSpec& run, const RankWork& work, const ShardCache* data)
      : run_(run),
        work_(work),
        data_(data),
        positions_(context_positions(run.seq, run.layout.context, run.rehearsal.rank % run.layout.context)) {
    if (data_)
      sampler_ = std::make_unique<Sampler>(run.dataset, data_->shard_sizes(), BatchWorld{1, run.layout.data_ranks()});
    if (data_ && run.dataset.finetuning) examples_.emplace(*data_, run.dataset, run);
  }
  /// Number of tokens with a target in the step, if it cannot be derived from the number of tokens.
  std::optional<std::int64_t> begin_step(std::int64_t step) {
    step_ = step;
    if (sampler_) samples_ = sampler_->next_batch(run_.samples_per_step());
    if (!examples_) return {};
    packed_ = examples_->step(samples_);
    return packed_.targets;
  }
  Microbatch load(int microbatch) const {
    if (!data_) return random_microbatch(run_, work_, step_, microbatch);
    if (examples_) {
      const std::span own(packed_.sequences.data() + work_.share.first, static_cast<std::size_t>(work_.share.count));
      return examples_->load(microbatch_samples(work_, own, microbatch), positions_);
    }
    const auto own = rank_samples(samples_, run_.rehearsal.rank / run_.layout.context, run_.layout.data_ranks());
    return load_microbatch(*data_, run_, microbatch_samples(work_, own, microbatch), positions_,
                           work_.last_target_missing);
  }

 private:
  const RunSpec& run_;
  const RankWork& work_;
  const ShardCache* data_;  ///< nullptr: tokens are drawn
  std::vector<std::int64_t> positions_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<std::int64_t> samples_;
  std::optional<ExampleBatches> examples_;
  ExampleStep packed_;
  std::int64_t step_ = 0;
};

/// This rank's choices in one step, from the routing. Kept outside of tensor memory, because they are not part of it.
class RehearsedChoices {
 public:
  RehearsedChoices(const RunSpec& run, const RoutingSource& routing) : run_(run), routing_(routing) {}
  void begin_step(std::int64_t step) {
    chosen_.clear();
    for (std::int64_t microbatch = 0; microbatch < run_.microbatches(); ++microbatch) {
      const std::int64_t tokens = run_.tokens().of(microbatch);
      for (std::int64_t layer = 0; layer < run_.model.blocks(); ++layer)
        chosen_.push_back(
            choose_experts(whole_rows(routing_.counts(step, microbatch, layer, run_.rehearsal.rank), tokens), tokens,
                           run_.model.top_k, run_.seed + static_cast<std::uint64_t>(chosen_.size())));
    }
  }
  at::Tensor of(int microbatch, int layer) {
    auto& one = chosen_.at(static_cast<std::size_t>(microbatch * run_.model.blocks() + layer));
    return at::from_blob(one.data(), {run_.tokens().of(microbatch), run_.model.top_k}, at::kLong);
  }

 private:
  const RunSpec& run_;
  const RoutingSource& routing_;
  std::vector<std::vector<std::int64_t>> chosen_;
};

struct RehearsedRank::Parts {
  Parts(const RunSpec& r, StepClock& clock)
      : data(r.dataset.empty() ? nullptr : std::make_unique<ShardCache>(r.dataset)),
        run(r),
        work(run, run.rehearsal.rank, data && (run.dataset.finetuning || is_last_target_missing(*data, run))),
        routing(routing_of(run)),
        communicators(run, *routing),
        executor(run, work, communicators, clock),
        batches(run, work, data.get()),
        choices(run, *routing) {
    executor.force_routing([this](int microbatch, int layer) { return choices.of(microbatch, layer); });
  }

  std::unique_ptr<ShardCache> data;
  const RunSpec run;
  const RankWork work;
  std::unique_ptr<RoutingSource> routing;
  RehearsalCommunicators communicators;
  Executor executor;
  RehearsedBatches batches;
  RehearsedChoices choices;
};

RehearsedRank::RehearsedRank(const RunSpec& run, StepClock& clock) : parts_(std::make_unique<Parts>(run, clock)) {}
RehearsedRank::~RehearsedRank() = default;
const Executor& RehearsedRank::executor() const { return parts_->executor; }
std::string RehearsedRank::routing() const { return parts_->routing->description(); }

StepResult RehearsedRank::run_step(std::int64_t step) {
  Parts& p = *parts_;
  p.communicators.begin_step(step);
  if (const auto targets = p.batches.begin_step(step)) p.executor.set_loss_tokens(*targets);
  p.choices.begin_step(step);
  StepResult result = p.executor.run_step(step, learning_rate(p.run.optimizer, step, p.run.steps),
                                          [&](int m) { return p.batches.load(m); });
  p.communicators.end_step();
  return result;
}

void rehearse(const RunSpec& run, const std::filesystem::path& folder) {
  const auto clock = make_step_clock(prepare_rank_process(run, 0));
  RehearsedRank rank(run, *clock);
  std::vector<StepTimeline> measured;
  json steps = json::array();
  Clocks from = Clocks::now();
  double machine_from_s = machine_cpu_s();
  for (std::int64_t step = 1; step <= kRehearsalWarmUp + run.rehearsal.steps; ++step) {
    StepResult result = rank.run_step(step);
    if (step <= kRehearsalWarmUp) {
      from = Clocks::now(), machine_from_s = machine_cpu_s();
      continue;
    }
    steps.push_back({{"loss", result.loss},
                     {"gradient_norm", result.gradient_norm},
                     {"routing", result.routing},
                     {"timeline", to_json(result.timeline)}});
    measured.push_back(std::move(result.timeline));
  }
  const Clocks end = Clocks::now();
  const double others = (machine_cpu_s() - machine_from_s - (end.process_cpu_s - from.process_cpu_s)) /
                        std::max(end.wall_s - from.wall_s, 1e-9);
  write_profile(run_profile(run, rank.executor(), measured, false), folder / kProfileFile);
  write_file_atomically(folder / kTraceFile, chrome_trace({{"rehearsed", {measured.back()}}}));
  const json document = {{"schema", "windtunnel.rehearsal/1"},
                         {"run", run.name},
                         {"layout", run.layout.name()},
                         {"rank", run.rehearsal.rank},
                         {"device", to_string(run.device)},
                         {"routing", rank.routing()},
                         {"tokens", run.dataset.empty() ? "drawn evenly" : run.dataset.folder().string()},
                         {"cores_used_by_others", std::max(0.0, others)},
                         {"steps", steps}};
  write_file_atomically(folder / "rehearsal.json", document.dump() + "\n");
}

}  // namespace wt
