#include "planner/experiments/drill_proof.hpp"

#include <string.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/json_reader.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Kinds that end the rank they strike.
bool ends_process(FaultKind kind) {
  return kind == FaultKind::kill || kind == FaultKind::abort || kind == FaultKind::segfault ||
         kind == FaultKind::exit || kind == FaultKind::exception;
}

/// How the process of such a kind has to end, in the agent's words.
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

/// A strike of one event in one generation: its lines, put together.
struct Struck {
  double first_unix_s = 0;
  std::vector<std::int64_t> ranks;  ///< ascending
  std::vector<std::int64_t> nodes;
  json proof = json::object();  ///< keys of all lines, the last value of each
};

std::optional<Struck> lines_of(const std::vector<json>& lines, std::size_t event, int generation) {
  std::optional<Struck> out;
  for (const json& line : lines) {
    if (line.at("event") != event || line.at("generation") != generation) continue;
    if (!out) out = Struck{line.at("unix_s"), {}, {}, json::object()};
    out->ranks.push_back(line.at("rank"));
    out->nodes.push_back(line.at("node"));
    out->proof.update(line.at("proof"));
  }
  if (!out) return out;
  for (auto* list : {&out->ranks, &out->nodes}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return out;
}

/// The end of a generation that a strike led to; none where it went on.
const DrillRestart* end_after(const std::vector<DrillRestart>& restarts, double unix_s) {
  const auto it = std::find_if(restarts.begin(), restarts.end(),
                               [&](const DrillRestart& r) { return r.detected_unix_s >= unix_s; });
  return it == restarts.end() ? nullptr : &*it;
}

/// The op times of the slow rank in timeline.json: at least the factor times what its thread computed.
std::string slow_in_timeline(const FaultEvent& event, const Struck& s, const fs::path& place) {
  const json timelines = read_json(place / "timeline.json");
  for (const std::int64_t rank : s.ranks) {
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

/// What of the asked strike is not proved; "" where all is.
std::string missing_proof(const FaultEvent& e, const Struck& s, const DrillRestart* end, const fs::path& place) {
  const json& p = s.proof;
  const bool group = s.ranks.size() > 1;
  if (e.who.domain == FaultDomain::agent || e.who.domain == FaultDomain::store) {
    if (e.what.kind == FaultKind::kill && !end) return "nothing ended";
  } else if (ends_process(e.what.kind)) {
    if (!end) return "no rank ended";
    if (end->cause != end_of(e.what) && !group) return fmt::format("it ended with {}", end->cause);
  }
  if (e.what.kind == FaultKind::kill && group && !p.value("others_gone", false)) return "its ranks lived on";
  if (e.what.kind == FaultKind::kill && group && p.value("sent_s", 1.0) > 0.1)
    return "its ranks were not killed together";
  switch (e.what.kind) {
    case FaultKind::hang:
      if (e.what.thread) return !e.lasts_s || p.value("waited_s", 0.0) >= *e.lasts_s ? "" : "it did not wait";
      if (p.value("samples_stopped", 0) == 0 || p.value("samples_moved", 1) > 0) return "it was not stopped throughout";
      return p.value(e.lasts_s ? "continued" : "ended", false) ? "" : "it was not ended";
    case FaultKind::slow:
      if (p.value("waited_s", 0.0) < 0.999 * (e.what.factor - 1) * p.value("computed_s", 1.0))
        return "it was not slower";
      return e.lasts_s || end || e.when.step > 2 ? "" : slow_in_timeline(e, s, place);
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
      return end ? "" : "the run was not asked to end";
    default:
      return "";
  }
}

/// Another rank than those struck is named as the cause.
bool blames_another(const FaultEvent& e, const Struck& s, const DrillRestart& end) {
  if (!ends_process(e.what.kind) && e.what.kind != FaultKind::hang) return false;
  if (e.who.domain == FaultDomain::agent || e.who.domain == FaultDomain::store) return end.rank >= 0;
  return std::none_of(s.ranks.begin(), s.ranks.end(), [&](std::int64_t rank) {
    return end.rank == rank || end.message.find(fmt::format("rank {} ", rank)) != std::string::npos;
  });
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

void prove_strikes(const Scenario& scenario, const fs::path& place, DrillCase& out) {
  const std::vector<json> lines = read_lines(place / "strikes.jsonl");
  for (std::size_t i = 0; i < scenario.events.size(); ++i) {
    const FaultEvent& e = scenario.events[i];
    for (int generation = e.generation; generation < e.generation + e.repeats; ++generation) {
      const std::string text = event_text(e) + (generation > 0 ? fmt::format(", generation {}", generation) : "");
      const auto struck = lines_of(lines, i, generation);
      if (!struck) {
        out.differences.push_back(text + " never struck");
        continue;
      }
      const DrillRestart* end = end_after(out.restarts, struck->first_unix_s);
      if (const std::string missing = missing_proof(e, *struck, end, place); !missing.empty())
        out.differences.push_back(fmt::format("{}: not proved: {}", text, missing));
      else
        out.struck.push_back(text);
      if (end && blames_another(e, *struck, *end))
        out.differences.push_back(fmt::format("{}: rank {} is named, with {}", text, end->rank, end->cause));
      if (end && e.detected_within_s && end->detected_unix_s - struck->first_unix_s > *e.detected_within_s)
        out.differences.push_back(fmt::format("{}: noticed after {:.1f} s, not within {:g} s", text,
                                              end->detected_unix_s - struck->first_unix_s, *e.detected_within_s));
    }
  }
}

}  // namespace wt
