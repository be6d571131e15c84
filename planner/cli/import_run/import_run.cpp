// windtunnel import-run: converts another framework's job to a run file, for simulation and planning.
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "configs/files/model_words.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/recipes/recipe.hpp"

namespace wt {
namespace {

struct Options {
  std::string file, format, model, output;
  std::optional<std::int64_t> gpus, vocab, seq_len;
  std::vector<std::string> variables;
  bool json = false, evaluate = false;
};

/// What the run does not take over, the most important first.
std::vector<std::string> lines_of(const ImportedRun& imported) {
  std::vector<std::string> out;
  for (const auto& [list, name] : {std::pair{&imported.assumed, "assumed"},
                                   {&imported.learning, "changes learning alone"},
                                   {&imported.ignored, "ignored"}})
    for (const std::string& what : *list) out.push_back(fmt::format("{}: {}", name, what));
  return out;
}

std::string run_file_text(const ImportedRun& imported, const std::string& file) {
  std::string out = fmt::format("# From {}, {}; read by windtunnel import-run.\n", file, to_string(imported.format));
  for (const std::string& line : lines_of(imported)) out += "# " + line + "\n";
  return out + run_to_yaml(imported.run) + "\n";
}

/// NAME=VALUE each.
std::map<std::string, std::string> variables_of(const std::vector<std::string>& words) {
  std::map<std::string, std::string> out;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      throw_usage("--env: found '{}', needs NAME=VALUE, such as --env NNODES=4", word);
    out[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return out;
}

void import_job(const Options& o) {
  RecipeSource source;
  if (!o.format.empty()) source.format = recipe_format_from_string(o.format, "--from");
  source.model = o.model;
  source.gpus = o.gpus.value_or(0), source.vocab = o.vocab.value_or(0), source.seq_len = o.seq_len.value_or(0);
  source.variables = variables_of(o.variables), source.file = file_beside, source.evaluate = o.evaluate;
  const std::string text = read_file(o.file, "a TOML, YAML or shell file of a trainer");
  const ImportedRun imported = import_run(text, o.file, source);
  if (o.json) {
    const nlohmann::json document{{"schema", "windtunnel.import-run/1"}, {"format", to_string(imported.format)},
                                  {"run", run_to_yaml(imported.run)},    {"layout", imported.run.layout.name()},
                                  {"gpus", imported.run.layout.world()}, {"assumed", imported.assumed},
                                  {"learning", imported.learning},       {"ignored", imported.ignored}};
    put_document(document.dump(2), o.output);
    return;
  }
  put_document(run_file_text(imported, o.file), o.output);
  fmt::print(stderr, "{} on {} GPUs: {}\n", imported.run.name, imported.run.layout.world(), imported.run.layout.name());
  fmt::print(stderr, "{}", model_lines(imported.run.model));
  for (const std::string& line : lines_of(imported)) fmt::print(stderr, "{}\n", line);
}

}  // namespace

void add_import_run(CLI::App& app) {
  const Command command(app, "import-run",
                        "Read a job of another framework as a run file\n"
                        "Example: windtunnel import-run pretrain.sh --gpus 256 -o run.yaml");
  const auto o = command.runs(import_job);
  command.option("FILE", o->file, "Launch script or flags, YAML, or TOML of a trainer").required();
  command.option("--from", o->format,
                 fmt::format("What it is, if it does not look like it: {}", fmt::join(recipe_format_names(), ", ")));
  command.option("--model", o->model, "Model, where the file names none: of configs/models, a repository, or a file");
  command.option("--gpus", o->gpus, "GPUs, where the file does not say how many").between(std::int64_t{1}, INT64_MAX);
  command.option("--vocab", o->vocab, "Tokens of the tokenizer, where the file does not say how many")
      .between(std::int64_t{2}, INT64_MAX);
  command.option("--seq-len", o->seq_len, "Tokens of a sequence, where the file does not say how many")
      .between(std::int64_t{1}, INT64_MAX);
  command.option("--env", o->variables, "NAME=VALUE of a script's environment; may be repeated");
  command.flag("--evaluate", o->evaluate,
               "Run a script under bash, with stubs for what it starts, instead of reading it");
  command.output(o->output, Output::file, "Run file to write instead of standard output");
  command.flag("--json", o->json,
               "Print one JSON document: the run, and what was assumed, changes learning alone, or is ignored");
}

}  // namespace wt
