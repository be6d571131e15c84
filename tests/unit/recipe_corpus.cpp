// Small jobs in the words of each framework's documentation, with what they mean: tests/data/recipes/corpus/FOLDER
// holds files, and expected.yaml says what import-run has to read in each. Expected values are worked out by hand.
//
//   FILE:
//     gpus, model, vocab, seq_len, from: as the flags of import-run; env: {NAME: VALUE}
//     error: parts of the message, one or a list; nothing else is then expected
//     parameters, active: exact numbers, or millions with a suffix M (what publishers print, to a half of its last
//     digit) layout: as the plan prints it, 1x16 expert 8; world, replicate, shard, tensor, pipeline, chunks, context,
//     expert master, moments: formats of state; saves, save_interval; rank, alpha, adapted: of adapters; layers, mtp
//     microbatch, batch, sequence, steps, warmup, lr, final_lr, precision, schedule, dispatcher, recompute
//     assumed, learning, ignored: parts of lines that have to be in this list, one or a list; [] = the list is empty
//     not_assumed: parts that no line of that list has
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>

#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "planner/recipes/recipe.hpp"
#include "planner/recipes/translator.hpp"
#include "tests/fixtures/recipe_runs.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

const std::filesystem::path kCorpus = "tests/data/recipes/corpus";

std::vector<std::string> texts_of(const YAML::Node& node) {
  return node.IsSequence() ? node.as<std::vector<std::string>>() : std::vector{node.as<std::string>()};
}

template <typename Value>
Value told(const YAML::Node& expected, const char* key, Value fallback) {
  return expected[key] ? expected[key].as<Value>() : fallback;
}

RecipeSource source_of(const YAML::Node& expected) {
  RecipeSource out{.format = {}, .model = told<std::string>(expected, "model", "")};
  if (expected["from"]) out.format = recipe_format_from_string(expected["from"].as<std::string>(), "from");
  out.gpus = told<std::int64_t>(expected, "gpus", 0);
  out.vocab = told<std::int64_t>(expected, "vocab", 0);
  out.seq_len = told<std::int64_t>(expected, "seq_len", 0);
  out.variables = told<std::map<std::string, std::string>>(expected, "env", {});
  out.file = [](const std::filesystem::path& file) -> std::optional<std::string> {
    if (!std::filesystem::is_regular_file(file)) return std::nullopt;
    return read_file(file, "a script");
  };
  return out;
}

using Facts = std::map<std::string, std::function<std::string(const RunSpec&)>>;

template <typename Value>
std::function<std::string(const RunSpec&)> of_layout(Value Layout::*member) {
  return [=](const RunSpec& run) { return fmt::format("{}", run.layout.*member); };
}

/// The modules beside which adapters are trained, in order of their names.
std::string adapted_words(const RunSpec& run) {
  std::vector<std::string> modules = run.lora ? run.lora->target_modules : std::vector<std::string>{};
  std::ranges::sort(modules);
  return fmt::format("{}", fmt::join(modules, " "));
}

const Facts& facts() {
  static const Facts all{
      {"layout", [](const RunSpec& run) { return run.layout.name(); }},
      {"world", [](const RunSpec& run) { return fmt::format("{}", run.layout.world()); }},
      {"replicate", of_layout(&Layout::replicate)},
      {"shard", of_layout(&Layout::shard)},
      {"tensor", of_layout(&Layout::tensor)},
      {"pipeline", of_layout(&Layout::pipeline)},
      {"chunks", of_layout(&Layout::virtual_stages)},
      {"context", of_layout(&Layout::context)},
      {"expert", of_layout(&Layout::expert)},
      {"microbatch", of_layout(&Layout::microbatch)},
      {"whole_experts", of_layout(&Layout::whole_experts)},
      {"reshard", of_layout(&Layout::reshard_after_forward)},
      {"graphs", [](const RunSpec& run) { return to_string(run.layout.cuda_graphs); }},
      {"schedule", [](const RunSpec& run) { return to_string(run.layout.schedule); }},
      {"dispatcher", [](const RunSpec& run) { return to_string(run.layout.dispatcher); }},
      {"recompute", [](const RunSpec& run) { return to_string(run.layout.recompute); }},
      {"precision", [](const RunSpec& run) { return precision_word(run); }},
      {"batch", [](const RunSpec& run) { return fmt::format("{}", run.global_batch); }},
      {"sequence", [](const RunSpec& run) { return fmt::format("{}", run.seq); }},
      {"steps", [](const RunSpec& run) { return fmt::format("{}", run.steps); }},
      {"warmup", [](const RunSpec& run) { return fmt::format("{}", run.optimizer.warmup_steps); }},
      {"lr", [](const RunSpec& run) { return fmt::format("{}", run.optimizer.lr); }},
      {"final_lr", [](const RunSpec& run) { return fmt::format("{}", run.optimizer.final_lr_fraction); }},
      {"master", [](const RunSpec& run) { return to_string(run.precisions.master_weights); }},
      {"moments", [](const RunSpec& run) { return to_string(run.precisions.moments); }},
      {"saves", [](const RunSpec& run) { return fmt::format("{}", run.save); }},
      {"save_interval", [](const RunSpec& run) { return fmt::format("{}", run.save_interval); }},
      {"layers", [](const RunSpec& run) { return fmt::format("{}", run.model.layers); }},
      {"mtp", [](const RunSpec& run) { return fmt::format("{}", run.model.mtp_layers); }},
      {"loss_chunks", [](const RunSpec& run) { return fmt::format("{}", run.loss_chunks.value_or(1)); }},
      {"rank", [](const RunSpec& run) { return fmt::format("{}", run.lora ? run.lora->rank : 0); }},
      {"alpha", [](const RunSpec& run) { return fmt::format("{}", run.lora ? run.lora->alpha : 0); }},
      {"adapted", adapted_words},
      {"experts", [](const RunSpec& run) { return fmt::format("{}", run.model.experts); }},
      {"vocabulary", [](const RunSpec& run) { return fmt::format("{}", run.model.vocab); }}};
  return all;
}

/// "671000M" as well as 671026419200. A rounded number is right to a half of its last digit other than 0.
void check_count(const std::string& expected, std::int64_t found) {
  INFO("expected " << expected << ", found " << found);
  if (!expected.ends_with("M")) {
    CHECK(std::to_string(found) == expected);
    return;
  }
  const std::string digits = expected.substr(0, expected.size() - 1);
  const std::size_t point = digits.find('.'), last = digits.find_last_not_of("0.");
  const double place = point == std::string::npos ? static_cast<double>(digits.size() - 1 - last)
                                                  : static_cast<double>(point) - static_cast<double>(last);
  CHECK(std::abs(static_cast<double>(found) / 1e6 - std::stod(digits)) <= 0.5 * std::pow(10, place));
}

void check_list(const YAML::Node& expected, const std::vector<std::string>& list) {
  if (expected.IsSequence() && expected.size() == 0) CHECK(list == std::vector<std::string>{});
  for (const std::string& part : texts_of(expected)) {
    INFO("expected " << part << " in\n" << fmt::format("{}", fmt::join(list, "\n")));
    CHECK(says(list, part));
  }
}

void check_run_of(const YAML::Node& expected, const ImportedRun& job) {
  for (const auto& entry : expected) {
    const auto key = entry.first.as<std::string>();
    INFO(key);
    if (const auto fact = facts().find(key); fact != facts().end() && key != "vocab")
      CHECK(fact->second(job.run) == entry.second.as<std::string>());
    else if (key == "parameters" || key == "active")
      check_count(entry.second.as<std::string>(),
                  key == "active" ? job.run.model.active_parameters() : job.run.model.total_parameters());
    else if (key == "assumed" || key == "learning" || key == "ignored")
      check_list(entry.second, key == "assumed" ? job.assumed : key == "learning" ? job.learning : job.ignored);
    else if (key == "not_assumed")
      for (const std::string& part : texts_of(entry.second)) CHECK_FALSE(says(job.assumed, part));
    else
      CHECK(std::set<std::string>{"gpus", "model", "vocab", "seq_len", "from", "env", "format"}.contains(key));
  }
  if (expected["format"]) CHECK(to_string(job.format) == expected["format"].as<std::string>());
}

void check_file(const std::filesystem::path& file, const YAML::Node& expected) {
  const std::string text = read_file(file, "a job");
  if (!expected["error"]) return check_run_of(expected, import_run(text, file.string(), source_of(expected)));
  const std::string said = usage_error([&] { import_run(text, file.string(), source_of(expected)); });
  for (const std::string& part : texts_of(expected["error"])) CHECK_THAT(said, Catch::Matchers::Contains(part));
}

}  // namespace

TEST_CASE("every job of the corpus means what its framework's documentation says") {
  for (const auto& folder : std::filesystem::directory_iterator(kCorpus)) {
    const YAML::Node all = YAML::LoadFile((folder.path() / "expected.yaml").string());
    for (const auto& entry : all) {
      const auto name = entry.first.as<std::string>();
      INFO(folder.path().filename().string() << "/" << name);
      try {
        check_file(folder.path() / name, entry.second);
      } catch (const Error& error) {
        FAIL_CHECK(error.what());
      }
    }
    for (const auto& file : std::filesystem::directory_iterator(folder))
      if (file.is_regular_file() && file.path().filename() != "expected.yaml") {
        INFO(file.path().string() << " has no expectation");  // files that a script reads lie in a folder below
        CHECK(all[file.path().filename().string()]);
      }
  }
}
