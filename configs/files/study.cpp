#include "configs/files/study.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/enum_words.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/check_lora.hpp"
#include "configs/files/data_sheet.hpp"
#include "configs/files/find.hpp"
#include "configs/files/limits.hpp"
#include "configs/files/measured_recovery.hpp"
#include "configs/files/stack.hpp"
#include "configs/files/study_options.hpp"

namespace wt {
namespace {

std::vector<std::string> words(YamlMap& map, const std::string& key, std::vector<std::string> fallback) {
  if (!map.has(key)) return fallback;
  return map.node(key).IsScalar() ? std::vector<std::string>{map.text(key)} : map.texts(key);
}

/// A time that simulated runs support.
double seconds(YamlMap& map, const std::string& key) {
  const double value = map.quantity(key, parse_seconds);
  if (!(value >= 0 && value < kLongest_s))
    map.fail(key, "found {}, needs a time below {:.3g} s (70 years)", map.text(key), kLongest_s);
  return value;
}

double positive_seconds(YamlMap& map, const std::string& key) {
  const double value = seconds(map, key);
  if (value == 0) map.fail(key, "found {}, needs a time above 0", map.text(key));
  return value;
}

void read_checkpoint(YamlMap& study, CheckpointSpec& c) {
  c.evidence = {Evidence::assumed,
                "Windtunnel: PCIe 5 x16 gives 50 GB/s at best, half of it while all GPUs of a node copy"};
  if (!study.has("checkpoint")) return;
  YamlMap map = study.map("checkpoint");
  c.bytes_per_parameter = map.number_or("bytes_per_parameter", c.bytes_per_parameter, 1.0, 64.0);
  if (map.has("copy_bandwidth")) c.copy_Bps = map.quantity("copy_bandwidth", parse_bytes_per_second);
  c.copy_given = map.has("copy_bandwidth") || map.has("source");
  if (c.copy_given) c.evidence = read_source(map);
  if (map.has("store")) {
    c.store = map.text("store");
    if (const std::size_t scheme = c.store.find("://");
        scheme == std::string::npos || scheme == 0 || scheme + 3 >= c.store.size() || c.store[scheme + 3] == '/')
      map.fail("store",
               "found '{}', needs the address of an object store, as s3://bucket/prefix; leave it out where saves go "
               "to a file system",
               c.store);
  }
  if (map.has("interval") && map.text("interval") != "auto") c.interval_s = positive_seconds(map, "interval");
  if (map.has("local")) {
    YamlMap local = map.map("local");
    c.local_every_s = positive_seconds(local, "every");
    c.local_survival = local.number("survival", 0.0, 0.999);
    c.local_evidence = read_source(local);
    local.finish();
  }
  map.finish();
}

void read_scale(YamlMap map, ScaleSpec& s) {
  for (auto [key, value] : {std::pair{"compute_rate", &s.compute_rate},
                            {"clock", &s.clock},
                            {"network_bandwidth", &s.network_bandwidth},
                            {"network_latency", &s.network_latency},
                            {"mtbf", &s.mtbf},
                            {"storage_bandwidth", &s.storage_bandwidth}})
    *value = map.number_or(key, *value, 1e-3, 1e3);
  s.imbalance = map.number_or("imbalance", s.imbalance, 0.0, 1e3);
  map.finish();
}

void read_maintenance(YamlMap map, MaintenanceSpec& m) {
  m.every_s = seconds(map, "every");
  m.duration_s = seconds(map, "duration");
  if (m.every_s < 3600) map.fail("every", "found {}, needs at least an hour", map.text("every"));
  if (!(m.duration_s >= 0 && m.duration_s < m.every_s))
    map.fail("duration", "found {} every {}, needs windows shorter than the time between them", map.text("duration"),
             map.text("every"));
  map.finish();
}

void read_silent_errors(YamlMap map, SilentErrorSpec& e) {
  e.rate = map.text("rate");
  e.verify_s = seconds(map, "verify");
  if (map.has("found_after")) {
    e.found_after_s = seconds(map, "found_after");
    if (!(e.found_after_s > 0)) map.fail("found_after", "needs a time above 0");
  }
  e.evidence = read_source(map);
  map.finish();
}

void read_drift(YamlMap map, DriftSpec& d) {
  d.loads = words(map, "loads", {});
  if (d.loads.empty()) map.fail("loads", "found none, needs histograms in the order of time, or a recording");
  d.every = map.integer("every", 1);
  if (map.has("pause")) d.pause_s = seconds(map, "pause");
  map.finish();
}

void read_replica_loss(YamlMap map, ReplicaLossSpec& r) {
  r.recover_s = positive_seconds(map, "recover");
  r.stall_s = seconds(map, "stall");
  r.evidence = read_source(map);
  map.finish();
}

void read_hot_spares(YamlMap map, HotSpareSpec& h) {
  h.activate_s = seconds(map, "activate");
  h.evidence = read_source(map);
  map.finish();
}

StudySpec read(YamlMap& map, const std::string& text) {
  StudySpec s;
  s.text = text;
  refuse_options(map);
  s.name = map.text("name", map.file().stem().string());
  s.model = model_of(map, &s.lora);
  s.cluster = cluster_of(map);
  if (map.has("measured")) {  // on the cluster of the file, whatever part of it the study has
    std::filesystem::path file = map.text("measured");
    std::error_code none;
    if (file.is_relative() && std::filesystem::exists(map.file().parent_path() / file, none))
      file = map.file().parent_path() / file;
    s.measured_file = std::filesystem::absolute(file).lexically_normal().string();
    s.measured = read_measured_steps(s.measured_file);
  }
  s.gpus = map.integer("gpus", 1, limits::kGpus);
  const std::int64_t per_node = s.cluster.gpus_per_node;
  if (s.gpus > per_node && s.gpus % per_node != 0)
    map.fail("gpus", "found {}, needs whole nodes of {} GPUs ({})", s.gpus, per_node, s.cluster.name);
  if (s.cluster.shared_cores() && s.gpus > per_node)
    map.fail("gpus", "found {}, cluster {} has {} ranks", s.gpus, s.cluster.name, per_node);
  s.cluster.set_nodes(std::max<std::int64_t>(1, s.gpus / per_node));
  if (map.has("oversubscription")) s.cluster.oversubscription = map.number("oversubscription", 1.0, 1e3);
  s.profiles = words(map, "profiles", {});
  s.stack = map.text("stack", s.cluster.shared_cores() ? "" : kDefaultStack);
  if (s.cluster.shared_cores() && !s.stack.empty())
    map.fail("stack", "found {} on {}, whose ranks share cores; needs profiles: published runs are of GPUs", s.stack,
             s.cluster.name);
  if (s.cluster.shared_cores() && s.profiles.empty())
    map.fail("profiles", "missing, needs one of {}: windtunnel bench or a training run writes it", s.cluster.gpu_name);
  s.tokens = map.quantity("tokens", parse_count);
  s.seq = map.integer("max_seq_len", 1, limits::kSequence);
  s.global_batch = map.integer("global_train_batch_size", 1, limits::kBatch);
  if (!(s.tokens >= 1 && s.tokens <= limits::kTokens))
    map.fail("tokens", "found {}, needs 1 to {:g}", map.text("tokens"), limits::kTokens);
  s.precision = precision_recipe(map.choice("precision", planned_precisions(), "amp_bf16"), "precision");
  s.routing = words(map, "routing", routing_for_model(s.model));
  if (s.routing.empty()) map.fail("routing", "found no loads, needs histograms, or balanced");
  if (map.has("drift")) read_drift(map.map("drift"), s.drift);
  s.failures = map.text("failures", kDefaultFailures);
  s.recovery = map.text("recovery", "");
  s.stragglers = map.text("stragglers", "none");
  if (map.has("maintenance")) read_maintenance(map.map("maintenance"), s.maintenance);
  if (map.has("silent_errors")) read_silent_errors(map.map("silent_errors"), s.silent_errors);
  if (map.has("replica_loss")) read_replica_loss(map.map("replica_loss"), s.replica_loss);
  if (map.has("hot_spares")) read_hot_spares(map.map("hot_spares"), s.hot_spares);
  s.faults = words(map, "faults", {});
  if (const auto adapters = s.adapters())  // fp32 masters of the whole model; two moments only of the adapters
    s.checkpoint.bytes_per_parameter =
        4 + 12 * static_cast<double>(adapters->elements()) / static_cast<double>(s.model.total_parameters());
  read_checkpoint(map, s.checkpoint);
  if (map.has("search")) s.search = search_from_yaml(map.map("search"));
  if (s.lora) check_lora(s.search, map.file().string());
  if (map.has("scale")) read_scale(map.map("scale"), s.scale);
  if (map.has("memory_reserve"))
    map.fail("memory_reserve",
             "is no key any more: the memory of a rank's process is predicted from published runs, and a layout fits "
             "where the probability that it takes more than the GPU has, or usable_memory where the cluster gives it, "
             "is at most search.memory_risk; drop the key");
  s.prices = map.has("prices") ? prices_from_yaml(map.map("prices")) : s.cluster.prices;
  s.prefer = map.enumerator("prefer", prefer_names(), s.prefer);
  if (map.has("spare_nodes")) s.spare_nodes = map.integer("spare_nodes", 0, kMostSpares);
  s.repair_s = map.quantity_or("repair_time", parse_seconds, s.repair_s);
  s.runs = map.integer_or("runs", s.runs, 1);
  s.seed = static_cast<std::uint64_t>(map.integer_or("seed", 1, 0));
  s.assumptions = words(map, "assumptions", {});
  s.data = map.text("data", "");
  map.finish();
  return s;
}

}  // namespace

const std::vector<std::string>& prefer_names() {
  static const std::vector<std::string> names{"days", "gpus", "money", "energy"};
  return names;
}

std::int64_t StudySpec::steps() const {
  return static_cast<std::int64_t>(std::ceil(tokens / static_cast<double>(tokens_per_step())));
}

StudySpec study_from_text(const std::string& text, const std::string& origin, std::set<std::string>* asked) {
  YamlMap map = YamlMap::from_text(text, origin);
  StudySpec study = read(map, text);
  if (asked) *asked = map.asked();
  return study;
}

StudySpec read_study(const std::string& name_or_file) {
  const std::filesystem::path file = find_config("studies", name_or_file);
  return study_from_text(read_file(file, "a study file"), file.string());
}

std::vector<std::string> profiles_for_gpu(const std::string& gpu_name) {
  std::vector<std::string> found;
  const std::optional<DataSheet> wanted = data_sheet(gpu_name);
  if (!wanted) return found;
  for (const std::string& name : preset_names("profiles")) {
    const nlohmann::json document = read_json(find_config("profiles", name));
    const std::string device = document.value("/fingerprint/device"_json_pointer, "");
    if (const auto sheet = data_sheet(device); sheet && sheet->name == wanted->name) found.push_back(name);
  }
  return found;
}

std::vector<std::string> routing_for_model(const ModelSpec& model) {
  if (model.experts == 0) return {"balanced"};
  const double capacity = model.router.capacity_factor;
  return {capacity < 1 ? "trained" : fmt::format("capacity-{}", capacity)};
}

FailurePreset failures_of(const StudySpec& study, const std::string& rates) {
  FailurePreset out = read_failures(rates);
  if (!study.recovery.empty()) out.recovery = read_measured_recovery(study.recovery).times;
  return out;
}

}  // namespace wt
