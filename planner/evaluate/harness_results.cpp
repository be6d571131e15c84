#include "planner/evaluate/harness_results.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/parsed.hpp"

namespace wt {
namespace {

using nlohmann::json;

constexpr std::string_view kStandardError = "_stderr";

std::optional<std::int64_t> whole_number(const std::string& text) {
  const auto number = parsed<std::int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

/// A task's entry in one of lm-eval's maps; null if there is none.
json entry(const json& document, const char* map, const std::string& task) {
  const auto found = document.find(map);
  if (found == document.end() || !found->is_object() || !found->contains(task)) return {};
  return found->at(task);
}

/// "acc,none" -> acc, none; "acc_stderr,none" -> acc_stderr, none.
std::pair<std::string, std::string> metric_and_filter(const std::string& key) {
  const std::size_t comma = key.find(',');
  return {key.substr(0, comma), comma == std::string::npos ? "" : key.substr(comma + 1)};
}

/// The tasks of a group, with those of its subgroups.
std::vector<std::string> tasks_of_group(const json& document, const std::string& name, int depth = 0) {
  const json below = entry(document, "group_subtasks", name);
  if (!below.is_array() || below.empty() || depth > 16) return {name};
  std::vector<std::string> out;
  for (const json& each : below)
    for (const std::string& task : tasks_of_group(document, each.is_string() ? each.get<std::string>() : "", depth + 1))
      out.push_back(task);
  return out;
}

std::optional<std::int64_t> shots_of(const json& document, const std::string& name) {
  std::optional<std::int64_t> shots;
  for (const std::string& task : tasks_of_group(document, name)) {
    const json each = entry(document, "n-shot", task);
    if (!each.is_number_integer()) return std::nullopt;
    if (shots && *shots != each.get<std::int64_t>()) return std::nullopt;
    shots = each.get<std::int64_t>();
  }
  return shots;
}

std::optional<std::int64_t> samples_of(const json& document, const std::string& name) {
  std::int64_t samples = 0;
  for (const std::string& task : tasks_of_group(document, name)) {
    const json each = entry(document, "n-samples", task);
    if (!each.is_object() || !each.contains("effective") || !each["effective"].is_number_integer()) return std::nullopt;
    samples += each["effective"].get<std::int64_t>();
  }
  return samples;
}

std::string text_of(const json& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string model_of(const json& document) {
  if (const std::string name = text_of(document, "model_name"); !name.empty()) return name;
  const auto config = document.find("config");
  return config != document.end() && config->is_object() ? text_of(*config, "model_args") : "";
}

Evaluation from_lm_eval(const json& document, const std::string& origin) {
  Evaluation out;
  out.version = text_of(document, "lm_eval_version");
  out.model = model_of(document);
  for (const auto& [task, values] : JsonReader(document, origin).at("results").items()) {
    for (const auto& [key, value] : values.items()) {
      const auto [metric, filter] = metric_and_filter(key);
      // Other entries are texts ("alias", "N/A"), and newer keys without a filter, such as sample_len.
      if (filter.empty() || metric.ends_with(kStandardError) || !value.value().is_number()) continue;
      const std::string error = metric + std::string(kStandardError) + "," + filter;
      TaskScore score{.task = task,
                      .subset = {},
                      .metric = metric,
                      .filter = filter,
                      .shots = shots_of(document, task),
                      .value = value.finite(),
                      .standard_error = {},
                      .samples = samples_of(document, task),
                      .higher_is_better = {}};
      if (values.has(error) && values.at(error).value().is_number()) score.standard_error = values.at(error).finite();
      const json better = entry(document, "higher_is_better", task);
      if (better.is_object() && better.contains(metric) && better[metric].is_boolean())
        score.higher_is_better = better[metric].get<bool>();
      out.scores.push_back(score);
    }
  }
  return out;
}

/// "metrics/TASK/N-shot/METRIC" or "metrics/TASK/N-shot/SUBSET/METRIC".
std::optional<TaskScore> composer_score(const std::string& key) {
  std::vector<std::string> parts{""};
  for (const char c : key)
    if (c == '/')
      parts.emplace_back();
    else
      parts.back() += c;
  constexpr std::string_view kShot = "-shot";
  if (parts.size() < 4 || parts.size() > 5 || parts[0] != "metrics" || !parts[2].ends_with(kShot)) return std::nullopt;
  TaskScore score;
  score.task = parts[1], score.metric = parts.back(), score.subset = parts.size() == 5 ? parts[3] : "";
  score.shots = whole_number(parts[2].substr(0, parts[2].size() - kShot.size()));
  return score.shots ? std::optional(score) : std::nullopt;
}

Evaluation from_composer(const json& document, const std::string& origin) {
  Evaluation out;
  out.harness = Evaluation::Harness::composer;
  for (const auto& [key, value] : JsonReader(document, origin).items())
    if (std::optional<TaskScore> score = composer_score(key)) {
      score->value = value.finite();
      out.scores.push_back(*score);
    }
  return out;
}

auto order_of(const TaskScore& s) { return std::tie(s.task, s.subset, s.metric, s.filter, s.shots); }

/// Sorts the scores. Throws if one occurs twice.
void arrange(Evaluation& evaluation, const std::string& origin) {
  std::ranges::sort(evaluation.scores,
                    [](const TaskScore& a, const TaskScore& b) { return order_of(a) < order_of(b); });
  const auto twice = std::adjacent_find(evaluation.scores.begin(), evaluation.scores.end(),
                                        [](const auto& a, const auto& b) { return order_of(a) == order_of(b); });
  if (twice != evaluation.scores.end())
    throw_usage("{}: found {} of {} twice, allowed is one value; give each result once", origin,
                twice->metric_and_filter(), twice->name());
}

}  // namespace

Evaluation evaluation_from_results(const json& document, const std::string& origin) {
  const bool lm_eval = document.is_object() && document.contains("results");
  if (!document.is_object())
    throw_usage("{}: found no object, needs lm-eval's results_*.json or metrics of LLM Foundry", origin);
  Evaluation out = lm_eval ? from_lm_eval(document, origin) : from_composer(document, origin);
  if (out.scores.empty())
    throw_usage(
        "{}: found no score, needs lm-eval's results_*.json (results: {{task: {{\"acc,none\": 0.5}}}}) or metrics of "
        "LLM Foundry (\"metrics/copa/0-shot/...\": 0.5)",
        origin);
  out.files = {origin};
  arrange(out, origin);
  return out;
}

Evaluation read_results(const std::vector<std::filesystem::path>& files) {
  if (files.empty()) throw_usage("no results: needs at least one file, as results_*.json");
  std::optional<Evaluation> all;
  for (const std::filesystem::path& file : files) {
    Evaluation each = evaluation_from_results(read_json(file), file.string());
    if (!all) {
      all = std::move(each);
      continue;
    }
    if (each.harness != all->harness || each.model != all->model)
      throw_usage(
          "{}: found scores of {} of model '{}', the files before it are of {} of model '{}'; give files of one "
          "harness and one model",
          file.string(), to_string(each.harness), each.model, to_string(all->harness), all->model);
    all->scores.insert(all->scores.end(), each.scores.begin(), each.scores.end());
    all->files.push_back(file.string());
    arrange(*all, file.string());
  }
  return *all;
}

}  // namespace wt
