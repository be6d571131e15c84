#include "planner/evaluate/lm_eval.hpp"

#include <fmt/ranges.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/process.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/run_hook.hpp"
#include "configs/base/scratch_folder.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "planner/evaluate/harness_results.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInstall =
    "python3 -m pip install 'lm_eval[hf]', or name an interpreter that has it in WINDTUNNEL_PYTHON";

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out{""};
  for (const char c : text)
    if (c == at)
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

bool has_weights(const fs::path& folder) {
  if (!fs::exists(folder / "config.json")) return false;
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"})
    if (fs::exists(folder / name)) return true;
  return false;
}

/// The last lines of the log, without those of earlier calls.
std::string end_of_log(const fs::path& log, std::uintmax_t from) {
  std::ifstream in(log);
  constexpr std::uintmax_t kShown = 2000;
  const std::uintmax_t size = fs::file_size(log);
  in.seekg(static_cast<std::streamoff>(std::max(from, size > kShown ? size - kShown : 0)));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

/// results_*.json in a folder and its subfolders, by name.
std::vector<fs::path> results_below(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& each : fs::recursive_directory_iterator(folder))
    if (const std::string name = each.path().filename().string();
        each.is_regular_file() && name.starts_with("results_") && name.ends_with(".json"))
      out.push_back(each.path());
  std::ranges::sort(out);
  return out;
}

/// Unreadable results are a failure of lm-eval, not of the user.
Evaluation read_own_results(const std::vector<fs::path>& results, const fs::path& log) {
  try {
    return read_results(results);
  } catch (const Error& e) {
    throw_runtime("lm-eval left results that cannot be read: {}; its words are in {}", e.what(), log.string());
  }
}

}  // namespace

HarnessSpec read_evaluation_file(const std::filesystem::path& file) {
  YamlMap at = YamlMap::from_file(file);
  HarnessSpec out;
  out.tasks = at.texts("tasks");
  if (at.has("tasks") && out.tasks.empty()) at.fail("tasks", "found an empty list, needs names of lm-eval's tasks");
  if (at.has("include_path")) {
    out.include_path = file.parent_path() / at.text("include_path");
    if (!std::filesystem::is_directory(out.include_path))
      at.fail("include_path", "found " + out.include_path.string() + ", needs a folder with task files of lm-eval");
  }
  out.model = at.choice("model", {"hf", "vllm"}, out.model);
  out.dtype = at.choice("dtype", {"auto", "float32", "bfloat16", "float16"}, out.dtype);
  out.device = at.text("device", "");
  out.batch_size = at.text("batch_size", out.batch_size);
  if (at.has("batch_size") && out.batch_size != "auto") out.batch_size = std::to_string(at.integer("batch_size", 1));
  if (at.has("num_fewshot")) out.shots = at.integer("num_fewshot", 0);
  if (at.has("limit")) out.limit = at.integer("limit", 1);
  out.timeout_s = at.quantity_or("timeout", parse_seconds, out.timeout_s);
  if (!(out.timeout_s > 0)) at.fail("timeout", "found " + at.text("timeout") + ", needs a time above 0, as 2h");
  if (at.has("eval_gauntlet")) out.gauntlet = read_gauntlet(at.map("eval_gauntlet"));
  at.finish();
  return out;
}

std::vector<std::string> lm_eval_program() {
  if (const char* python = std::getenv("WINDTUNNEL_PYTHON"); python != nullptr && *python != '\0') {
    if (access(python, X_OK) != 0)
      throw_usage("WINDTUNNEL_PYTHON: found {}, needs an interpreter that has lm-eval; install it: {}", python,
                  kInstall);
    return {python, "-m", "lm_eval"};
  }
  if (!in_path("lm_eval"))
    throw_usage("lm-eval is not installed: found no program lm_eval in PATH; install it: {}", kInstall);
  return {"lm_eval"};
}

std::vector<std::string> lm_eval_arguments(const HarnessSpec& spec, const fs::path& weights, const fs::path& output) {
  // lm-eval splits model_args at every comma and the first "=" of each part.
  if (weights.string().find_first_of(",=") != std::string::npos)
    throw_usage("{}: found a comma or '=' in the path, which lm-eval cannot take; name the folder otherwise",
                weights.string());
  std::vector<std::string> out{"--model",       spec.model,
                               "--model_args",  fmt::format("pretrained={},dtype={}", weights.string(), spec.dtype),
                               "--tasks",       fmt::format("{}", fmt::join(spec.tasks, ",")),
                               "--batch_size",  spec.batch_size,
                               "--output_path", output.string()};
  const auto add = [&](const char* flag, const std::string& value) { out.insert(out.end(), {flag, value}); };
  if (!spec.device.empty()) add("--device", spec.device);
  if (!spec.include_path.empty()) add("--include_path", spec.include_path.string());
  if (spec.shots) add("--num_fewshot", std::to_string(*spec.shots));
  if (spec.limit) add("--limit", std::to_string(*spec.limit));
  return out;
}

std::vector<std::string> environment_without_secrets() {
  static const std::set<std::string> secret{"key",      "keys",   "token",       "tokens",    "secret",
                                            "password", "passwd", "credentials", "credential"};
  std::vector<std::string> out;
  for (const std::string& variable : environment_with({})) {
    const std::string name = lower(variable.substr(0, variable.find('=')));
    const std::vector<std::string> words = split(name, '_');
    if (std::ranges::any_of(words, [&](const std::string& word) { return secret.contains(word); })) continue;
    static const std::vector<std::string> ends{"password", "passwd", "pass",   "pwd",
                                               "token",    "secret", "apikey", "_pat"};
    if (std::ranges::any_of(ends, [&](const std::string& end) { return name.ends_with(end); })) continue;
    bool in_address = false;
    for (std::size_t scheme = variable.find("://"); scheme != std::string::npos && !in_address;
         scheme = variable.find("://", scheme + 3))
      in_address =
          variable.substr(scheme + 3, variable.find('/', scheme + 3) - scheme - 3).find('@') != std::string::npos;
    if (in_address && !name.ends_with("_proxy")) continue;  // no tasks could be downloaded without proxies
    out.push_back(variable);
  }
  return out;
}

fs::path find_weights(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw_usage("{}: found no folder, needs one of a run or of exported weights", folder.string());
  if (has_weights(folder)) return folder;
  std::vector<fs::path> found;
  for (const auto& each : fs::directory_iterator(folder))
    if (each.is_directory() && has_weights(each.path())) found.push_back(each.path());
  std::ranges::sort(found);
  if (found.size() == 1) return found.front();
  if (found.empty())
    throw_usage(
        "{}: found no weights as Hugging Face keeps them (config.json and model.safetensors), neither there nor in a "
        "folder in it; train with callbacks: {{hf_checkpointer: {{save_folder: ...}}}} and give that folder",
        folder.string());
  throw_usage("{}: found weights in {} and {}, needs one of them; give that folder", folder.string(), found[0].string(),
              found[1].string());
}

Evaluation run_lm_eval(const HarnessSpec& spec, const fs::path& weights, const fs::path& folder) {
  const std::vector<std::string> program = lm_eval_program();
  std::vector<std::string> words = program;
  const fs::path log = folder / "lm_eval.log";
  const ScratchFolder output("lm_eval", folder);
  const std::vector<std::string> arguments = lm_eval_arguments(spec, fs::absolute(weights), output.path());
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::uintmax_t before = fs::exists(log) ? fs::file_size(log) : 0;
  const HookEnd end =
      run_hook({.words = ended_with_us(words), .environment = environment_without_secrets()}, spec.timeout_s, log);
  const std::string said = end_of_log(log, before);
  if (end.how == HookEnd::How::timed_out)
    throw_runtime(
        "lm-eval did not end within {} and was ended; give it longer (timeout), or fewer samples (limit). Its words "
        "are in {}",
        format_seconds(spec.timeout_s), log.string());
  if (end.how != HookEnd::How::ok) {
    if (said.find("No module named lm_eval") != std::string::npos)
      throw_usage("lm-eval is not installed: {} has no module lm_eval; install it: {}", program[0], kInstall);
    throw_runtime("lm-eval failed with status {}; its output ({}) ends with:\n{}", end.status, log.string(), said);
  }
  const std::vector<fs::path> results = results_below(output.path());
  if (results.empty())
    throw_runtime("lm-eval ended well and left no results_*.json; its output ({}) ends with:\n{}", log.string(), said);
  Evaluation out = read_own_results(results, log);
  out.files.clear();
  const fs::path kept = folder / "lm_eval";
  fs::create_directories(kept);
  for (const fs::path& each : results) {
    fs::rename(each, kept / each.filename());
    out.files.push_back((kept / each.filename()).string());
  }
  return out;
}

}  // namespace wt
