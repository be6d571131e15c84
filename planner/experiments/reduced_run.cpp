#include "planner/experiments/reduced_run.hpp"

#include <algorithm>
#include <fstream>

#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "configs/files/recompute_mask.hpp"
#include "configs/machine/nvml.hpp"

namespace wt {
namespace {

/// The first, two in the middle and the last: every kind of layer in the program, and a reused weight slot.
constexpr std::int64_t kLayers = 4;
/// Two pass through every state of the buffers; more would repeat them.
constexpr std::int64_t kMicrobatches = 2;
constexpr std::int64_t kShortestSeq = 256;
constexpr std::int64_t kSmallestWidth = 1024;  ///< divisor
/// Of the free memory. The rest is for the process, and for others that allocate meanwhile.
constexpr double kMemoryShare = 0.75;
/// A core does 20 to 100 GFLOP/s, a current GPU 200 to 1,000 TFLOP/s, so a step takes one to five seconds.
constexpr double kCoreFlops = 1e11, kDeviceFlops = 1e15;

std::int64_t over(std::int64_t value, std::int64_t divisor, const ModelSpec& model, const char* what,
                  std::int64_t unit) {
  if (value % divisor != 0 || (value / divisor) % unit != 0)
    throw_usage(
        "rehearsal.width: {} of {} is {}, over {} it is no multiple of {}, which kernels need; take a wider fraction",
        what, model.name, value, divisor, unit);
  return value / divisor;
}

/// The run with these reductions. plan.rehearsal.width_divisor sets its width.
RunSpec shaped(const RunSpec& plan, std::int64_t divisor, std::int64_t layers, std::int64_t seq,
               std::int64_t microbatches) {
  RunSpec run = plan;
  run.device = plan.rehearsal.device;
  run.model = scaled_model(plan.model, divisor, plan.precision);
  run.model.layers = layers;
  if (!run.layout.placement.empty()) run.layout.placement.resize(static_cast<std::size_t>(run.model.blocks()));
  run.layout.dispatcher = Dispatcher::alltoall;  // other ranks are faked, so the dispatcher does not matter
  run.seq = seq;
  if (microbatches < plan.microbatches())
    run.global_batch = plan.layout.data_ranks() * plan.layout.microbatch * microbatches;
  run.rehearsal.width_divisor = divisor;
  run.rehearsal.layers = layers;
  run.rehearsal.seq = seq;
  return run;
}

struct Need {
  double memory_bytes = 0, flops = 0;
  bool within(const RehearsalLimits& limits) const {
    return memory_bytes <= limits.memory_bytes && flops <= limits.step_flops;
  }
};

Need need_of(const RunSpec& run, const RoutingOfRun& routing) {
  const auto source = routing(run);
  const RankRouting rows(run, *source);
  const Program program = rank_program(run);
  return {replay_memory(program, rows.rows(1)).peak_bytes, step_flops(program, rows.rows(1))};
}

/// Whether recompute is the same in all layers, so that the first ones can represent the rest.
bool recomputes_evenly(const RunSpec& plan) {
  for (std::int64_t layer = 1; layer < plan.model.layers; ++layer)
    if (mask_of(plan.layout.recompute.of(layer, plan.model.layers)) !=
        mask_of(plan.layout.recompute.of(0, plan.model.layers)))
      return false;
  return true;
}

bool scales(const RunSpec& plan, std::int64_t divisor) {
  if (plan.rehearsal.width_divisor == 0) {
    try {
      scaled_model(plan.model, divisor, plan.precision);
    } catch (const Error&) {
      return false;
    }
  }
  return true;  // the width was requested: shaped() reports its problem
}

double free_bytes() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("MemAvailable:")) return 1024 * std::stod(line.substr(line.find(':') + 1));
  throw_runtime(
      "/proc/meminfo: no MemAvailable; needs Linux 3.14 or newer to choose a size, or all of rehearsal.width, layers "
      "and max_seq_len");
}

}  // namespace

ModelSpec scaled_model(const ModelSpec& model, std::int64_t divisor, Precision precision) {
  ModelSpec out = model;
  if (divisor == 1) return out;
  // LibTorch's grouped GEMM needs rows that are multiples of 16 bytes.
  const std::int64_t unit = precision == Precision::fp32 ? 4 : 8;
  for (auto& [width, what] : {std::pair{&out.d_model, "d_model"},
                              {&out.ffn, "ffn_hidden_size"},
                              {&out.dense_ffn, "the dense layers' FFN"},
                              {&out.shared_ffn, "the shared experts' width"}})
    *width = over(*width, divisor, model, what, unit);
  out.vocab = (model.vocab + divisor - 1) / divisor;
  std::int64_t left = divisor;
  for (; left % 2 == 0 && out.heads % 2 == 0 && out.kv_heads % 2 == 0; left /= 2) out.heads /= 2, out.kv_heads /= 2;
  out.head_dim = over(out.head_dim, left, model, "the head's width", 2);  // rotary positions rotate pairs
  MlaSpec& mla = out.attention.mla;
  for (auto& [width, factor] : {std::pair{&mla.kv_lora_rank, divisor},
                                {&mla.q_lora_rank, divisor},
                                {&mla.qk_nope_head_dim, left},
                                {&mla.qk_rope_head_dim, left},
                                {&mla.v_head_dim, left}})
    *width = over(*width, factor, model, "a width of its latent attention", 2);
  return out;
}

std::vector<std::int64_t> RankRouting::sent(std::int64_t step, std::int64_t microbatch, std::int64_t layer,
                                            std::int64_t source) const {
  return whole_rows(source_.counts(step, microbatch, layer, source), run_.tokens().of(microbatch));
}

double RankRouting::received(std::int64_t step, std::int64_t microbatch, std::int64_t layer) const {
  if (run_.layout.expert == 1) return 0;
  const std::int64_t rank = run_.rehearsal.rank;
  std::vector<std::vector<double>> counts;
  for (const std::int64_t source : mesh_.members(Axis::expert, mesh_.group_index(Axis::expert, rank))) {
    const auto rows = sent(step, microbatch, layer, source);
    counts.emplace_back(rows.begin(), rows.end());
  }
  return rows_received(counts, run_.layout, layer)[static_cast<std::size_t>(mesh_.coordinate(Axis::expert, rank))];
}

RowsBound RankRouting::rows(std::int64_t step) const {
  return [this, step](int microbatch, int layer) { return received(step, microbatch, layer); };
}

std::string RankRouting::recording(std::int64_t steps) const {
  std::string out = "step,microbatch,layer,rank";
  for (std::int64_t e = 0; e < run_.model.experts; ++e) out += fmt::format(",e{}", e);
  for (std::int64_t step = 1; step <= steps; ++step)
    for (std::int64_t microbatch = 0; microbatch < run_.microbatches(); ++microbatch)
      for (std::int64_t layer = 0; layer < run_.model.blocks(); ++layer)
        for (const std::int64_t source :
             mesh_.members(Axis::expert, mesh_.group_index(Axis::expert, run_.rehearsal.rank))) {
          out += fmt::format("\n{},{},{},{}", step, microbatch, layer, source);
          for (const std::int64_t rows : sent(step, microbatch, layer, source)) out += fmt::format(",{}", rows);
        }
  return out + "\n";
}

Program rank_program(const RunSpec& run) {
  ProgramSet set = build_program_set(run.model, run.layout, program_options(run));
  return std::move(
      set.programs[static_cast<std::size_t>(set.class_of_rank[static_cast<std::size_t>(run.rehearsal.rank)])]);
}

double step_flops(const Program& program, const RowsBound& rows) {
  double sum = 0;
  for (const OpInstance& op : unroll(program))
    for (const WorkItem& item : op.op->work)
      sum += item.flops(item.rows.per_row != 0 ? rows(op.microbatch, op.layer) : 0);
  return sum;
}

RehearsalLimits limits_of(DeviceKind device) {
  if (device == DeviceKind::cuda) return {kMemoryShare * free_device_memory(), kDeviceFlops};
  return {kMemoryShare * free_bytes(), kCoreFlops};
}

RunSpec reduced_run(const RunSpec& plan, const RoutingOfRun& routing, const RehearsalLimits& limits) {
  const RehearsalSpec& asked = plan.rehearsal;
  if (asked.layers > plan.model.layers || asked.seq > plan.seq)
    throw_usage("rehearsal: found {} layers and max_seq_len {}, the plan has {} and {}; ask for as many or fewer",
                std::max(asked.layers, plan.model.layers), std::max(asked.seq, plan.seq), plan.model.layers, plan.seq);
  const std::int64_t layers = asked.layers > 0 ? asked.layers : plan.model.layers,
                     seq = asked.seq > 0 ? asked.seq : plan.seq;
  const std::int64_t first_divisor = std::max<std::int64_t>(asked.width_divisor, 1);
  RunSpec run = shaped(plan, first_divisor, layers, seq, plan.microbatches());
  Need need = need_of(run, routing);
  if (need.within(limits)) return run;

  const std::int64_t few_layers = asked.layers > 0 ? asked.layers
                                  : recomputes_evenly(plan)
                                      ? std::min(plan.model.layers, plan.model.dense_layers + kLayers)
                                      : plan.model.layers;
  const std::int64_t few_microbatches = std::min(plan.microbatches(), kMicrobatches);
  const std::int64_t shortest = asked.seq > 0 ? asked.seq : std::min(plan.seq, kShortestSeq);
  const std::int64_t last_divisor = asked.width_divisor > 0 ? asked.width_divisor : kSmallestWidth;
  for (std::int64_t divisor = first_divisor; divisor <= last_divisor && scales(plan, divisor); divisor *= 2)
    for (std::int64_t tokens = seq; tokens >= shortest; tokens /= 2) {
      run = shaped(plan, divisor, few_layers, tokens, few_microbatches);
      need = need_of(run, routing);
      if (need.within(limits)) return run;
    }
  if (need.memory_bytes <= limits.memory_bytes) return run;  // the smallest run: it may take longer
  throw_error(
      Code::finding,
      "rehearsal of {}: found a need of {} of tensors at width 1/{}, {} layers and {} tokens a sequence, this machine "
      "allows {}; set rehearsal.width, layers or max_seq_len in the run file smaller, or leave them out",
      plan.name, format_bytes(need.memory_bytes), run.rehearsal.width_divisor, run.model.layers, run.seq,
      format_bytes(limits.memory_bytes));
}

}  // namespace wt
