// A run that goes to another trainer's format and back: whatever differs is named. Random models and layouts, ours and
// those of other stacks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "configs/base/yaml.hpp"
#include "configs/files/pipeline_layout.hpp"
#include "planner/recipes/known_words.hpp"
#include "planner/recipes/recipe.hpp"
#include "planner/recipes/settings.hpp"
#include "tests/fixtures/random_layout.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Draws again where a run is refused.
RunSpec random_run(Draw& draw) {
  while (true) {
    RunSpec run;
    run.name = "random", run.device = DeviceKind::cuda;
    run.model = random_model(draw);
    run.model.name = "random-model";
    run.layout = draw.once_in(2) ? random_simulated_layout(draw, run.model) : random_layout(draw, run.model);
    run.layout.microbatch = draw.between(1, 4);
    if (run.layout.expert > 1)
      run.layout.dispatcher =
          draw.of<Dispatcher>({Dispatcher::alltoall, Dispatcher::deepep, Dispatcher::hybridep, Dispatcher::uccl});
    run.layout.whole_experts =
        run.layout.tensor > 1 && run.model.experts > 0 && run.layout.placement.empty() && draw.once_in(2);
    run.layout.cuda_graphs = draw.of<CudaGraphs>({CudaGraphs::none, CudaGraphs::partial, CudaGraphs::full});
    run.seq = 128 * run.layout.context;
    run.global_batch = run.layout.data_ranks() * (run.layout.microbatch * draw.between(1, 6) + draw.below(2));
    run.steps = draw.between(1, 1000);
    run.save = !draw.once_in(4), run.save_interval = draw.below(run.steps);
    run.keep_checkpoints = draw.of<std::int64_t>({-1, 1, 2, 5});
    run.precision = draw.once_in(4) ? Precision::fp32 : Precision::bf16;
    run.precisions.fp32_products = run.precision == Precision::fp32 ? NumberFormat::fp32 : NumberFormat::tf32;
    run.optimizer.lr = draw.scaled(1e-5, 1e-2), run.optimizer.weight_decay = draw.unit();
    run.optimizer.warmup_steps = static_cast<double>(draw.below(run.steps)),
    run.optimizer.final_lr_fraction = draw.unit();
    try {
      check_run(run, "random");
      return run;
    } catch (const Error&) {  // e.g. experts that no rank count divides
    }
  }
}

DatasetSpec random_dataset(Draw& draw, const std::string& name, bool weighted) {
  DatasetSpec data;
  const std::vector<std::string> names{"web", "en.wiki", "the-stack v1.2", "3", "a:b", "on"};
  if (draw.once_in(2)) {
    data.use_folder("./" + name);
  } else {
    const std::int64_t first = draw.below(4);
    for (std::int64_t i = 0; i < draw.between(1, 3); ++i) {
      StreamSpec& stream = data.streams.emplace_back();
      stream.name = names[static_cast<std::size_t>(first + i)];
      stream.remote = "s3://bucket/" + name + std::to_string(i), stream.local = fmt::format("/cache/{}/{}", name, i);
      if (draw.once_in(2)) stream.split = "val";
      if (weighted) stream.proportion = draw.between(1, 9);
    }
  }
  data.shuffle_seed = static_cast<std::uint64_t>(draw.below(99));
  if (draw.once_in(2)) data.shuffle_algorithm = ShuffleAlgorithm::py1br;
  if (weighted && draw.once_in(2)) data.num_canonical_nodes = draw.between(1, 9);
  return data;
}

/// What a run has beside its layout and its model: data, evaluation, loggers, a schedule of any unit.
void add_random_surroundings(RunSpec& run, Draw& draw) {
  run.dataset = random_dataset(draw, "train", draw.once_in(2));
  run.dataset.shuffle = draw.once_in(2);
  EvaluationSpec& evaluation = run.evaluation;
  for (std::int64_t i = 0, n = draw.below(4); i < n; ++i)
    evaluation.sets.push_back({draw.once_in(2) && i == 0 ? "eval" : fmt::format("set {}", i),
                               random_dataset(draw, "eval" + std::to_string(i), false)});
  if (!evaluation.sets.empty()) {
    evaluation.interval = draw.below(run.steps), evaluation.first = draw.once_in(2);
    if (draw.once_in(2)) evaluation.subset_batches = draw.between(1, 9);
    if (draw.once_in(2)) evaluation.device_batch = run.layout.microbatch + draw.between(1, 4);
  }
  if (draw.once_in(2)) run.loggers.tensorboard = TensorboardSpec{"./logs"};
  if (draw.once_in(2)) {
    MlflowSpec& mlflow = run.loggers.mlflow.emplace();
    if (draw.once_in(2)) mlflow.tracking_uri = "https://mlflow.example.com", mlflow.experiment_name = "moe 1.2";
    if (draw.once_in(2)) mlflow.tags = {{"mlflow.note", "x: y"}, {"team", "1"}};
  }
  OptimizerSpec& o = run.optimizer;
  o.schedule = draw.of<ScheduleKind>({ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::inverse_sqrt});
  o.first_step = 0;
  const double tokens = static_cast<double>(run.tokens_per_step()), steps = static_cast<double>(run.steps);
  const auto length = [&] {
    return static_cast<double>(draw.below(static_cast<std::int64_t>(steps * tokens))) / tokens;
  };
  if (draw.once_in(2)) o.warmup_steps = length();
  if (draw.once_in(3)) o.schedule_steps = steps - static_cast<double>(draw.between(1, 9)) / 10;
  if (draw.once_in(3)) o.schedule_steps = steps + static_cast<double>(draw.below(9));
  if (o.schedule_steps > 0) o.schedule_steps = std::round(o.schedule_steps * tokens) / tokens;
  o.cooldown_lr_fraction = o.schedule == ScheduleKind::inverse_sqrt ? o.final_lr_fraction / 2 : 0;
  if (o.schedule == ScheduleKind::inverse_sqrt) o.scale_steps = 1 + length(), o.cooldown_steps = length();
}

/// The unit of each length of the schedule and of the run itself.
std::set<std::string> units_of(const Recipe& recipe) {
  Settings settings = settings_from_yaml(recipe.text, "recipe");
  std::set<std::string> out;
  for (const char* key :
       {"max_duration", "scheduler.t_warmup", "scheduler.t_max", "scheduler.t_scale", "scheduler.t_cooldown"})
    if (settings.has(key)) out.insert(Duration::parse(settings.text(key, ""), key).unit);
  return out;
}

/// Every field of a layout, and of a run what formats have keys for, under its key in a run file.
std::map<std::string, std::string> fields(const RunSpec& run) {
  const Layout& l = run.layout;
  const std::int64_t state = l.shard * l.optimizer_shard;
  std::map<std::string, std::string> out;
  for (const auto& [key, number] : {std::pair{"fsdp_config.data_parallel_replicate_degree", l.replicate},
                                    {"fsdp_config.data_parallel_shard_degree", l.shard},
                                    {"fsdp_config.expert_parallel_degree", l.expert},
                                    {"fsdp_config.context_parallel_degree", l.context},
                                    {"fsdp_config.tensor_parallel_degree", l.tensor},
                                    {"fsdp_config.pipeline_parallel_degree", l.pipeline},
                                    {"fsdp_config.virtual_pipeline_degree", l.virtual_stages},
                                    {"fsdp_config.optimizer_shard_degree", state},
                                    {"fsdp_config.reshard_after_forward", std::int64_t{l.reshard_after_forward}},
                                    {"fsdp_config.gradient_reduction", std::int64_t{l.reduce_every_microbatch}},
                                    {"fsdp_config.sequence_parallel", std::int64_t{l.sequence_parallel}},
                                    {"fsdp_config.context_parallel_ring", std::int64_t{l.context_ring}},
                                    {"fsdp_config.expert_tensor_parallel_degree", l.whole_experts ? 1 : l.tensor},
                                    {"fsdp_config.overlap_expert_exchange", std::int64_t{l.exchange_overlap}},
                                    {"fsdp_config.activation_cpu_offload", std::int64_t{l.offload_activations}},
                                    {"device_train_microbatch_size", l.microbatch},
                                    {"global_train_batch_size", run.global_batch},
                                    {"max_seq_len", run.seq},
                                    {"max_duration", run.steps},
                                    {"save", std::int64_t{run.save}},
                                    {"scheduler.t_warmup", static_cast<std::int64_t>(run.optimizer.warmup_steps)}})
    out[key] = std::to_string(number);
  out["fsdp_config.pipeline_schedule"] = to_string(l.schedule);
  out["fsdp_config.token_dispatcher"] = to_string(l.dispatcher);
  out["fsdp_config.cuda_graphs"] = to_string(l.cuda_graphs);
  out["fsdp_config.activation_checkpointing_target"] = to_string(l.recompute);
  out["fsdp_config.pipeline_layout"] =
      to_string(PipelineLayout{l.layers_of_chunks(run.model.layers), run.model.mtp_layers, l.modules_before_head});
  out["fsdp_config.expert_placement"] = l.placement.empty() ? "in order" : "moved";
  out["precision"] = to_string(run.precision);
  for (const auto& [key, number] : {std::pair{"optimizer.lr", run.optimizer.lr},
                                    {"optimizer.weight_decay", run.optimizer.weight_decay},
                                    {"scheduler.alpha_f", run.optimizer.final_lr_fraction}})
    out[key] = fmt::format("{:.6g}", number);
  return out;
}

bool named(const Recipe& recipe, const std::string& key) {
  return std::any_of(recipe.not_expressed.begin(), recipe.not_expressed.end(),
                     [&](const std::string& what) { return what.starts_with(key); });
}

/// A pipeline's layers are said by other keys, too, where they go with its degrees.
bool excused(const Recipe& recipe, const std::string& key) {
  if (named(recipe, key)) return true;
  return key == "fsdp_config.pipeline_layout" && (named(recipe, "fsdp_config.virtual_pipeline_degree") ||
                                                  named(recipe, "fsdp_config.pipeline_parallel_degree"));
}

/// The keys that a format takes, from its sources (tests/data/recipes/read_keys.py).
const std::set<std::string>& known_keys(const std::string& format) {
  static const std::map<std::string, std::set<std::string>> all = [] {
    std::map<std::string, std::set<std::string>> out;
    const auto lists = nlohmann::json::parse(read_bytes("tests/data/recipes/keys.json"));
    for (const auto& [name, list] : lists.items())
      for (const auto& line : list.at("keys")) {
        std::istringstream words(line.get<std::string>());
        for (std::string word; words >> word;) out[name].insert(word);
      }
    return out;
  }();
  return all.at(format);
}

void takes_every_key(const Recipe& recipe, RecipeFormat format) {
  const bool shell = recipe.file_name.ends_with(".sh"), toml = recipe.file_name.ends_with(".toml");
  const Settings settings = shell  ? settings_from_shell(recipe.text, "recipe")
                            : toml ? settings_from_toml(recipe.text, "recipe")
                                   : settings_from_yaml(recipe.text, "recipe");
  for (const auto& [key, value] : settings.entries()) {
    INFO(to_string(format) << ": " << key);
    if (shell)
      CHECK(KnownWords::of(to_string(format)).find(key) != nullptr);
    else
      CHECK((known_keys(to_string(format)).contains(key) || key.ends_with("._target_")));
  }
}

struct Tally {
  int exported = 0, refused = 0, same = 0;
};

void goes_there_and_back(const RunSpec& run, RecipeFormat format, const TempDirectory& folder, Tally& tally) {
  Recipe recipe;
  try {
    recipe = export_run(run, format);
  } catch (const Error& error) {
    REQUIRE(error.code() == Code::usage);
    ++tally.refused;
    return;
  }
  ++tally.exported;
  if (format != RecipeFormat::windtunnel) takes_every_key(recipe, format);
  RecipeSource source{.format = format, .model = "", .gpus = run.layout.world()};
  if (named(recipe, "model: found")) source.model = (folder / "model.yaml").string();
  const ImportedRun back = import_run(recipe.text, recipe.file_name, source);
  INFO(recipe.text);
  CHECK(back.run.layout.world() == run.layout.world());
  const auto wanted = fields(run), found = fields(back.run);
  for (const auto& [key, value] : wanted) {
    INFO(key << ": " << value << " came back as " << found.at(key));
    CHECK((value == found.at(key) || excused(recipe, key)));
  }
  tally.same += wanted == found ? 1 : 0;
  // The shape of the model, where the file has it.
  const bool other = std::any_of(recipe.not_expressed.begin(), recipe.not_expressed.end(), [](const std::string& what) {
    return what.starts_with("model.") && !what.starts_with("model.name");
  });
  if (source.model.empty() && !other) {
    CHECK(back.run.model.total_parameters() == run.model.total_parameters());
    CHECK(back.run.model.flops_per_token(run.seq) == Approx(run.model.flops_per_token(run.seq)));
  }
}

}  // namespace

TEST_CASE("what a format cannot say of a random run is named, and the rest comes back") {
  const char* const wanted = std::getenv("WT_RANDOM_LAYOUTS");
  const std::int64_t runs = wanted == nullptr ? 300 : std::stoll(wanted);
  const TempDirectory folder;
  std::map<RecipeFormat, Tally> tallies;
  for (std::int64_t seed = 0; seed < runs; ++seed) {
    Draw draw(static_cast<std::uint64_t>(seed));
    const RunSpec run = random_run(draw);
    YAML::Emitter model;
    model_to_yaml(run.model, model);
    write_bytes(folder / "model.yaml", model.c_str());
    for (const std::string& name : recipe_format_names()) {
      INFO("seed " << seed << " to " << name << ": " << run.layout.name());
      goes_there_and_back(run, recipe_format_from_string(name, "test"), folder,
                          tallies[recipe_format_from_string(name, "test")]);
    }
  }
  for (const auto& [format, tally] : tallies) {
    INFO(to_string(format) << ": " << tally.exported << " exported, " << tally.refused << " refused, " << tally.same
                           << " came back whole");
    CHECK(tally.exported > 0);
    CHECK(tally.same > 0);
    // LLM Foundry has no tensor, pipeline or context parallelism; torchtitan no chunk of multi-token prediction alone.
    if (format != RecipeFormat::llm_foundry) CHECK(tally.refused * 50 < tally.exported);
  }
  CHECK(tallies[RecipeFormat::windtunnel].same == runs);
}

TEST_CASE("data, evaluation, loggers and schedule of a run go to LLM Foundry and back") {
  int exported = 0, whole = 0, lists = 0, tokens = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Draw draw(seed);
    RunSpec run = random_run(draw);
    run.layout = {};
    run.layout.shard = draw.between(1, 8), run.layout.microbatch = draw.between(1, 4);
    run.global_batch = run.layout.shard * run.layout.microbatch * draw.between(1, 3);
    run.precision = Precision::bf16, run.precisions = {};
    run.seq = 128;
    add_random_surroundings(run, draw);
    Recipe recipe;
    try {
      recipe = export_run(run, RecipeFormat::llm_foundry);
    } catch (const Error& error) {  // a model that is no MPT
      REQUIRE(error.code() == Code::usage);
      continue;
    }
    INFO("seed " << seed << ": " << recipe.text);
    const RunSpec back =
        import_run(recipe.text, "recipe.yaml", {.format = {}, .model = {}, .gpus = run.layout.world()}).run;
    CHECK(back.evaluation == run.evaluation);
    CHECK(back.loggers == run.loggers);
    CHECK(back.dataset == run.dataset);
    CHECK(back.steps == run.steps);
    for (double OptimizerSpec::*length : {&OptimizerSpec::warmup_steps, &OptimizerSpec::schedule_steps,
                                          &OptimizerSpec::scale_steps, &OptimizerSpec::cooldown_steps})
      CHECK(back.optimizer.*length == Approx(run.optimizer.*length).margin(1e-9));
    CHECK(units_of(recipe).size() == 1);
    ++exported, lists += run.evaluation.sets.size() > 1, tokens += units_of(recipe).contains("tok");
    if (std::ranges::all_of(recipe.not_expressed, [](const auto& what) { return what.starts_with("checkpoints: "); }))
      ++whole;
    CHECK(run_to_yaml(run_from_text(run_to_yaml(back), "a")) == run_to_yaml(back));
    // Whatever the recipe says it cannot express is none of these.
    for (const char* key : {"eval_", "device_eval", "train_loader", "loggers", "max_duration"})
      CHECK_FALSE(named(recipe, key));
  }
  INFO(exported << " exported, " << whole << " whole, " << lists << " with lists, " << tokens << " in tokens");
  CHECK(std::min({whole, lists, tokens}) > 20);
}

TEST_CASE("a recipe with a value of another kind is a run or an error, whatever the value") {
  const std::vector<std::string> values{"0",     "-1",    "3",  "7",   "4096",  "1.5",   "1e-3",
                                        "true",  "false", "x",  "[]",  "[1,2]", "null",  "\"\"",
                                        "'a b'", "$X",    "{}", "1ba", "(",     "[0]*3", "99999"};
  std::int64_t read = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Draw draw(seed);
    const RunSpec run = random_run(draw);
    for (const std::string& name : recipe_format_names()) {
      const RecipeFormat format = recipe_format_from_string(name, "test");
      Recipe recipe;
      try {
        recipe = export_run(run, format);
      } catch (const Error&) {
        continue;
      }
      std::vector<std::string> lines;
      std::istringstream in(recipe.text);
      for (std::string line; std::getline(in, line);) lines.push_back(line);
      for (int i = 0; i < 8; ++i) {
        std::vector<std::string> changed = lines;
        std::string& line = changed[static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(lines.size())))];
        const std::size_t at = line.find_last_of(" =:", line.ends_with("\\") ? line.size() - 3 : std::string::npos);
        if (at != std::string::npos)
          line = line.substr(0, at + 1) + draw.of(values) + (line.ends_with("\\") ? " \\" : "");
        std::string text;
        for (const std::string& one : changed) text += one + "\n";
        INFO("seed " << seed << ", " << name << ": " << line);
        try {
          import_run(text, recipe.file_name, {.format = format, .model = "mixtral-8x7b", .gpus = run.layout.world()});
          ++read;
        } catch (const Error& error) {
          ++refused;
          CHECK(error.code() == Code::usage);
          CHECK(std::string(error.what()).find("  ") == std::string::npos);
        }
      }
    }
  }
  CHECK(read > 0);
  CHECK(refused > 0);
}
