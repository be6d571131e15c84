#include "sim/replay/routed_memory.hpp"

#include <map>
#include <memory>
#include <set>

#include "sim/program/memory/memory_replay.hpp"
#include "sim/replay/routing_table.hpp"

namespace wt {

LiveMemory routed_memory(const StepProgram& step, const RoutingSource& routing, Ranks ranks) {
  const ProgramSet programs = step.build();
  const std::int64_t world = step.layout.world(), stage = step.layout.stage_ranks();
  const std::int64_t first = ranks == Ranks::last_stage ? world - stage : 0,
                     end = ranks == Ranks::first_stage ? stage : world;
  std::map<std::pair<int, std::int64_t>, std::int64_t> picked;  // the first rank of a class and an expert coordinate
  std::set<std::int64_t> groups;
  for (std::int64_t rank = first; rank < end; ++rank) {
    const std::int64_t row_rank = step.layout.row_rank(rank);
    const auto [at, fresh] = picked.try_emplace(
        {programs.class_of_rank[static_cast<std::size_t>(rank)], row_rank % step.layout.expert}, rank);
    if (fresh) groups.insert(row_rank / step.layout.expert);
  }
  const Program& any = programs.programs.front();
  const RoutingTable table(routing, step.layout, any.layers, any.microbatches, 0, {groups.begin(), groups.end()});
  LiveMemory most;
  for (const auto& [key, rank] : picked) {
    const Program& program = programs.programs[static_cast<std::size_t>(key.first)];
    const auto rows = [&, rank = rank](int microbatch, int layer) { return table.rows(microbatch, layer, rank); };
    const LiveMemory own = live_memory(program, replay_memory(program, rows).peak_bytes);
    if (own.peak() > most.peak()) most = own;
  }
  return most;
}

RowsBound rows_of_rank(const Program& program, const Layout& layout, const RoutingSource& routing, std::int64_t rank) {
  const auto table = std::make_shared<RoutingTable>(routing, layout, program.layers, program.microbatches, 0,
                                                    std::vector{layout.row_rank(rank) / layout.expert});
  return [table, rank](int microbatch, int layer) { return table->rows(microbatch, layer, rank); };
}

}  // namespace wt
