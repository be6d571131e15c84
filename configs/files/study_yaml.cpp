// Writes a study with the defaults of keys that its file omits.
#include <yaml-cpp/yaml.h>

#include "configs/base/error.hpp"
#include "configs/files/study.hpp"

namespace wt {
namespace {

/// The shortest text that reads back as the same number.
std::string text(double value, const char* unit = "") { return fmt::format("{}{}", value, unit); }

template <typename T>
void fill(YAML::Node map, const char* key, const T& value) {
  if (!map[key].IsDefined() || map[key].IsNull()) map[key] = value;
}

YAML::Node section(YAML::Node root, const char* key) {
  fill(root, key, YAML::Node(YAML::NodeType::Map));
  return root[key];
}

}  // namespace

std::string study_yaml(const StudySpec& s) {
  YAML::Node root = YAML::Load(s.text);
  fill(root, "name", s.name);
  fill(root, "oversubscription", text(s.cluster.oversubscription));
  root["profiles"] = s.profiles;
  if (!s.stack.empty()) root["stack"] = s.stack;
  if (!s.measured_file.empty()) root["measured"] = s.measured_file;
  fill(root, "precision", s.precision.word);
  fill(root, "routing", s.routing);
  fill(root, "failures", s.failures);
  fill(root, "stragglers", s.stragglers);
  YAML::Node checkpoint = section(root, "checkpoint");
  fill(checkpoint, "bytes_per_parameter", text(s.checkpoint.bytes_per_parameter));
  fill(checkpoint, "copy_bandwidth", text(s.checkpoint.copy_Bps / 1e9, "GB/s"));
  fill(checkpoint, "source", to_string(s.checkpoint.evidence));
  fill(checkpoint, "interval", "auto");
  YAML::Node search = section(root, "search");
  for (const std::string& axis : search_axes()) fill(search, axis.c_str(), "auto");
  fill(search, "simulations", s.search.simulations);
  fill(search, "tie", text(s.search.tie));
  fill(search, "memory_risk", text(s.search.memory_risk));
  YAML::Node scale = section(root, "scale");
  for (const auto& [key, value] : {std::pair{"compute_rate", s.scale.compute_rate},
                                   {"clock", s.scale.clock},
                                   {"network_bandwidth", s.scale.network_bandwidth},
                                   {"network_latency", s.scale.network_latency},
                                   {"imbalance", s.scale.imbalance},
                                   {"mtbf", s.scale.mtbf},
                                   {"storage_bandwidth", s.scale.storage_bandwidth}})
    fill(scale, key, text(value));
  fill(root, "prefer", prefer_names().at(static_cast<std::size_t>(s.prefer)));
  fill(root, "repair_time", text(s.repair_s, "s"));
  fill(root, "runs", s.runs);
  fill(root, "seed", s.seed);
  if (!s.data.empty()) fill(root, "data", s.data.string());
  YAML::Emitter out;
  out << root;
  return "# Every key that this plan was made with; what the study left out is at its default.\n" +
         std::string(out.c_str()) + "\n";
}

}  // namespace wt
