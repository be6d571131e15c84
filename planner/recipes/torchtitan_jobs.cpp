#include "planner/recipes/torchtitan_jobs.hpp"

#include <fmt/format.h>

#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "planner/recipes/job_command.hpp"

namespace wt {
namespace {

constexpr std::int64_t kUsualGpus = 8;   // NGPU of run_train.sh
constexpr std::int64_t kLossChunks = 8;  // ChunkedLossWrapper (components/loss.py of 0.3.0)

/// What planner/recipes/words/torchtitan_jobs.py read out of 0.3.0.
const nlohmann::json& published_jobs() {
  static const nlohmann::json all = [] {
    const std::filesystem::path file = configs_folder() / "words" / "torchtitan_jobs.json";
    nlohmann::json document = nlohmann::json::parse(read_file(file, "torchtitan's jobs"), nullptr, false);
    if (!document.is_object() || !document.contains("jobs"))
      throw_usage("{}: found other text, needs what planner/recipes/words/torchtitan_jobs.py prints", file.string());
    return document;
  }();
  return all;
}

std::string last_part(const std::string& module) { return module.substr(module.rfind('.') + 1); }

Settings published_job(const JobCommand& command, const std::string& origin) {
  const nlohmann::json& jobs = published_jobs().at("jobs");
  const std::string name = last_part(command.module) + "/" + command.config;
  if (!jobs.contains(name)) {
    std::vector<std::string> names;
    for (const auto& [known, job] : jobs.items()) names.push_back(known);
    throw_usage(
        "{}: found --module {} --config {}, which is no language model's job of {}{}; needs one, or a TOML file that "
        "says "
        "the same in the words of 0.2.2",
        origin, command.module, command.config, published_jobs().value("version", ""), did_you_mean(name, names));
  }
  Settings out(origin);
  const nlohmann::json& job = jobs.at(name);
  for (const auto& [key, value] : job.at("words").items())
    if (key != "loss.chunked") out.put(key, value);
  if (job.at("words").value("loss.chunked", false)) out.put("loss.chunks", kLossChunks);
  if (job.contains("unread"))
    for (const nlohmann::json& line : job.at("unread"))
      out.note(fmt::format("{}: not read: {}", name, line.get<std::string>()));
  return out;
}

}  // namespace

Settings settings_of_titan_command(const std::string& text, const std::string& origin, const RecipeSource& source) {
  const JobCommand command = job_command(text, origin, source);
  if (command.file.empty() && command.config.empty())
    throw_usage(
        "{}: found torchtitan's command without its job, needs CONFIG_FILE or --job.config_file (0.2), or --module and "
        "--config (0.3)",
        origin);
  Settings out = command.file.empty() ? published_job(command, origin)
                                      : settings_from_toml(text_of_job(command, origin, source), command.file);
  put_overrides(command, out);
  if (command.gpus > 0) out.put("launch.gpus", command.gpus);
  if (command.gpus == 0 && source.gpus == 0 && out.peek("parallelism.data_parallel_shard_degree").is_null() &&
      text.find("run_train.sh") != std::string::npos) {
    out.put("launch.gpus", kUsualGpus);
    out.note("NGPU: found none, which means 8 in run_train.sh; --gpus N changes it");
  }
  return out;
}

}  // namespace wt
