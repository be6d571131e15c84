#include "configs/files/measured_recovery.hpp"

#include "configs/base/quantity.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"

namespace wt {
namespace {

double time_at(YamlMap& map, const std::string& key) {
  const double seconds = map.quantity(key, parse_seconds);
  if (seconds < 0) map.fail(key, "needs a time >= 0");
  return seconds;
}

std::string seconds_text(double seconds) { return fmt::format("{}s", seconds); }

void write_time(YAML::Emitter& out, const char* key, const SourcedTime& time) {
  out << YAML::Key << key << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "time" << YAML::Value << seconds_text(time.median > 0 ? time.median : time.value);
  if (time.median > 0) out << YAML::Key << "mean" << YAML::Value << seconds_text(time.value);
  out << YAML::Key << "evidence" << YAML::Value << to_string(time.evidence.kind);
  out << YAML::Key << "source" << YAML::Value << time.evidence.source << YAML::EndMap;
}

}  // namespace

MeasuredRecovery read_measured_recovery(const std::string& name_or_file) {
  YamlMap map = YamlMap::from_file(find_config("faults/recovery", name_or_file));
  MeasuredRecovery out;
  out.title = map.text("title");
  out.run = map.text("run");
  out.ranks = map.integer("ranks", 1);
  out.step_s = time_at(map, "step");
  if (out.step_s <= 0) map.fail("step", "needs a time > 0");
  out.first_step_s = time_at(map, "first_step");
  YamlMap save = map.map("save");
  out.blocking_s = time_at(save, "blocking");
  out.persist_s = time_at(save, "persist");
  save.finish();
  if (map.has("hang")) out.hang_detect_s = time_at(map, "hang");
  if (map.has("notice")) out.notice_s = time_at(map, "notice");
  if (map.has("relaunch")) out.relaunch_s = time_at(map, "relaunch");
  out.times = read_recovery_times(map);
  map.finish();
  return out;
}

std::string to_yaml(const MeasuredRecovery& m) {
  YAML::Emitter out;
  const auto add = [&](const char* key, const auto& value) { out << YAML::Key << key << YAML::Value << value; };
  out << YAML::BeginMap;
  add("title", m.title);
  add("run", m.run);
  add("ranks", m.ranks);
  add("step", seconds_text(m.step_s));
  add("first_step", seconds_text(m.first_step_s));
  out << YAML::Key << "save" << YAML::Value << YAML::BeginMap;
  add("blocking", seconds_text(m.blocking_s));
  add("persist", seconds_text(m.persist_s));
  out << YAML::EndMap;
  if (m.hang_detect_s) add("hang", seconds_text(*m.hang_detect_s));
  if (m.notice_s) add("notice", seconds_text(*m.notice_s));
  if (m.relaunch_s) add("relaunch", seconds_text(*m.relaunch_s));
  out << YAML::Key << "recovery" << YAML::Value << YAML::BeginMap;
  write_time(out, "detect", m.times.detect_s);
  write_time(out, "reschedule", m.times.reschedule_s);
  write_time(out, "restart", m.times.restart_s);
  write_time(out, "reload", m.times.reload_s);
  out << YAML::EndMap << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace wt
