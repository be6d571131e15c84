// Writes a scenario as a file that reads back to the same scenario.
#include <csignal>

#include "configs/base/lists.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/scenario.hpp"

namespace wt {
namespace {

/// Writes one map of the file, without keys at their default.
class MapWriter {
 public:
  MapWriter(YAML::Emitter& out, bool flow) : out_(out) {
    if (flow) out << YAML::Flow;
    out << YAML::BeginMap;
  }
  ~MapWriter() { out_ << YAML::EndMap; }
  MapWriter(const MapWriter&) = delete;
  MapWriter& operator=(const MapWriter&) = delete;

  YAML::Emitter& key(const char* name) { return out_ << YAML::Key << name << YAML::Value; }
  template <typename T>
  void add(const char* name, const T& value) {
    key(name) << value;
  }
  template <typename T>
  void add(const char* name, const std::optional<T>& value) {
    if (value) key(name) << *value;
  }
  template <typename T>
  void unless(const T& usual, const char* name, const T& value) {
    if (value != usual) key(name) << value;
  }
  void seconds(const char* name, const std::optional<double>& value) {
    if (value) key(name) << fmt::format("{}s", *value);
  }
  void number(const char* name, double value) { key(name) << fmt::format("{}", value); }

 private:
  YAML::Emitter& out_;
};

void write(YAML::Emitter& out, const Victims& who) {
  MapWriter map(out, true);
  if (who.share > 0) map.number("share", who.share);
  map.add(who.share > 0 ? "of" : "domain", to_string(who.domain));
  map.add("index", who.index);
}

void write(YAML::Emitter& out, const FaultTime& when) {
  MapWriter map(out, true);
  if (when.by == FaultTime::By::time) map.seconds("time", when.time_s);
  if (when.by == FaultTime::By::trace) map.add("trace", when.trace.string());
  if (when.by == FaultTime::By::rate) {
    map.number("per_1000_node_days", when.per_1000_node_days);
    map.number("shape", when.shape);
  }
  if (when.by != FaultTime::By::step) return;
  map.unless<std::int64_t>(0, "step", when.step);
  map.add("at", to_string(when));
  if (when.place == FaultTime::Place::op) map.add("phase", to_string(when.phase));
  if (when.place == FaultTime::Place::checkpoint) map.number("after", when.after);
  map.unless(false, "saved", when.saved);
}

void write_corruption(MapWriter& map, const FaultEffect& what) {
  map.add("tensor", to_string(what.tensor));
  map.add("layer", what.layer);
  map.add("bit", what.bit);
  if (what.bit)
    map.add("element", what.element);
  else
    map.add("zero", true);
}

void write(YAML::Emitter& out, const FaultEffect& what) {
  MapWriter map(out, true);
  map.add("kind", to_string(what.kind));
  switch (what.kind) {
    case FaultKind::kill:
      if (what.takes_local_copies) map.add("takes", std::vector<std::string>{"local_copies"});
      break;
    case FaultKind::exit:
      map.add("status", what.status);
      break;
    case FaultKind::hang:
      map.add("of", std::string(what.thread ? "thread" : "process"));
      break;
    case FaultKind::slow:
      map.number("factor", what.factor);
      break;
    case FaultKind::damage:
      map.add("how", to_string(what.damage));
      map.add("level", to_string(what.level));
      break;
    case FaultKind::corrupt:
      write_corruption(map, what);
      break;
    case FaultKind::disk_full:
    case FaultKind::file_too_large:
      map.add("after", fmt::format("{}B", what.bytes));
      break;
    case FaultKind::maintenance:
      map.add("signal", std::string(what.signal == SIGTERM ? "TERM" : "USR1"));
      map.seconds("notice", what.notice_s);
      break;
    default:
      break;
  }
}

void write(YAML::Emitter& out, const FaultEvent& event) {
  MapWriter map(out, false);
  map.key("who"), write(out, event.who);
  map.key("when"), write(out, event.when);
  map.unless(0, "generation", event.generation);
  map.unless(1, "repeats", event.repeats);
  map.key("what"), write(out, event.what);
  map.seconds("lasts", event.lasts_s);
  if (event.cause) map.add("cause", to_string(*event.cause));
  if (!event.detected_by && !event.detected_within_s) return;
  map.key("detect");
  MapWriter detect(out, true);
  if (event.detected_by) detect.add("by", to_string(*event.detected_by));
  detect.seconds("within", event.detected_within_s);
}

void write(YAML::Emitter& out, const RecoveryPolicy& policy) {
  MapWriter map(out, true);
  map.add("on_loss", mapped(policy.on_loss, [](Recovery recovery) { return to_string(recovery); }));
  map.add("min_replicas", policy.min_replicas);
  map.add("retries_same_place", policy.retries_same_place);
  map.add("max_restarts", policy.max_restarts);
}

void write(YAML::Emitter& out, const Expectation& expect) {
  MapWriter map(out, true);
  map.add("state", to_string(expect.state));
  map.unless(true, "finishes", expect.finishes);
  map.add("restarts", expect.restarts);
  map.unless<std::int64_t>(0, "relaunches", expect.relaunches);
  if (!expect.resumed_after.empty()) map.add("resumed_after", expect.resumed_after);
  map.add("steps_lost", expect.steps_lost);
  if (!expect.level.empty()) map.add("level", mapped(expect.level, [](CopyLevel level) { return to_string(level); }));
  map.add("excluded", expect.excluded);
  map.unless<std::string>("", "says", expect.says);
  map.seconds("within", expect.within_s);
}

}  // namespace

std::string scenario_to_yaml(const Scenario& scenario) {
  YAML::Emitter out;
  {
    MapWriter map(out, false);
    map.add("name", scenario.name);
    map.unless<std::string>("", "run", scenario.run);
    map.key("nodes");
    {
      MapWriter nodes(out, true);
      nodes.add("ranks", scenario.nodes.ranks);
      nodes.unless<std::int64_t>(0, "per_rack", scenario.nodes.per_rack);
      nodes.add("spares", scenario.nodes.spares);
    }
    map.key("policy"), write(out, scenario.policy);
    map.key("events") << YAML::BeginSeq;
    for (const FaultEvent& event : scenario.events) write(out, event);
    out << YAML::EndSeq;
    map.key("expect"), write(out, scenario.expect);
  }
  return std::string(out.c_str()) + "\n";
}

}  // namespace wt
