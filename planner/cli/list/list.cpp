// windtunnel list: the presets of a kind, each with one short fact; without a kind, the kinds.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "configs/files/hub_models.hpp"
#include "configs/files/measured_recovery.hpp"
#include "configs/files/model_words.hpp"
#include "configs/files/offer.hpp"
#include "configs/files/profile.hpp"
#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"
#include "configs/files/stack.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/words.hpp"
#include "reports/render/terminal.hpp"
#include "reports/render/text_lines.hpp"
#include "sim/program/routing/load_scenario.hpp"

namespace wt {
namespace {

std::string gpus_of(const ClusterSpec& cluster) {
  const std::string node = fmt::format("{} {}", cluster.gpus_per_node, cluster.gpu_name);
  return cluster.shared_cores() ? fmt::format("{} cores of {}", cluster.cores, cluster.gpu_name) : node + " a node";
}

std::string releases_of(const StackSpec& stack) {
  return stack.releases.empty() ? "no measured release" : "releases " + joined(stack.releases, ", ");
}

std::string size_of(const StudySpec& study) {
  return fmt::format("{} on {} GPUs of {}", study.model.name, study.gpus, study.cluster.name);
}

std::string events_of(const Scenario& scenario) {
  return joined(scenario.events, ", ", [](const FaultEvent& event) {
    return fmt::format("{} of {}", to_string(event.what.kind), to_string(event.who.domain));
  });
}

std::string loads_of(const LoadScenario& load) {
  return fmt::format("{} of {} experts, {}", counted(static_cast<std::int64_t>(load.counts.size()), "layer"),
                     load.counts.front().size(), to_string(load.evidence.kind));
}

/// A kind is a folder of configs/, but the hub, which is a table.
struct Kind {
  const char *name, *what;
  std::string (*fact)(const std::string& preset);
};

const std::vector<Kind> kKinds = {
    {"models", "models: parameters", [](const std::string& name) { return parameters_text(read_model(name)); }},
    {"hub", "repositories of the Hugging Face Hub whose shapes ship with Windtunnel: parameters",
     [](const std::string& name) { return parameters_text(read_model(name)); }},
    {"clusters", "clusters: GPUs", [](const std::string& name) { return gpus_of(read_cluster(name)); }},
    {"stacks", "stacks: releases with measured steps",
     [](const std::string& name) { return releases_of(read_stack(name)); }},
    {"studies", "studies for plan: model, GPUs and cluster",
     [](const std::string& name) { return size_of(read_study(name)); }},
    {"offers", "offers for compare-offers: GPUs and cluster",
     [](const std::string& name) {
       const OfferSpec offer = read_offer(name);
       return fmt::format("{} GPUs of {}", offer.gpus, offer.cluster.name);
     }},
    {"runs", "run files for train and simulate: model and ranks",
     [](const std::string& name) {
       const RunSpec run = read_run(find_config("runs", name));
       return fmt::format("{} on {}", run.model.name, counted(run.layout.world(), "rank"));
     }},
    {"faults", "fault scenarios for drill: events",
     [](const std::string& name) { return events_of(read_scenario(name)); }},
    {"faults/rates", "published failure rates: where they were seen",
     [](const std::string& name) { return read_failures(name).title; }},
    {"faults/recovery", "recovery times that drills measured: where",
     [](const std::string& name) { return read_measured_recovery(name).title; }},
    {"routing", "histograms of experts' loads: their size and evidence",
     [](const std::string& name) { return loads_of(read_load_scenario(name, 0)); }},
    {"profiles", "measurements of a machine: how many, and of what",
     [](const std::string& name) {
       const Profile profile = read_profile(find_config("profiles", name));
       const auto device = profile.fingerprint.find("device");
       return fmt::format("{} measurements of {}", profile.measurements.size(),
                          device == profile.fingerprint.end() ? "a host" : device->second);
     }},
    {"watch", "rules and hooks for watch",
     [](const std::string& name) { return std::string(name.starts_with("hooks-") ? "hooks" : "rules"); }},
};

std::vector<std::string> presets_of(const Kind& kind) {
  return std::string(kind.name) == "hub" ? hub_repositories() : preset_names(kind.name);
}

/// A preset of the user's that cannot be read hides no other one.
std::string fact_of(const Kind& kind, const std::string& preset) {
  try {
    return kind.fact(preset);
  } catch (const Error& refused) {
    return "cannot be read: " + shortened(refused.what());
  }
}

constexpr std::size_t kLeastFact = 24;  // columns of a terminal
constexpr std::size_t kFactIndent = 4;

struct Options {
  std::string kind;
  bool json = false;
};

std::vector<Kind> asked_kinds(const std::string& name) {
  if (name.empty()) return kKinds;
  for (const Kind& kind : kKinds)
    if (kind.name == name) return {kind};
  const std::vector<std::string> names = mapped(kKinds, [](const Kind& kind) { return std::string(kind.name); });
  throw_usage("list: found no kind '{}'{}; kinds: {}", shortened(name), did_you_mean(name, names), joined(names, ", "));
}

/// On a terminal a long fact goes on below its beginning, or below the name where that leaves it too little room.
void put_line(const std::string& name, std::size_t width, const std::string& fact) {
  const std::size_t columns = terminal_width(STDOUT_FILENO), before = width + 2;
  if (columns == 0 || before + text_width(fact) <= columns) return fmt::print("{:<{}}  {}\n", name, width, fact);
  const bool below = before + kLeastFact > columns;
  if (below) fmt::print("{}\n", name);
  const std::size_t indent = below ? kFactIndent : before;
  std::string head = fmt::format("{:<{}}", below ? "" : name, indent);
  for (const std::string& line : wrapped_lines(fact, columns - std::min(columns, indent), LongWord::broken)) {
    fmt::print("{}{}\n", head, line);
    head.assign(indent, ' ');
  }
}

void list(const Options& o) {
  nlohmann::json kinds = nlohmann::json::array();
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Kind& kind : asked_kinds(o.kind)) {
    const std::vector<std::string> presets = presets_of(kind);
    kinds.push_back({{"kind", kind.name}, {"what", kind.what}, {"count", presets.size()}});
    if (o.kind.empty()) lines.emplace_back(kind.name, fmt::format("{:>3}  {}", presets.size(), kind.what));
    for (const std::string& preset : o.kind.empty() ? std::vector<std::string>() : presets) {
      lines.emplace_back(preset, fact_of(kind, preset));
      kinds.back()["presets"].push_back({{"name", preset}, {"fact", lines.back().second}});
    }
  }
  if (o.json) return put_document(nlohmann::json{{"schema", "windtunnel.list/1"}, {"kinds", kinds}}.dump(1), "");
  std::size_t width = 0;
  for (const auto& [name, fact] : lines) width = std::max(width, name.size());
  for (const auto& [name, fact] : lines) put_line(name, width, fact);
}

}  // namespace

void add_list(CLI::App& app) {
  const Command command(app, "list",
                        "Presets that can be named: models, clusters, stacks, ...\nExample: windtunnel list clusters");
  const auto o = command.runs(list);
  command.option("KIND", o->kind, "Folder of configs, as models, or hub; left out: the kinds, with their counts");
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
