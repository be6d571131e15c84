#include "planner/evaluate/evaluation.hpp"

#include "configs/base/json_members.hpp"
#include "configs/base/json_reader.hpp"

namespace wt {

using nlohmann::json;

static void to_json(json& out, const BenchmarkScore& b) {
  out = {{"name", b.name},   {"num_fewshot", b.shots}, {"metric", b.metric}, {"random_baseline", b.baseline},
         {"value", b.value}, {"score", b.score},       {"weight", b.weight}};
}
WT_TO_JSON(CategoryScore, name, score, benchmarks, missing)
WT_TO_JSON(NamedAverage, name, score, categories, missing)
WT_TO_JSON(GauntletScores, weighting, categories, averages)
static void to_json(json& out, const TaskScore& s) {
  out = {{"task", s.task},
         {"subset", s.subset},
         {"metric", s.metric},
         {"filter", s.filter},
         {"num_fewshot", s.shots},
         {"value", s.value},
         {"stderr", s.standard_error},
         {"samples", s.samples},
         {"higher_is_better", s.higher_is_better}};
}

namespace {

bool is_null(const JsonReader& at) { return at.value().is_null(); }
std::optional<double> number_or_none(const JsonReader& at) {
  return is_null(at) ? std::nullopt : std::optional(at.finite());
}
std::optional<std::int64_t> integer_or_none(const JsonReader& at) {
  return is_null(at) ? std::nullopt : std::optional(at.integer());
}
std::optional<bool> boolean_or_none(const JsonReader& at) {
  return is_null(at) ? std::nullopt : std::optional(at.boolean());
}

GauntletScores gauntlet_from_json(const JsonReader& at) {
  at.allow_only({"weighting", "categories", "averages"});
  GauntletScores out{.weighting = at.at("weighting").string(), .categories = {}, .averages = {}};
  for (const JsonReader& category : at.at("categories").elements()) {
    category.allow_only({"name", "score", "benchmarks", "missing"});
    CategoryScore& to = out.categories.emplace_back();
    to.name = category.at("name").string(), to.score = number_or_none(category.at("score"));
    to.missing = category.at("missing").strings();
    for (const JsonReader& b : category.at("benchmarks").elements()) {
      b.allow_only({"name", "num_fewshot", "metric", "random_baseline", "value", "score", "weight"});
      to.benchmarks.push_back({b.at("name").string(), b.at("metric").string(), b.at("num_fewshot").integer(),
                               b.at("random_baseline").finite(), b.at("value").finite(), b.at("score").finite(),
                               b.at("weight").finite()});
    }
  }
  for (const JsonReader& average : at.at("averages").elements()) {
    average.allow_only({"name", "score", "categories", "missing"});
    out.averages.push_back({average.at("name").string(), number_or_none(average.at("score")),
                            average.at("categories").strings(), average.at("missing").strings()});
  }
  return out;
}

constexpr const char* kLmEval = "lm-eval";
constexpr const char* kFoundry = "LLM Foundry";

}  // namespace

std::string to_string(Evaluation::Harness harness) {
  return harness == Evaluation::Harness::lm_eval ? kLmEval : kFoundry;
}

std::string TaskScore::metric_and_filter() const {
  return filter.empty() || filter == "none" ? metric : metric + "," + filter;
}

json evaluation_json(const Evaluation& evaluation) {
  return {{"schema", kEvaluationSchema},    {"harness", to_string(evaluation.harness)},
          {"version", evaluation.version},  {"model", evaluation.model},
          {"files", evaluation.files},      {"scores", evaluation.scores},
          {"gauntlet", evaluation.gauntlet}};
}

Evaluation evaluation_from_json(const json& document, const std::string& origin) {
  const JsonReader root(document, origin);
  root.allow_only({"schema", "harness", "version", "model", "files", "scores", "gauntlet"});
  if (root.at("schema").string() != kEvaluationSchema)
    root.at("schema").fail(root.at("schema").string(), kEvaluationSchema);
  Evaluation out;
  const std::string harness = root.at("harness").string();
  if (harness == kFoundry)
    out.harness = Evaluation::Harness::composer;
  else if (harness != kLmEval)
    root.at("harness").fail(harness, std::string(kLmEval) + " and " + kFoundry);
  out.version = root.at("version").string(), out.model = root.at("model").string();
  out.files = root.at("files").strings();
  for (const JsonReader& at : root.at("scores").elements()) {
    at.allow_only(
        {"task", "subset", "metric", "filter", "num_fewshot", "value", "stderr", "samples", "higher_is_better"});
    out.scores.push_back({at.at("task").string(), at.at("subset").string(), at.at("metric").string(),
                          at.at("filter").string(), integer_or_none(at.at("num_fewshot")), at.at("value").finite(),
                          number_or_none(at.at("stderr")), integer_or_none(at.at("samples")),
                          boolean_or_none(at.at("higher_is_better"))});
  }
  if (!is_null(root.at("gauntlet"))) out.gauntlet = gauntlet_from_json(root.at("gauntlet"));
  return out;
}

std::optional<Evaluation> kept_evaluation(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kEvaluationFile;
  if (!std::filesystem::exists(file)) return std::nullopt;
  return evaluation_from_json(read_json(file), file.string());
}

}  // namespace wt
