#include "sim/measurements/run_layout.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "configs/base/error.hpp"

namespace wt {

Layout layout_of(const RunRow& run) {
  Layout layout;
  const std::int64_t data = run.dp * run.cp;
  layout.tensor = run.tp;
  layout.sequence_parallel = run.tp > 1 && (run.sequence_parallel || run.model.experts > 0) &&
                             run.model.attention.parallel == AttentionSpec::Parallel::none;
  layout.context = run.cp;
  layout.microbatch = run.microbatch;
  layout.recompute = run.recompute;
  const bool resident = run.zero_stage < 3 || run.pp > 1;  // stages gather once a step
  layout.reshard_after_forward = layout.reduce_every_microbatch = !resident;
  layout.whole_experts = run.whole_experts && run.tp > 1;
  layout.cuda_graphs = run.cuda_graphs;
  layout.exchange_overlap = run.exchange_overlapped && run.ep > 1;
  layout.dispatcher = run.ep > 1 ? run.dispatcher : Dispatcher::alltoall;
  // Experts and sequences are shared inside the group that holds one copy of the model.
  const std::int64_t tensor = layout.whole_experts ? run.tp : 1;
  if (data * tensor % run.ep != 0)
    throw_usage("experts over {} ranks among {} data-parallel ones{}: not modelled", run.ep, data,
                tensor > 1 ? fmt::format(" x tensor groups of {}", tensor) : "");
  const std::int64_t inside = std::max((run.ep + tensor - 1) / tensor, run.cp);
  layout.shard = std::max(run.zero_stage == 0 ? 1 : run.shard_group, std::min(inside, data));
  if (run.experts_beside_shards && run.ep > 1) layout.shard = run.shard_group * run.ep;
  layout.expert = run.ep;
  if (data % layout.shard != 0 || layout.shard % layout.context != 0)
    throw_usage("shard groups of {} among {} data-parallel ranks with context {}", layout.shard, data, layout.context);
  layout.replicate = data / layout.shard;
  return layout;
}

Layout staged_layout_of(const RunRow& run) {
  Layout layout = layout_of(run);
  layout.pipeline = run.pp, layout.virtual_stages = run.vp, layout.schedule = run.schedule;
  layout.chunk_layers = run.pipeline_layout.layers;
  layout.modules_before_head = run.pipeline_layout.modules_before_head;
  return layout;
}

RunSpec run_spec_of(const RunRow& row) {
  RunSpec run;
  run.name = row.name;
  run.model = row.model;
  run.layout = staged_layout_of(row);
  run.precision = row.precision.compute;
  run.precisions = row.precision.precisions;
  run.pure_reduction = row.gradient_bytes < 4;
  run.loss_chunks = row.stack.loss_chunks;
  run.optimizer.kind = row.optimizer;
  run.optimizer.orthogonalize_everywhere = row.orthogonalize_everywhere;
  run.optimizer.offload_fraction = row.offload_fraction;
  run.seq = row.seq;
  run.global_batch = row.dp * row.microbatch * row.accumulation;
  run.steps = 1;
  run.save = false;
  return run;
}

}  // namespace wt
