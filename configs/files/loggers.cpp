#include "configs/files/loggers.hpp"

#include "configs/base/error.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

MlflowSpec read_mlflow(YamlMap map) {
  MlflowSpec spec;
  if (map.has("tracking_uri")) {
    spec.tracking_uri = map.text("tracking_uri");
    check_tracking_uri(spec.tracking_uri, map.where("tracking_uri"));
  }
  spec.experiment_name = map.text("experiment_name", "");
  spec.run_name = map.text("run_name", "");
  if (map.has("tags")) {
    const YAML::Node tags = map.node("tags");
    if (!tags.IsMap()) map.fail("tags", "needs a map of words, such as {team: moe}");
    for (const auto& tag : tags) {
      if (!tag.second.IsScalar()) map.fail("tags", "needs one word for each tag, such as {team: moe}");
      spec.tags[tag.first.as<std::string>()] = tag.second.Scalar();
    }
  }
  map.finish();
  return spec;
}

TensorboardSpec read_tensorboard(YamlMap map) {
  TensorboardSpec spec;
  spec.log_dir = map.text("log_dir", spec.log_dir.string());
  if (spec.log_dir.empty())
    map.fail("log_dir", "found nothing, needs a folder; leave the key out for tensorboard_logs");
  map.finish();
  return spec;
}

PrometheusSpec read_prometheus(YamlMap map) {
  PrometheusSpec spec;
  spec.textfile_directory = map.text("textfile_directory", spec.textfile_directory.string());
  if (spec.textfile_directory.empty())
    map.fail("textfile_directory", "found nothing, needs the folder that node_exporter reads; leave the key out for " +
                                       PrometheusSpec{}.textfile_directory.string());
  map.finish();
  return spec;
}

}  // namespace

void check_tracking_uri(const std::string& uri, const std::string& where) {
  const bool tls = uri.starts_with("https://"), plain = uri.starts_with("http://");
  const std::string rest = uri.substr(tls ? 8 : plain ? 7 : 0), authority = rest.substr(0, rest.find_first_of("/?#"));
  if (uri.find('@') != std::string::npos)
    throw_usage(
        "{}: found a user or a password in the address (not repeated here), allowed is none in a file; set "
        "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, in the environment",
        where);
  if (rest.find_first_of("?#") != std::string::npos)
    throw_usage(
        "{}: found an address with a query or a fragment, allowed is https://HOST[:PORT][/PATH]; leave them out",
        where);
  const bool graphic = std::ranges::all_of(uri, [](char c) { return c > ' ' && c < 0x7f; });
  if ((!tls && !plain) || authority.empty() || !graphic)
    throw_usage(
        "{}: found '{}', allowed is the address of an MLflow server, http://HOST:PORT or https://HOST; start one with "
        "`mlflow server` (folders of runs, and databricks, are not supported)",
        where, graphic ? uri : "blanks or control characters");
}

LoggersSpec read_loggers(YamlMap& map) {
  LoggersSpec spec;
  if (!map.has("loggers")) return spec;
  YamlMap m = map.map("loggers");
  const YAML::Node all = map.node("loggers");
  if (!all.IsMap()) map.fail("loggers", "needs a map, such as {tensorboard: {}}");
  if (all["wandb"].IsDefined())
    map.fail("loggers",
             "found wandb, allowed are mlflow, prometheus, tensorboard; log to tensorboard, and send its folder with "
             "`wandb sync --sync-tensorboard FOLDER`");
  // A logger without keys is written `tensorboard:` or `tensorboard: {}`.
  const auto section = [&](const std::string& name) {
    return m.has(name) ? m.map(name) : YamlMap::from_text("{}", map.where("loggers"));
  };
  const auto named = [&](const std::string& name) { return m.has(name) || all[name].IsDefined(); };
  if (named("mlflow")) spec.mlflow = read_mlflow(section("mlflow"));
  if (named("tensorboard")) spec.tensorboard = read_tensorboard(section("tensorboard"));
  if (named("prometheus")) spec.prometheus = read_prometheus(section("prometheus"));
  m.finish();
  return spec;
}

void loggers_to_yaml(const LoggersSpec& spec, YAML::Emitter& out) {
  if (!spec.any()) return;
  const auto key = [&](const char* name) -> YAML::Emitter& { return out << YAML::Key << name << YAML::Value; };
  key("loggers") << YAML::BeginMap;
  if (const auto& m = spec.mlflow) {
    key("mlflow") << YAML::BeginMap;
    if (!m->tracking_uri.empty()) key("tracking_uri") << m->tracking_uri;
    if (!m->experiment_name.empty()) key("experiment_name") << m->experiment_name;
    if (!m->run_name.empty()) key("run_name") << m->run_name;
    if (!m->tags.empty()) {
      key("tags") << YAML::BeginMap;
      for (const auto& [name, value] : m->tags) out << YAML::Key << name << YAML::Value << YAML::DoubleQuoted << value;
      out << YAML::EndMap;
    }
    out << YAML::EndMap;
  }
  if (const auto& t = spec.tensorboard) {
    key("tensorboard") << YAML::BeginMap;
    key("log_dir") << t->log_dir.string() << YAML::EndMap;
  }
  if (const auto& p = spec.prometheus) {
    key("prometheus") << YAML::BeginMap;
    key("textfile_directory") << p->textfile_directory.string() << YAML::EndMap;
  }
  out << YAML::EndMap;
}

}  // namespace wt
