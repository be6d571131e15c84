#include "configs/files/scenario.hpp"

#include <fmt/ranges.h>

#include <csignal>
#include <regex>

#include "configs/base/enum_words.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"

namespace wt {
namespace {

/// The words in files, in the order of their enumerators.
namespace vocabulary {
const std::vector<std::string> kDomains{"rank",    "node",    "rack",  "leaf",  "rail",
                                        "replica", "storage", "store", "agent", "all"};
const std::vector<std::string> kKinds{"kill",           "abort",     "segfault",   "exit",    "exception",
                                      "hang",           "slow",      "damage",     "corrupt", "disk_full",
                                      "file_too_large", "partition", "maintenance"};
const std::vector<std::string> kDamages{"flip_bit", "truncate",     "zero",        "remove",
                                        "exchange", "old_manifest", "stale_latest"};
const std::vector<std::string> kLevels{"storage", "local", "peer"};
const std::vector<std::string> kTensors{"gradient", "weight", "moment", "activation"};
const std::vector<std::string> kDetectedBy{"exit", "peer", "watchdog", "heartbeat", "metric", "verify", "human"};
const std::vector<std::string> kRecoveries{"restart", "spare", "shrink", "without_replica", "wait"};
const std::vector<std::string> kStates{"bitwise", "layouts", "changed", "any"};
const std::vector<std::string> kPhases{"before", "issued", "waiting"};
const std::vector<std::string> kPlaces{"begin", "", "checkpoint", "manifest", "reload", "restart"};  // "": an op
}  // namespace vocabulary

/// A positive time.
double time_above_0(YamlMap& map, const std::string& key) {
  const double seconds = map.quantity(key, parse_seconds);
  if (seconds <= 0) map.fail(key, "needs a time above 0");
  return seconds;
}

bool has_members(FaultDomain domain) { return domain <= FaultDomain::replica; }

Victims read_victims(YamlMap map) {
  Victims out;
  if (map.has("share")) {
    out.domain = map.enumerator<FaultDomain>("of", vocabulary::kDomains);
    if (!has_members(out.domain)) map.fail("of", "has no members of which a share could be taken; name another domain");
    out.share = map.number("share", 1e-9, 1);
  } else {
    out.domain = map.enumerator<FaultDomain>("domain", vocabulary::kDomains);
    if (map.has("index") && !has_members(out.domain))
      map.fail("index", "'{}' is one and has no numbers; remove it", to_string(out.domain));
    if (map.has("index")) out.index = map.integer("index", 0);
  }
  map.finish();
  return out;
}

void read_place(YamlMap& map, FaultTime& out) {
  static const std::regex kOpId(R"((mb\d+\.)?(L\d+\.)?[a-z_]+(\.[a-z_]+)*)");
  const std::string at = map.text("at", "begin");
  const auto known = enumerator_of<FaultTime::Place>(at, vocabulary::kPlaces);
  const bool long_id = at.size() > 200;  // std::regex recurses by character
  if (!known && (long_id || !std::regex_match(at, kOpId)))
    map.fail(
        "at",
        "found '{}', needs begin, checkpoint, manifest, reload, restart or the id of an op such as mb0.L1.experts.bwd",
        at);
  out.place = known.value_or(FaultTime::Place::op);
  if (out.place == FaultTime::Place::op) {
    out.op = at;
    out.phase = map.enumerator("phase", vocabulary::kPhases, FaultTime::Phase::before);
  }
  if (out.place == FaultTime::Place::checkpoint) out.after = map.number_or("after", 0.5, 0, 1);
  const bool in_step = out.place != FaultTime::Place::reload && out.place != FaultTime::Place::restart;
  if (in_step) out.step = map.integer("step", 1);
  if (out.place == FaultTime::Place::op || out.place == FaultTime::Place::begin)
    out.saved = map.boolean("saved", false);
}

FaultTime read_time(YamlMap map) {
  FaultTime out;
  if (map.has("time")) {
    out.by = FaultTime::By::time;
    out.time_s = time_above_0(map, "time");
  } else if (map.has("per_1000_node_days")) {
    out.by = FaultTime::By::rate;
    out.per_1000_node_days = map.number("per_1000_node_days", 1e-12);
    out.shape = map.number_or("shape", 1, 0.1, 10);
  } else if (map.has("trace")) {
    out.by = FaultTime::By::trace;
    out.trace = map.file().parent_path() / map.text("trace");
  } else {
    read_place(map, out);
  }
  map.finish();
  return out;
}

void read_corruption(YamlMap& map, FaultEffect& out) {
  out.tensor = map.enumerator<TensorKind>("tensor", vocabulary::kTensors);
  out.layer = map.integer_or("layer", 0, 0);
  if (map.has("zero") == map.has("bit"))
    map.fail("bit", "found {} of bit and zero, needs exactly one", map.has("bit") ? "both" : "neither");
  if (map.has("zero")) {
    if (!map.boolean("zero", false)) map.fail("zero", "found false; needs true, or bit in its place");
    return;
  }
  out.bit = static_cast<int>(map.integer("bit", 0, 31));
  out.element = map.integer_or("element", 0, 0);
}

FaultEffect read_effect(YamlMap map) {
  FaultEffect out;
  out.kind = map.enumerator<FaultKind>("kind", vocabulary::kKinds);
  switch (out.kind) {
    case FaultKind::kill:
      for (const std::string& taken : map.texts("takes")) {
        if (taken != "local_copies") map.fail("takes", "found '{}', allowed is local_copies", taken);
        out.takes_local_copies = true;
      }
      break;
    case FaultKind::exit:
      out.status = static_cast<int>(map.integer("status", 1, 255));
      break;
    case FaultKind::hang:
      out.thread = map.choice("of", {"process", "thread"}, "process") == "thread";
      break;
    case FaultKind::slow:
      out.factor = map.number("factor", 1.01, 1000);
      break;
    case FaultKind::damage:
      out.damage = map.enumerator<FileDamage>("how", vocabulary::kDamages);
      out.level = map.enumerator("level", vocabulary::kLevels, CopyLevel::storage);
      break;
    case FaultKind::corrupt:
      read_corruption(map, out);
      break;
    case FaultKind::disk_full:
    case FaultKind::file_too_large:
      out.bytes = map.quantity_or("after", parse_bytes, 0);
      break;
    case FaultKind::maintenance:
      out.signal = map.choice("signal", {"TERM", "USR1"}, "TERM") == "TERM" ? SIGTERM : SIGUSR1;
      if (map.has("notice")) out.notice_s = time_above_0(map, "notice");
      break;
    default:
      break;
  }
  map.finish();
  return out;
}

/// Domains that a kind of fault can affect.
std::vector<FaultDomain> domains_of(const FaultEffect& what) {
  using enum FaultDomain;
  switch (what.kind) {
    case FaultKind::kill:
      return {rank, node, rack, leaf, rail, replica, storage, store, agent, all};
    case FaultKind::slow:
      return {rank, node, rack, leaf, rail, storage};
    case FaultKind::hang:
      return {rank, node, rack, store, agent};
    case FaultKind::partition:
      return {rank, node, rack, leaf};
    case FaultKind::damage:
      return what.level == CopyLevel::storage ? std::vector{storage} : std::vector{node};
    case FaultKind::disk_full:
    case FaultKind::file_too_large:
      return {rank, all};
    case FaultKind::maintenance:
      return {node, rack, leaf, all};
    default:
      return {rank};
  }
}

void check_event(YamlMap& map, const FaultEvent& e) {
  const auto domains = domains_of(e.what);
  if (std::ranges::find(domains, e.who.domain) == domains.end())
    map.fail("who", "found '{}', {} hits one of: {}", to_string(e.who.domain), to_string(e.what.kind),
             joined(domains, ", ", [](FaultDomain domain) { return to_string(domain); }));
  if (e.who.share > 0 && e.when.by != FaultTime::By::rate)
    map.fail("who", "a share of members is hit at a rate; give per_1000_node_days, or an index in place of the share");
  const bool one = e.when.by == FaultTime::By::step || e.when.by == FaultTime::By::time;
  if (one && has_members(e.who.domain) && !e.who.index)
    map.fail("who", "which {} is hit? An event at a step or a time needs its index", to_string(e.who.domain));
  if (!one && e.who.index)
    map.fail("who", e.when.by == FaultTime::By::rate
                        ? "found an index with a rate, which hits all members alike; leave it out, or give a time"
                        : "found an index with a trace, whose rows say which member is hit; leave it out");
  const bool during = e.when.place == FaultTime::Place::reload || e.when.place == FaultTime::Place::restart;
  if (during && e.generation == 0)
    map.fail("generation", "the first generation reloads and restarts nothing; needs 1 or more");
  const bool in_save = e.when.place == FaultTime::Place::checkpoint || e.when.place == FaultTime::Place::manifest;
  if (e.what.kind == FaultKind::corrupt && (in_save || during))
    map.fail("when", "numbers are corrupted at an op or at the begin of a step");
  if (e.lasts_s && e.when.by == FaultTime::By::step && e.what.kind != FaultKind::hang &&
      e.what.kind != FaultKind::slow && e.what.kind != FaultKind::kill && e.what.kind != FaultKind::maintenance)
    map.fail("lasts", "'{}' has no end; only a hang, a slow phase and a repair last", to_string(e.what.kind));
}

FaultEvent read_event(YamlMap& map) {
  FaultEvent out{
      read_victims(map.map("who")), read_time(map.map("when")), 0, 1, read_effect(map.map("what")), {}, {}, {}, {}};
  constexpr std::int64_t kMost = 1000;  // failures of one run; many more than the allowed restarts
  if (map.has("generation")) out.generation = static_cast<int>(map.integer("generation", 0, kMost));
  if (map.has("repeats")) out.repeats = static_cast<int>(map.integer("repeats", 1, kMost));
  if (const std::string lasts = map.text("lasts", "forever"); lasts != "forever")
    out.lasts_s = time_above_0(map, "lasts");
  if (map.has("cause")) out.cause = read_source(map, "cause");
  if (map.has("detect")) {
    YamlMap detect = map.map("detect");
    if (detect.has("by")) out.detected_by = detect.enumerator<DetectedBy>("by", vocabulary::kDetectedBy);
    if (detect.has("within")) out.detected_within_s = time_above_0(detect, "within");
    detect.finish();
  }
  check_event(map, out);
  map.finish();
  return out;
}

RecoveryPolicy read_policy(YamlMap map) {
  RecoveryPolicy out;
  if (map.has("on_loss")) out.on_loss.clear();
  for (const Recovery recovery : map.enumerators<Recovery>("on_loss", vocabulary::kRecoveries)) {
    const std::string word = to_string(recovery);
    if (std::ranges::find(out.on_loss, recovery) != out.on_loss.end()) map.fail("on_loss", "found '{}' twice", word);
    if (!out.on_loss.empty() && (out.on_loss.back() == Recovery::restart || out.on_loss.back() == Recovery::wait))
      map.fail("on_loss", "found '{}' after '{}', which is always possible; put that last", word,
               to_string(out.on_loss.back()));
    out.on_loss.push_back(recovery);
  }
  if (out.on_loss.empty()) map.fail("on_loss", "found none, allowed {}", fmt::join(vocabulary::kRecoveries, ", "));
  out.min_replicas = map.integer_or("min_replicas", out.min_replicas, 1);
  out.retries_same_place = map.integer_or("retries_same_place", out.retries_same_place, 0);
  if (map.has("max_restarts")) out.max_restarts = map.integer("max_restarts", 0);
  map.finish();
  return out;
}

NodeShape read_nodes(YamlMap map) {
  NodeShape out{map.integer("ranks", 1), map.integer_or("per_rack", 0, 1), map.integer_or("spares", 0, 0)};
  map.finish();
  return out;
}

/// One step, or a list with one per recovery.
std::vector<std::int64_t> read_steps(YamlMap& map, const std::string& key) {
  if (!map.has(key)) return {};
  if (!map.node(key).IsSequence()) return {map.integer(key, 0)};
  std::vector<std::int64_t> out = map.integers(key);
  if (out.empty() || std::ranges::any_of(out, [](std::int64_t step) { return step < 0; }))
    map.fail(key, "needs a step of 0 or more, or a list of such steps");
  return out;
}

std::vector<CopyLevel> read_levels(YamlMap& map, const std::string& key) {
  if (!map.has(key)) return {};
  if (!map.node(key).IsSequence()) return {map.enumerator<CopyLevel>(key, vocabulary::kLevels)};
  auto out = map.enumerators<CopyLevel>(key, vocabulary::kLevels);
  if (out.empty()) map.fail(key, "needs a level, or a list of levels");
  return out;
}

Expectation read_expectation(YamlMap map) {
  Expectation out;
  out.state = map.enumerator("state", vocabulary::kStates, Expectation::State::bitwise);
  out.finishes = map.boolean("finishes", true);
  const auto number = [&](const char* key, std::optional<std::int64_t>& value) {
    if (map.has(key)) value = map.integer(key, 0);
  };
  number("restarts", out.restarts);
  number("steps_lost", out.steps_lost);
  out.relaunches = map.integer_or("relaunches", 0, 0);
  out.resumed_after = read_steps(map, "resumed_after");
  out.level = read_levels(map, "level");
  if (map.has("excluded")) out.excluded = map.integers("excluded");
  out.says = map.text("says", "");
  if (map.has("within")) out.within_s = time_above_0(map, "within");
  map.finish();
  return out;
}

}  // namespace

std::string to_string(FaultDomain domain) { return word_for(domain, vocabulary::kDomains); }
std::string to_string(const FaultTime& place) {
  return place.place == FaultTime::Place::op ? place.op : word_for(place.place, vocabulary::kPlaces);
}
std::string to_string(FaultTime::Phase phase) { return word_for(phase, vocabulary::kPhases); }
std::string to_string(Expectation::State state) { return word_for(state, vocabulary::kStates); }
std::string to_string(FaultKind kind) { return word_for(kind, vocabulary::kKinds); }
std::string to_string(FileDamage damage) { return word_for(damage, vocabulary::kDamages); }
std::string to_string(CopyLevel level) { return word_for(level, vocabulary::kLevels); }
std::string to_string(TensorKind tensor) { return word_for(tensor, vocabulary::kTensors); }
std::string to_string(DetectedBy by) { return word_for(by, vocabulary::kDetectedBy); }
std::string to_string(Recovery recovery) { return word_for(recovery, vocabulary::kRecoveries); }

Scenario read_scenario(const std::string& name_or_file) {
  return read_scenario_file(find_config("faults", name_or_file));
}

Scenario read_scenario_file(const std::filesystem::path& file) {
  YamlMap map = YamlMap::from_file(file);
  Scenario out;
  out.file = file;
  out.name = map.text("name");
  out.run = map.text("run", "");
  if (map.has("nodes")) out.nodes = read_nodes(map.map("nodes"));
  if (map.has("policy")) out.policy = read_policy(map.map("policy"));
  for (YamlMap& event : map.maps("events")) out.events.push_back(read_event(event));
  if (out.events.empty()) map.fail("events", "found none, needs at least one");
  if (map.has("expect")) out.expect = read_expectation(map.map("expect"));
  const auto& on_loss = out.policy.on_loss;
  if (std::ranges::find(on_loss, Recovery::spare) != on_loss.end() && out.nodes.spares == 0 && !out.run.empty())
    map.fail("policy.on_loss", "found 'spare', but nodes.spares is 0; give spares or leave it out");
  map.finish();
  return out;
}

bool strikes(const FaultEvent& event, const RankPlace& place) {
  if (place.generation < event.generation || place.generation >= event.generation + event.repeats) return false;
  switch (event.who.domain) {
    case FaultDomain::rank:
      return event.who.index == place.rank;
    case FaultDomain::node:
      return event.who.index == place.node;
    case FaultDomain::rack:
      return event.who.index == place.rack;
    case FaultDomain::replica:
      return event.who.index == place.replica;
    case FaultDomain::all:
      return true;
    default:
      return false;
  }
}

}  // namespace wt
