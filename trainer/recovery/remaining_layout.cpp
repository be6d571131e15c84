#include "trainer/recovery/remaining_layout.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "sim/program/compose/compose.hpp"

namespace wt {
namespace {

/// The share of the bytes counted by Collective that a rank sends.
double sent_share(OpKind kind, double members) {
  return (kind == OpKind::all_reduce ? 2 : 1) * (members - 1) / members;
}

bool allowed(const RunSpec& run) try {
  check_run(run, run.name);
  return untrainable(run).empty();
} catch (const Error&) {
  return false;
}

}  // namespace

double step_traffic_bytes(const RunSpec& run) {
  const Mesh mesh(run.layout);
  const double rows = static_cast<double>(run.tokens_per_microbatch() * run.model.top_k);
  const ProgramSet programs = build_program_set(run.model, run.layout, program_options(run));
  double sent = 0;
  for (const OpInstance& instance : unroll(programs.programs[0])) {
    const Op& op = *instance.op;
    if (op.collective_kind())
      sent += op.collective.bytes.at(rows) * sent_share(op.kind, static_cast<double>(mesh.size(op.collective.axis)));
  }
  return sent;
}

std::vector<RunSpec> remaining_layouts(const RunSpec& run, std::int64_t ranks, std::int64_t unit,
                                       std::int64_t min_replicas) {
  std::vector<std::pair<std::tuple<std::int64_t, double, std::int64_t>, RunSpec>> found;
  for (const Layout& planned : run.smaller_layouts) {
    RunSpec next = run;
    next.layout = planned;
    const std::int64_t world = planned.world();
    if (world > ranks || world % unit != 0 || planned.replicate < min_replicas || !allowed(next)) continue;
    found.emplace_back(std::tuple{-world, -1.0, static_cast<std::int64_t>(found.size())}, std::move(next));
  }
  for (std::int64_t world = ranks / unit * unit; world > 0; world -= unit)
    for (std::int64_t shard = 1; shard <= world; ++shard)
      for (std::int64_t expert = 1; expert <= shard; ++expert) {
        if (world % shard != 0 || world / shard < min_replicas) continue;
        RunSpec next = run;
        Layout& l = next.layout;
        l.replicate = world / shard, l.shard = shard, l.expert = expert;
        l.context = std::gcd(run.layout.context, shard);
        l.optimizer_shard = std::gcd(run.layout.optimizer_shard, l.replicate);
        if (!allowed(next)) continue;
        const std::int64_t changed = std::abs(shard - run.layout.shard) + std::abs(expert - run.layout.expert);
        found.emplace_back(std::tuple{-world, step_traffic_bytes(next), changed}, std::move(next));
      }
  std::ranges::stable_sort(found, {}, [](const auto& each) { return each.first; });
  return mapped(found, [](auto& each) { return std::move(each.second); });
}

}  // namespace wt
