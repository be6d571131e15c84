#include "bench/formats/traced_ranks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "bench/formats/intervals.hpp"
#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

/// One execution of a collective: among whom, and its number in their sequence.
using Execution = std::pair<std::string, std::int64_t>;
/// The work of each trace that takes part, by index of the trace.
using Parts = std::map<std::size_t, const GpuWork*>;

/// Collectives without a number are counted, in the order in which they run. Where the traces of a group have different
/// counts, one began or ended earlier, and no two of them can be told to be the same. Nor can those of a number that
/// stands twice in one trace, and those of a group of which only some have numbers.
std::map<Execution, Parts> executions(const std::vector<GpuTrace>& traces) {
  std::map<Execution, Parts> out;
  std::map<std::string, std::map<std::size_t, std::vector<const GpuWork*>>> uncounted;  // by trace
  std::set<Execution> twice;
  std::set<std::string> numbered;
  for (std::size_t t = 0; t < traces.size(); ++t)
    for (const GpuWork& work : traces[t].work)
      if (work.number) {
        const Execution execution{work.among, *work.number};
        numbered.insert(work.among);
        if (!out[execution].emplace(t, &work).second) twice.insert(execution);
      } else if (!work.among.empty()) {
        uncounted[work.among][t].push_back(&work);
      }
  std::erase_if(out,
                [&](const auto& each) { return twice.contains(each.first) || uncounted.contains(each.first.first); });
  for (auto& [among, members] : uncounted) {
    const std::size_t count = members.begin()->second.size();
    if (numbered.contains(among) ||
        std::ranges::any_of(members, [&](const auto& member) { return member.second.size() != count; }))
      continue;
    for (auto& [t, all] : members) {
      std::ranges::stable_sort(all, {}, &GpuWork::begin_s);
      for (std::size_t i = 0; i < count; ++i) out[{among, std::int64_t(i)}][t] = all[i];
    }
  }
  return out;
}

void check_ranks(const std::vector<GpuTrace>& traces, const std::vector<std::string>& files) {
  std::map<std::int64_t, std::string> file_of;
  for (std::size_t t = 0; t < traces.size(); ++t) {
    const GpuTrace& trace = traces[t];
    if (!trace.rank)
      throw_usage("{}: found no rank, needs the distributedInfo that PyTorch's profiler writes in a distributed job",
                  files[t]);
    if (const auto [known, fresh] = file_of.emplace(*trace.rank, files[t]); !fresh)
      throw_usage("{}: found rank {}, which is also that of {}; needs each rank once", files[t], *trace.rank,
                  known->second);
    if (trace.ranks != traces[0].ranks)
      throw_usage("{}: found a job of {} ranks, and {} is of {}; needs traces of one job", files[t],
                  trace.ranks.value_or(0), files[0], traces[0].ranks.value_or(0));
    if (trace.marks != traces[0].marks)
      throw_usage("{}: found the steps {}, and {} has {}; needs traces of the same steps", files[t],
                  fmt::join(trace.marks, ", "), files[0], fmt::join(traces[0].marks, ", "));
  }
}

/// Profilers begin and end a little apart. Traces of other steps have hardly any execution in common.
void check_steps(const std::map<Execution, Parts>& all, const std::vector<std::string>& files) {
  std::map<std::string, std::set<std::size_t>> members;
  for (const auto& [execution, parts] : all)
    for (const auto& [trace, work] : parts) members[execution.first].insert(trace);
  std::int64_t whole = 0, shared = 0;
  for (const auto& [execution, parts] : all)
    if (const std::set<std::size_t>& of = members[execution.first]; of.size() > 1) {
      ++shared;
      if (parts.size() == of.size()) ++whole;
    }
  if (shared == 0)
    throw_usage(
        "{}: found no collective that another rank's trace has, too; needs traces of ranks that share a process group, "
        "with as many of its collectives in each, or with their numbers",
        files[0]);
  if (2 * whole < shared)
    throw_usage(
        "{}: found {} collectives, of which only {} are in the traces of all ranks of their group; needs traces of the "
        "same steps of one job",
        fmt::join(files, ", "), shared, whole);
}

double length(const GpuWork& work) { return work.end_s - work.begin_s; }

}  // namespace

TracedRanks traced_ranks(const std::vector<GpuTrace>& traces, const std::vector<std::string>& files) {
  check_ranks(traces, files);
  const auto all = executions(traces);
  check_steps(all, files);
  std::vector<Intervals> compute(traces.size()), collectives(traces.size()), waits(traces.size());
  std::vector<double> caused_s(traces.size());
  double all_s = 0;
  for (std::size_t t = 0; t < traces.size(); ++t)
    for (const GpuWork& work : traces[t].work)
      if (work.kind == KernelClass::collective)
        collectives[t].emplace_back(work.begin_s, work.end_s);
      else if (work.kind != KernelClass::transfer)
        compute[t].emplace_back(work.begin_s, work.end_s);
  TracedRanks out;
  for (const auto& [execution, parts] : all) {
    if (parts.size() < 2) continue;
    ++out.collectives;
    const auto shortest = std::ranges::min_element(parts, {}, [](const auto& part) { return length(*part.second); });
    for (const auto& [t, work] : parts) {
      const double late_s = length(*work) - length(*shortest->second);
      waits[t].emplace_back(work->begin_s, work->begin_s + late_s);
      caused_s[shortest->first] += late_s, all_s += late_s;
    }
  }
  for (std::size_t t = 0; t < traces.size(); ++t) {
    const Intervals computes = merged(std::move(compute[t]));
    out.ranks.push_back({*traces[t].rank, seconds(computes),
                         seconds(without(merged(std::move(collectives[t])), computes)),
                         seconds(without(merged(std::move(waits[t])), computes)), all_s > 0 ? caused_s[t] / all_s : 0});
  }
  std::ranges::sort(out.ranks, {}, &RankTime::rank);
  out.slowest =
      static_cast<std::size_t>(std::ranges::max_element(out.ranks, {}, &RankTime::compute_s) - out.ranks.begin());
  std::vector<double> computes, waiting;
  for (const RankTime& rank : out.ranks)
    if (&rank != &out.slow()) computes.push_back(rank.compute_s), waiting.push_back(rank.wait_s);
  out.behind_s = out.slow().compute_s - median(computes), out.others_wait_s = median(waiting);
  return out;
}

}  // namespace wt
