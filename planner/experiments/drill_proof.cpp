#include "planner/experiments/drill_proof.hpp"

#include <string.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/run_folder/run_lines.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Kinds that end the affected rank.
bool ends_process(FaultKind kind) {
  return kind == FaultKind::kill || kind == FaultKind::abort || kind == FaultKind::segfault ||
         kind == FaultKind::exit || kind == FaultKind::exception;
}

/// How a process ends with such a fault, in the agent's words.
std::string end_of(const FaultEffect& what) {
  const auto by_signal = [](int number) { return fmt::format("signal {} ({})", number, strsignal(number)); };
  switch (what.kind) {
    case FaultKind::kill:
      return by_signal(SIGKILL);
    case FaultKind::abort:
      return by_signal(SIGABRT);
    case FaultKind::segfault:
      return by_signal(SIGSEGV);
    case FaultKind::exit:
      return fmt::format("exit status {}", what.status);
    default:
      return fmt::format("exit status {}", static_cast<int>(Code::runtime));
  }
}

/// One event in one generation: the merged lines of strikes.jsonl.
struct InjectedFault {
  double first_unix_s = 0;
  std::map<std::int64_t, json> of_ranks;  ///< by rank: the last value of each key
  json proof = json::object();            ///< the same over all ranks

  std::vector<std::int64_t> ranks() const {
    std::vector<std::int64_t> out;
    for (const auto& [rank, proof] : of_ranks) out.push_back(rank);
    return out;
  }
};

std::optional<InjectedFault> lines_of(const std::vector<json>& lines, std::size_t event, int generation) {
  std::optional<InjectedFault> out;
  for (const json& line : lines) {
    if (line.at("event") != event || line.at("generation") != generation) continue;
    if (!out) out = InjectedFault{line.at("unix_s"), {}, json::object()};
    json& of_rank = out->of_ranks.try_emplace(line.at("rank"), json::object()).first->second;
    of_rank.update(line.at("proof"));
    out->proof.update(line.at("proof"));
  }
  return out;
}

/// The end of the affected generation; nullptr if it went on. Ranks that were about to join belong to the next one.
const DrillRestart* end_after(const std::vector<DrillRestart>& restarts, int generation, double unix_s) {
  const auto it = std::ranges::find_if(
      restarts, [&](const DrillRestart& r) { return r.detected_unix_s >= unix_s && r.generation <= generation; });
  return it == restarts.end() ? nullptr : &*it;
}

/// The ranks of the event's domain in a generation; empty if unknown: for store, agent and storage, and for replicas in
/// a changed layout.
std::optional<std::vector<std::int64_t>> domain_ranks(const FaultEvent& e, int generation, const Scenario& scenario,
                                                      const RunSpec& run, const std::vector<DrillRestart>& restarts) {
  const NodeShape& shape = scenario.nodes;
  std::vector<std::int64_t> nodes(static_cast<std::size_t>(run.layout.world() / shape.ranks));
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto at_start = nodes;
  for (const DrillRestart& r : restarts)
    if (r.generation == generation - 1) nodes = r.nodes.empty() ? at_start : r.nodes;
  const FaultDomain domain = e.who.domain;
  if (domain == FaultDomain::store || domain == FaultDomain::agent || domain == FaultDomain::storage ||
      (domain == FaultDomain::replica && nodes.size() != at_start.size()))
    return std::nullopt;
  std::vector<std::int64_t> out;
  for (std::int64_t rank = 0; rank < static_cast<std::int64_t>(nodes.size()) * shape.ranks; ++rank) {
    const std::int64_t node = nodes[static_cast<std::size_t>(rank / shape.ranks)];
    if (strikes(e, {rank, node, shape.per_rack > 0 ? node / shape.per_rack : 0,
                    rank * run.layout.replicate / run.layout.world(), generation}))
      out.push_back(rank);
  }
  return out;
}

/// Kinds that affect each rank separately. The first affected rank may end the others before they are affected.
bool affects_ranks_separately(FaultKind kind) {
  return kind == FaultKind::partition || kind == FaultKind::disk_full || kind == FaultKind::file_too_large;
}

/// Ranks that are affected wrongly or not at all; "" if all are right.
std::string wrongly_affected_ranks(const FaultEvent& e, const InjectedFault& s,
                                   const std::optional<std::vector<std::int64_t>>& domain) {
  const std::vector<std::int64_t> ranks = s.ranks();
  if (!domain || ranks == *domain ||
      (affects_ranks_separately(e.what.kind) &&
       std::includes(domain->begin(), domain->end(), ranks.begin(), ranks.end())))
    return "";
  return fmt::format("it hit ranks {}, not {}", fmt::join(ranks, " "), fmt::join(*domain, " "));
}

/// The op times of the slow rank in timeline.json: at least the factor times what its thread computed.
std::string slow_in_timeline(const FaultEvent& event, const InjectedFault& s, const fs::path& place) {
  const json timelines = read_json(place / kTimelineFile);
  for (const std::int64_t rank : s.ranks()) {
    double wall = 0, computed = 0;
    for (const json& op : timelines.at(static_cast<std::size_t>(rank)).at("ops"))
      if (op.at("lane") == "compute")
        wall += op.at("done_s").get<double>() - op.at("issued_s").get<double>(),
            computed += op.at("thread_cpu_s").get<double>();
    if (wall < event.what.factor * computed)
      return fmt::format("rank {} computed {:.3f} s in {:.3f} s of its typical step, not slower by {:g}", rank,
                         computed, wall, event.what.factor);
  }
  return "";
}

/// What the lines of one rank, or of all, lack; "" if nothing.
std::string missing_in(const json& p, const FaultEvent& e, bool ended) {
  switch (e.what.kind) {
    case FaultKind::hang:
      if (e.what.thread && !e.lasts_s) return ended ? "" : "it was not ended";
      if (e.what.thread) return p.value("waited_s", 0.0) >= *e.lasts_s ? "" : "it did not wait";
      if (p.value("samples_stopped", 0) == 0 || p.value("samples_moved", 1) > 0) return "it was not stopped throughout";
      return p.value(e.lasts_s ? "continued" : "ended", false) ? "" : "it was not ended";
    case FaultKind::slow:
      return p.value("waited_s", 0.0) < 0.999 * (e.what.factor - 1) * p.value("computed_s", 1.0) ? "it was not slower"
                                                                                                 : "";
    case FaultKind::damage:
      return p.value("before", json()) == p.value("after", json()) ? "the file is as it was" : "";
    case FaultKind::corrupt:
      if (!e.what.bit) return p.value("bytes_not_zero_before", 0) > 0 ? "" : "all was zero before";
      return p.value("before", "") == p.value("after", "") ? "the number is as it was" : "";
    case FaultKind::disk_full:
      return p.value("errno", 0) == ENOSPC ? "" : "no write failed with ENOSPC";
    case FaultKind::file_too_large:
      return p.value("errno", 0) == EFBIG ? "" : "no write failed with EFBIG";
    case FaultKind::partition:
      return p.value("peer_ports", json::array()).empty() ? "no connection was cut" : "";
    case FaultKind::maintenance:
      return ended ? "" : "the run was not asked to end";
    default:
      return "";
  }
}

/// The same for every affected rank, or for one if that is enough.
std::string missing_of_ranks(const FaultEvent& e, const InjectedFault& s, bool ended) {
  const bool some = affects_ranks_separately(e.what.kind);
  // The first rank that is killed or stopped logs for all.
  if (!some && e.what.kind != FaultKind::slow && !e.what.thread) return missing_in(s.proof, e, ended);
  std::string first;
  for (const auto& [rank, proof] : s.of_ranks) {
    const std::string missing = missing_in(proof, e, ended);
    if (missing.empty() && some) return "";
    if (!missing.empty() && first.empty())
      first = s.of_ranks.size() > 1 ? fmt::format("rank {}: {}", rank, missing) : missing;
  }
  return first;
}

/// What is not proved of the event; "" if everything is.
std::string missing_proof(const FaultEvent& e, const InjectedFault& s, const DrillRestart* end, const RunSpec& run,
                          const fs::path& place) {
  const json& p = s.proof;
  const std::int64_t copies_every = run.resilience.local.interval;
  // Copies certainly exist.
  const bool copies = copies_every > 0 && e.generation == 0 && e.when.step > 2 * copies_every;
  if (copies && e.what.takes_local_copies && p.value("copies_removed", json::array()).empty())
    return "its local copies were not taken";
  if (e.who.domain == FaultDomain::agent || e.who.domain == FaultDomain::store) {
    if (e.what.kind == FaultKind::kill && !end) return "nothing ended";
  } else if (ends_process(e.what.kind)) {
    if (!end) return "no rank ended";
    if (end->cause != end_of(e.what)) return fmt::format("it ended with {}", end->cause);
    if (s.of_ranks.size() > 1 && !p.value("others_gone", false)) return "its ranks lived on";
    if (s.of_ranks.size() > 1 && p.value("sent_s", 1.0) > 0.1) return "its ranks were not killed together";
  }
  if (std::string missing = missing_of_ranks(e, s, end); !missing.empty()) return missing;
  const bool to_the_end = e.what.kind == FaultKind::slow && !e.lasts_s && !end && e.when.step <= 2;
  return to_the_end ? slow_in_timeline(e, s, place) : "";
}

/// Whether an unaffected rank is blamed.
bool blames_another(const FaultEvent& e, const InjectedFault& s, const DrillRestart& end, double dist_timeout_s) {
  if (e.what.kind == FaultKind::hang && e.lasts_s && *e.lasts_s < dist_timeout_s)
    return false;  // all continue after it
  if (!ends_process(e.what.kind) && e.what.kind != FaultKind::hang) return false;
  if (e.who.domain == FaultDomain::agent || e.who.domain == FaultDomain::store) return end.rank >= 0;
  return end.blamed.empty() ||
         std::ranges::any_of(end.blamed, [&](std::int64_t rank) { return s.of_ranks.count(rank) == 0; });
}

}  // namespace

std::string event_text(const FaultEvent& e) {
  std::string who = to_string(e.who.domain);
  if (e.who.index) who += fmt::format(" {}", *e.who.index);
  std::string at = e.when.op;
  if (e.when.place == FaultTime::Place::checkpoint) at = "the save";
  if (e.when.place == FaultTime::Place::manifest) at = "the save's end";
  if (e.when.place == FaultTime::Place::reload) at = "the reload";
  if (e.when.place == FaultTime::Place::restart) at = "the restart";
  if (e.when.place == FaultTime::Place::begin) at = "the begin";
  return fmt::format("{} of {} at {}{}", to_string(e.what.kind), who, at,
                     e.when.step > 0 ? fmt::format(" of step {}", e.when.step) : "");
}

void prove_faults(const Scenario& scenario, const RunSpec& run, const fs::path& place, DrillCase& out) {
  const std::vector<json> lines = read_lines(place / kStrikesFile);
  for (std::size_t i = 0; i < scenario.events.size(); ++i) {
    const FaultEvent& e = scenario.events[i];
    for (int generation = e.generation; generation < e.generation + e.repeats; ++generation) {
      const std::string text = event_text(e) + (generation > 0 ? fmt::format(", generation {}", generation) : "");
      const auto injected = lines_of(lines, i, generation);
      if (!injected) {
        out.differs("{} was never injected", text);
        continue;
      }
      const DrillRestart* end = end_after(out.restarts, generation, injected->first_unix_s);
      std::string missing =
          wrongly_affected_ranks(e, *injected, domain_ranks(e, generation, scenario, run, out.restarts));
      if (missing.empty()) missing = missing_proof(e, *injected, end, run, place);
      if (!missing.empty())
        out.differs("{}: not proved: {}", text, missing);
      else
        out.proofs.push_back(text);
      if (end && blames_another(e, *injected, *end, run.dist_timeout_s))
        out.differs("{}: rank {} is blamed, which was not hit: {}", text, fmt::join(end->blamed, " "),
                    end->message.empty() ? end->cause : end->message);
      if (end && e.detected_within_s && end->detected_unix_s - injected->first_unix_s > *e.detected_within_s)
        out.differs("{}: noticed after {:.1f} s, not within {:g} s", text,
                    end->detected_unix_s - injected->first_unix_s, *e.detected_within_s);
    }
  }
}

}  // namespace wt
