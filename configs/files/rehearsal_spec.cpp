#include "configs/files/rehearsal_spec.hpp"

#include "configs/base/parsed.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

/// "full" = 1, "1/16" = 16, "auto" = 0.
std::int64_t divisor_of(YamlMap& map) {
  const std::string text = map.text("width", "auto");
  if (text == "auto") return 0;
  if (text == "full") return 1;
  const auto divisor = text.starts_with("1/") ? parsed<std::int64_t>(text.substr(2)) : std::nullopt;
  if (divisor >= 1) return *divisor;
  map.fail("width", "found '{}', allowed are auto, full and fractions such as 1/16", text);
}

}  // namespace

RehearsalSpec read_rehearsal(YamlMap& map) {
  RehearsalSpec spec;
  spec.rank = map.integer_or("rank", spec.rank, 0);
  spec.steps = map.integer_or("steps", spec.steps, 1);
  spec.width_divisor = divisor_of(map);
  spec.layers = map.integer_or("layers", spec.layers, 1);
  spec.seq = map.integer_or("max_seq_len", spec.seq, 1);
  spec.routing = map.text("routing", "");
  spec.device = device_from_yaml(map);
  map.finish();
  return spec;
}

void rehearsal_to_yaml(const RehearsalSpec& spec, YAML::Emitter& out) {
  const auto key = [&](const char* name) -> YAML::Emitter& { return out << YAML::Key << name << YAML::Value; };
  out << YAML::BeginMap;
  key("rank") << spec.rank;
  key("steps") << spec.steps;
  if (spec.width_divisor > 0)
    key("width") << (spec.width_divisor == 1 ? "full" : fmt::format("1/{}", spec.width_divisor));
  if (spec.layers > 0) key("layers") << spec.layers;
  if (spec.seq > 0) key("max_seq_len") << spec.seq;
  if (!spec.routing.empty()) key("routing") << spec.routing;
  key("device") << to_string(spec.device);
  out << YAML::EndMap;
}

}  // namespace wt
