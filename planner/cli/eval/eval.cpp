// windtunnel eval: scores an exported model with lm-eval, and averages results like the Gauntlet.
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "planner/cli/eval/evaluation_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/evaluate/evaluation_metrics.hpp"
#include "planner/evaluate/harness_results.hpp"
#include "planner/evaluate/lm_eval.hpp"
#include "reports/render/render.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/run_folder/run_history.hpp"
#include "trainer/trackers/track_scores.hpp"

namespace wt {
namespace {

struct Options {
  std::vector<std::string> what, tasks, results;
  std::string output;
  bool json = false;
};

/// A folder and an evaluation file, in any order; either may be missing.
struct Asked {
  std::string folder, file;
};

Asked asked_for(const Options& o) {
  Asked out;
  for (const std::string& word : o.what) {
    const bool folder = std::filesystem::is_directory(word);
    std::string& to = folder ? out.folder : out.file;
    if (!folder && !std::filesystem::exists(word))
      throw_usage(
          "{}: found neither a folder nor a file, needs a folder of a run or of exported weights, or an evaluation "
          "file",
          word);
    if (!to.empty()) throw_usage("found {} and {}, allowed is one folder and one evaluation file", to, word);
    to = word;
  }
  return out;
}

Evaluation scores_of(const Options& o, const Asked& asked, const HarnessSpec& spec) {
  if (!o.results.empty()) return read_results({o.results.begin(), o.results.end()});
  if (asked.folder.empty())
    throw_usage(
        "found no folder and no --results, needs a folder of a run or of exported weights, or results that are there "
        "already");
  if (spec.tasks.empty())
    throw_usage(
        "found no tasks, needs names of lm-eval's tasks: --tasks lambada_openai, or tasks: in an evaluation file; "
        "lm_eval ls tasks lists them");
  const std::filesystem::path weights = find_weights(asked.folder);
  fmt::print(stderr, "lm-eval scores {}; its words go to {}/lm_eval.log\n", weights.string(), asked.folder);
  return run_lm_eval(spec, weights, asked.folder);
}

/// Sends scores to the trackers of the run file, if the folder is a run's. Errors are printed and otherwise ignored.
void track(const Evaluation& evaluation, const std::filesystem::path& folder) try {
  if (!std::filesystem::exists(folder / kRunFile)) return;
  const RunSpec run = read_run(folder / kRunFile);
  if (!run.loggers.any()) return;
  const RunHistory history = read_run_history(folder);
  const std::int64_t step = history.steps.empty() ? 0 : history.steps.back().step;
  for (const std::string& line : track_scores(run, folder, step, evaluation_metrics(evaluation)))
    fmt::print(stderr, "{}\n", line);
} catch (const Error& error) {
  fmt::print(stderr, "{}: logged no scores: {}\n", folder.string(), error.what());
}

void evaluate(const Options& o) {
  const Asked asked = asked_for(o);
  HarnessSpec spec;
  if (!asked.file.empty()) spec = read_evaluation_file(asked.file);
  if (!o.tasks.empty()) spec.tasks = o.tasks;
  if (!o.output.empty()) check_report_file(o.output);
  Evaluation evaluation = scores_of(o, asked, spec);
  if (!asked.folder.empty())  // before the gauntlet may refuse them: scores can take hours
    write_file_atomically(std::filesystem::path(asked.folder) / kEvaluationFile,
                          json_text(evaluation_json(evaluation)));
  if (spec.gauntlet) {
    evaluation.gauntlet = gauntlet_scores(*spec.gauntlet, evaluation);
    if (!asked.folder.empty())
      write_file_atomically(std::filesystem::path(asked.folder) / kEvaluationFile,
                            json_text(evaluation_json(evaluation)));
  }
  if (!asked.folder.empty()) track(evaluation, asked.folder);
  Report report = evaluation_report(evaluation);
  report.provenance = provenance();
  if (o.json || o.output.empty()) put_report(report, o.json);
  if (!o.output.empty()) write_report_file(report, o.output);
  if (!asked.folder.empty()) fmt::print(stderr, "wrote {}/{}\n", asked.folder, kEvaluationFile);
}

}  // namespace

void add_eval(CLI::App& app) {
  const Command command(app, "eval",
                        "Score exported weights with lm-eval, and average scores as LLM Foundry's Gauntlet\n"
                        "Example: windtunnel eval out/train/export --tasks lambada_openai hellaswag");
  const auto o = command.runs(evaluate);
  command.option("WHAT", o->what, "Folder of a run or of exported weights; evaluation file (YAML)");
  command.option("--tasks", o->tasks, "Names of lm-eval's tasks");
  command.option("--results", o->results,
                 "Results that are there already: results_*.json of lm-eval, or metrics of LLM Foundry");
  command.output(o->output, Output::file, "Report to write: .html, .md, .json or .txt");
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
