// windtunnel plan: finds the layout, the checkpoint cadence and the finish date.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "configs/files/layout_words.hpp"
#include "configs/files/study_keys.hpp"
#include "configs/files/study_prices.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/relatives.hpp"
#include "planner/cli/parts/study_words.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/plan/cost_report.hpp"
#include "planner/cli/plan/decision_report.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/plan/decision.hpp"
#include "planner/plan/other_gpus.hpp"
#include "planner/plan/smaller_plan.hpp"
#include "reports/render/progress.hpp"
#include "reports/render/write.hpp"

namespace wt {
namespace {

struct Options {
  std::string study, model, stack, measured, output, gpus, finish_within, budget, prefer;
  std::vector<std::string> routing, clusters, set;
  GivenPrices prices;
  std::int64_t smaller = 0;
  bool json = false, allow_assumed = false, explore = false;
};

/// Assignments of --set: keys that may list options, and others.
struct Settings {
  Assignments options, others;
};

/// Throws Error{usage} for a key that is set twice, or also by its own flag.
Settings settings_of(const Options& o) {
  const std::map<std::string, bool> by_flag{{"cluster", !o.clusters.empty()}, {"gpus", !o.gpus.empty()},
                                            {"model", !o.model.empty()},      {"stack", !o.stack.empty()},
                                            {"routing", !o.routing.empty()},  {"prefer", !o.prefer.empty()}};
  std::vector<KeyValuesOf> settings;
  std::set<std::string> seen;
  for (const std::string& one : o.set) {
    settings.push_back(parse_assignment(one, false));
    const std::string& key = settings.back().key;
    if (!seen.insert(key).second) throw_usage("--set {}: found twice, needs one value", key);
    if (const auto flag = by_flag.find(key); flag != by_flag.end() && flag->second)
      throw_usage("--set {}: found beside --{}, which says it, too; give one of them", key, key);
  }
  Settings out;
  for (auto& [key, value] : assignments_of(settings))
    (names_options(key) ? out.options : out.others).emplace_back(std::move(key), std::move(value));
  return out;
}

/// The study for --model, --cluster and --gpus: 1T tokens in steps of about 4M, loads of the model's family. --set is
/// applied by the caller, except the sequence length, on which the batch depends. Set keys are not listed as
/// assumptions.
std::string quick_study(const Options& o, const Settings& settings) {
  if (o.model.empty() || o.clusters.empty() || o.gpus.empty())
    throw Error(Code::usage,
                "plan: found neither a study nor all of --model, --cluster and --gpus; give a study file, or --model "
                "config.json --cluster hgx-h100 --gpus 256");
  const std::int64_t gpus = parse_numbers(o.gpus, "--gpus").front();
  const ClusterSpec cluster = read_cluster(o.clusters.front());
  const auto given = [](const Assignments& assignments, const std::string& key) {
    return std::ranges::find(assignments, key, &Assignments::value_type::first);
  };
  const bool node_given = given(settings.others, "cluster.gpus_per_node") != settings.others.end();
  if (!node_given && gpus > cluster.gpus_per_node && gpus % cluster.gpus_per_node != 0)  // an error about the flag
    throw_usage("--gpus: found {}, needs whole nodes of {} GPUs ({})", gpus, cluster.gpus_per_node, cluster.name);
  const ModelSpec model = read_model(o.model);
  const auto sequence = given(settings.others, "max_seq_len");
  const bool seq_given = sequence != settings.others.end();
  const std::int64_t seq =
      seq_given ? static_cast<std::int64_t>(parse_count(sequence->second, "--set max_seq_len")) : 4096;
  const std::int64_t wanted = 4'194'304;  // tokens per step: usual for models of this size
  const auto nearest = [&](std::int64_t multiple) {
    return multiple *
           std::max<std::int64_t>(1, std::llround(static_cast<double>(wanted) / static_cast<double>(seq * multiple)));
  };
  // One batch for all options, if one near the usual size exists.
  std::int64_t common = 1;
  for (const std::int64_t each : parse_numbers(o.gpus, "--gpus")) common = std::min(std::lcm(common, each), 2 * wanted);
  const std::int64_t batch = nearest(common * seq <= 2 * wanted ? common : gpus);
  // A file gets its absolute path, so that the study written with the plan works in any folder. JSON strings are YAML.
  const auto named = [](const std::string& name) {
    return nlohmann::json(std::filesystem::is_regular_file(name) ? std::filesystem::absolute(name).string() : name)
        .dump();
  };
  std::vector<std::string> assumed;
  if (given(settings.others, "tokens") == settings.others.end()) assumed.push_back("1T tokens");
  if (!seq_given) assumed.push_back("4,096 tokens a sequence");
  if (given(settings.options, "global_train_batch_size") == settings.options.end())
    assumed.push_back("about 4M tokens a step");
  if (given(settings.others, "failures") == settings.others.end())
    assumed.push_back(fmt::format("the failure rates of {}", kDefaultFailures));
  std::string text = "# Made by windtunnel plan from --model, --cluster and --gpus.\n";
  text += fmt::format("name: {}-{}\nmodel: {}\ncluster: {}\ngpus: {}\ntokens: 1T\nmax_seq_len: {}\n", model.name, gpus,
                      named(o.model), named(o.clusters.front()), gpus, seq);
  text += fmt::format("global_train_batch_size: {}\nprecision: amp_bf16\nrouting: [{}]\n", batch,
                      routing_for_model(model)[0]);
  if (!assumed.empty())
    text += fmt::format(
        "assumptions: [\"Made from a model, a cluster and a number of GPUs. Assumed: {}; --set or a study says "
        "otherwise.\"]\n",
        fmt::join(assumed, ", "));
  return text;
}

void print_text(const PlanInputs& inputs, const Plan& plan, const std::vector<std::filesystem::path>& files) {
  fmt::print("{}\n", plan_answer(inputs, plan));
  for (const std::string& doubt : plan_doubts(inputs, plan)) fmt::print("Doubtful: {}\n", doubt);
  fmt::print("Range: {}.\n{}\n{}.\n{}\n\n", plan_range(plan), step_sentence(inputs, plan), plan_scope(inputs),
             cost_sentence(plan.cost));
  fmt::print("{}\n", shown_table(layout_table(inputs, plan)));
  fmt::print("{}\n", shown_table(candidate_table(inputs, plan, 6)));
  if (!inputs.formats.empty()) fmt::print("{}\n", shown_table(format_table(inputs)));
  const Certificate& c = plan.search.certificate;
  std::int64_t infeasible = 0;
  for (const auto& [reason, count] : c.infeasible) infeasible += count;
  fmt::print("Recovery: {}\n", plan.policies.choice);
  for (const SmallerLayout& smaller : plan.smaller)
    fmt::print("On {} GPUs: {}, a step of {}.\n", smaller.layout.world(), layout_label(smaller.layout, inputs.stack),
               format_seconds(smaller.step_s));
  fmt::print("Search: {} layouts, {} do not fit, {} bounded, {} simulated, {:.1f} s; {}.\n", c.enumerated, infeasible,
             c.bounded, c.simulated, plan.search_s, proof_words(c));
  if (!plan.robust.sentence.empty()) fmt::print("Choice: {}.\n", plan.robust.sentence);
  if (const std::string simple = simple_sentence(inputs, plan); !simple.empty()) fmt::print("{}\n", simple);
  fmt::print("{}.\n", memory_sentence(inputs, plan));
  if (!plan.layout.placement.empty()) fmt::print("{}\n", plan.placement_note);
  if (!plan.drift_note.empty()) fmt::print("{}\n", plan.drift_note);
  fmt::print("\n{}\n", shown_table(measure_table(plan, 6)));
  if (!inputs.study.cluster.shared_cores())
    fmt::print("{}\n", shown_table(relatives_table(features_of(inputs, plan.layout))));
  fmt::print("{}.\n", evidence_sentence(plan.step.evidence));
  for (const std::string& assumption : plan_assumptions(inputs, plan)) fmt::print("- {}\n", assumption);
  for (const std::string& disturbance : plan_disturbances(inputs, plan)) fmt::print("- {}\n", disturbance);
  for (const auto& file : files) fmt::print("wrote {}\n", file.string());
}

/// The study's options, overridden by flags.
DecisionSpec asked_options(const Options& o, const std::string& text, const std::string& origin,
                           const Assignments& assignments) {
  DecisionSpec asked{.options = study_options(text, origin), .assignments = assignments};
  if (!o.clusters.empty()) asked.options.clusters = o.clusters;
  if (!o.gpus.empty()) asked.options.gpus = parse_numbers(o.gpus, "--gpus");
  if (!o.finish_within.empty()) {
    asked.within_s = parse_seconds(o.finish_within, "--finish-within");
    if (!(*asked.within_s > 0)) throw_usage("--finish-within: found {}, needs a time above 0, as 30d", o.finish_within);
  }
  if (!o.budget.empty()) {
    asked.budget = parse_count(o.budget, "--budget");
    if (!(*asked.budget > 0)) throw_usage("--budget: found {}, needs money above 0, as 5M", o.budget);
  }
  if (o.prefer.empty()) return asked;
  asked.prefer = enumerator_of<Prefer>(o.prefer, prefer_names());
  if (!asked.prefer) throw_usage("--prefer: found '{}', allowed {}", o.prefer, fmt::join(prefer_names(), ", "));
  return asked;
}

/// Whether several plans, or a deadline or budget, are asked for.
bool several(const DecisionSpec& asked) {
  return asked.options.several() || asked.within_s || asked.budget || asked.prefer;
}

/// The study's text, with keys overridden by flags. Not applied: --cluster, --gpus, and options in --set.
std::string asked_study(const Options& o, const std::string& origin, const Settings& settings) {
  std::string text = o.study.empty() ? quick_study(o, settings) : read_file(origin, "a study file");
  if (!o.routing.empty()) text = set_study_key(text, "routing", nlohmann::json(o.routing).dump(), "--routing");
  if (!o.stack.empty()) text = set_study_key(text, "stack", o.stack, "--stack");
  text = with_measured(text, o.measured);
  if (!o.study.empty() && !o.model.empty())
    text = set_study_key(text, "model", nlohmann::json(o.model).dump(), "--model");
  return with_prices(set_study_keys(text, settings.options, origin), o.prices, origin);
}

void decide_command(const Options& o, const std::string& study, const std::string& origin, const DecisionSpec& asked) {
  if (!o.output.empty()) make_folder(o.output);
  Progress bar("planning options");
  const Decision decision = decide(study, origin, asked, o.allow_assumed, bar.of_parts());
  bar.finish();
  if (o.json) {
    fmt::print("{}\n", decision_json(decision).dump(1));
  } else {
    fmt::print("{}\n\n{}", decision.sentence, shown_table(options_table(decision)));
    if (decision.batches) fmt::print("{}\n", batch_note(decision));
    for (const std::string& why : misfits(decision)) fmt::print("- {}\n", why);
    if (!decision.next.empty())
      fmt::print("\n{}", shown_table(option_worth_table(decision)));
    else if (!decision.next_sentence.empty())
      fmt::print("\n{}.\n", decision.next_sentence);
  }
  if (!o.output.empty()) {
    std::vector<std::filesystem::path> files =
        write_report(decision_report(decision, asked.within_s), o.output, "options");
    if (decision.chosen) {
      const PlannedOption& best = decision.options[*decision.chosen];
      PlanDetails details = plan_details(*best.inputs, *best.plan);
      details.explored = explored_rows(decision), details.within_s = asked.within_s;
      for (auto& file : write_plan(*best.inputs, *best.plan, details, plan_json(*best.inputs, *best.plan), o.output))
        files.push_back(std::move(file));
    }
    for (const auto& file : files) fmt::print(o.json ? stderr : stdout, "wrote {}\n", file.string());
  }
  if (!decision.chosen) set_status(static_cast<int>(Code::finding));
}

/// Plans around a study's own, for the page of its plan.
std::vector<ExploredRow> explored_around(const StudySpec& study, const std::string& text, const std::string& origin,
                                         const DecisionSpec& asked, bool allow_assumed,
                                         const SearchProgress& progress) {
  return explored_rows(decide(text, origin, {.options = options_around(study), .assignments = asked.assignments},
                              allow_assumed, progress));
}

void plan_command(const Options& o) {
  if (o.explore && o.output.empty())
    throw_usage("--explore: found without -o, needs the folder of the page that shows the rows");
  if (o.smaller < 0) throw_usage("--smaller: found {}, needs a number of 0 or more", o.smaller);
  // A study without a name gets that of its file, and errors refer to that file.
  const std::string origin = o.study.empty() ? "--model " + o.model : find_config("studies", o.study).string();
  const Settings settings = settings_of(o);
  const std::string text = asked_study(o, origin, settings);
  const DecisionSpec asked = asked_options(o, text, origin, settings.others);
  if (several(asked)) {
    if (o.smaller > 0) throw Error(Code::usage, "--smaller: found with several options, needs one plan");
    if (o.explore)
      throw Error(Code::usage,
                  "--explore: found with several options or a deadline; their page has its rows without it");
    return decide_command(o, text, origin, asked);
  }
  const StudySpec study = assigned_study(set_options(text, asked.options, origin), origin, asked.assignments);
  if (!o.output.empty()) make_folder(o.output);
  Progress bar("reading times");
  const PlanInputs inputs = bar.during([&] { return read_plan_inputs(study, o.allow_assumed); });
  Plan plan = make_plan_or_say(inputs, bar.of_parts());
  std::vector<std::string> unplanned;
  if (o.smaller > 0)
    plan.smaller = bar.during([&] {
      return smaller_layouts(inputs.study, o.smaller, o.allow_assumed,
                             [&](const std::string& why) { unplanned.push_back(why); });
    });
  std::vector<std::filesystem::path> files;
  nlohmann::json document;
  if (o.json || !o.output.empty()) document = plan_json(inputs, plan);
  if (!o.output.empty()) {
    PlanDetails details = plan_details(inputs, plan, bar.of_parts());
    if (o.explore)
      details.explored = explored_around(inputs.study, set_options(text, asked.options, origin), origin, asked,
                                         o.allow_assumed, bar.of_parts());
    files = write_plan(inputs, plan, details, document, o.output);
  }
  bar.finish();
  for (const std::string& why : unplanned) fmt::print(stderr, "{}\n", why);
  if (o.json)
    fmt::print("{}\n", document.dump(1));
  else
    print_text(inputs, plan, files);
}

}  // namespace

void add_plan(CLI::App& app) {
  const Command command(app, "plan",
                        "Choose layout, checkpoint cadence and spares for a study, and say when the run is done.\n"
                        "Layouts searched: what the stack runs of FSDP, HSDP, expert, tensor, pipeline and context\n"
                        "parallelism, with recompute and microbatch, in bf16, or in the formats of --set\n"
                        "search.precision=auto.\n"
                        "Example: windtunnel plan dbrx-3072-h100 -o out/plan\n"
                        "         windtunnel plan --model config.json --cluster hgx-h100 --gpus 256 --set tokens=2T\n"
                        "         windtunnel plan dbrx-3072-h100 --gpus 1024..4096 --cluster hgx-h100 --cluster "
                        "hgx-b200 --finish-within 30d");
  const auto o = command.runs(plan_command);
  command.option("study", o->study, "Study file, or a name in configs/studies");
  command.option("--model", o->model, "Hugging Face config.json or repository, our YAML, or a name in configs/models");
  command
      .option("--cluster", o->clusters,
              "Cluster file, or a name in configs/clusters, in place of the study's (repeatable)")
      .one_a_mention();
  command.option("--gpus", o->gpus, "GPUs to plan for: 256, 256,512 or 256..4096 (doublings, and the halves between)");
  command.option("--finish-within", o->finish_within,
                 "95 % of simulated runs, with steps drawn from their interval, are done in this time, as 30d");
  command.option("--budget", o->budget, "95 % of them cost no more, as 5M, in the currency of the prices");
  add_price_words(command, o->prices);
  command.option("--prefer", o->prefer,
                 "What to make smallest: days, gpus, money or energy (default: the study's, or days)");
  command.option("--set", o->set, "key=value, a dotted key of the study, cluster.* or model.*; may be repeated")
      .one_a_mention();
  command.option("--stack", o->stack, "The stack that runs it (configs/stacks; default: the study's, or torchtitan)");
  add_measured_word(command, o->measured);
  command.option("--routing", o->routing, "Loads in place of the study's: histograms (repeatable), or 'balanced'")
      .one_a_mention();
  command.output(o->output, Output::folder,
                 "Folder for plan.yaml, plan.json, the report and study.yaml (the study with every key)");
  command.option("--smaller", o->smaller,
                 "Also plan for so many smaller numbers of GPUs, the next that the batch divides among: the trainer\n"
                 "takes these layouts, listed in plan.yaml, when it shrinks");
  command.flag("--explore", o->explore,
               "Also plan half to twice the GPUs and the batch, up to 15 plans in all: rows among which the reader of\n"
               "the page moves");
  command.flag("--json", o->json, "Print one JSON document");
  command.flag("--allow-assumed", o->allow_assumed, "Estimate by a roofline what nobody measured, marked as assumed");
}

}  // namespace wt
