#include "planner/watch/decision_log.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/text.hpp"
#include "planner/watch/unknown.hpp"

namespace wt {

using nlohmann::json;

static void to_json(json& out, const Alternative& a) {
  out = {{"way", to_string(a.option)},
         {"possible", a.possible},
         {"lost_s", or_unknown(a.lost_s)},
         {"goodput", or_unknown(a.goodput)},
         {"note", a.note}};
}

namespace {

constexpr const char* kSchema = "windtunnel.decision/1";

json action_json(const WatchAction& a) {
  json out = {{"hook", to_string(a.hook)}};
  if (!a.node.empty()) out["node"] = a.node;
  if (a.hook != HookKind::start) return out;
  out["layout"] = a.layout;
  out["excluded"] = a.excluded;
  out["skipped"] = a.skipped;
  if (a.rollback) out["rollback"] = *a.rollback;
  return out;
}

json end_json(const HookEnd& end) {
  return {{"how", to_string(end.how)}, {"status", end.status}, {"seconds", end.seconds}, {"said", end.said}};
}

}  // namespace

json decision_json(const std::string& run, const WatchVerdict& verdict, const HookEnd* end, const NodeLedger* ledger) {
  json out = {{"schema", kSchema},
              {"unix_s", verdict.unix_s},
              {"run", run},
              {"rule", verdict.signals.empty() ? json() : json(verdict.signals.front().rule)},
              {"why", verdict.why},
              {"signals", verdict.signals},
              {"diagnosis", nullptr},
              {"alternatives", verdict.alternatives},
              {"way", verdict.option ? json(to_string(*verdict.option)) : json()},
              {"action", verdict.action ? action_json(*verdict.action) : json()},
              {"outcome", end ? end_json(*end) : json()},
              {"ledger", ledger ? json(*ledger) : json()}};
  if (const auto& d = verdict.diagnosis)
    out["diagnosis"] = {{"ailment", to_string(d->ailment)}, {"reason", d->reason}, {"confidence", d->confidence}};
  return out;
}

/// Also true for an empty or missing file.
bool ends_line(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() == 0) return true;
  in.seekg(-1, std::ios::end);
  return in.get() == '\n';
}

std::filesystem::path decisions_file(const std::filesystem::path& run_folder) { return run_folder / "decisions.jsonl"; }

void append_decision(const std::filesystem::path& file, const json& decision) {
  std::ofstream out(file, std::ios::app);
  if (!ends_line(file)) out << "\n";  // an incomplete line of a watch that died stays a line of its own
  out << decision.dump() << std::endl;
  if (!out) throw_runtime("{}: could not be written; free space, or give write access", file.string());
}

NodeLedger read_ledger(const std::filesystem::path& run_folder) {
  const std::filesystem::path file = decisions_file(run_folder);
  if (!std::filesystem::exists(file)) return {};
  const std::string all = read_file(file, "the decisions of an earlier watch");
  std::size_t end = all.find_last_of('\n');  // an incomplete line may follow
  for (std::int64_t number = std::ranges::count(all, '\n'); number > 0; --number) {
    const std::size_t before = end == 0 ? std::string::npos : all.find_last_of('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    const std::string origin = fmt::format("{}:{}", file.string(), number);
    const json line = parse_json(all.substr(begin, end - begin), origin);
    const JsonReader root(line, origin);
    if (root.at("schema").string() != kSchema) root.at("schema").fail("'" + root.at("schema").string() + "'", kSchema);
    if (!root.at("ledger").value().is_null()) return ledger_from_json(root.at("ledger").value(), origin);
    end = before;
  }
  return {};
}

}  // namespace wt
