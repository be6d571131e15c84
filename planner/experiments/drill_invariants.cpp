#include "planner/experiments/drill_invariants.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/run_folder/run_lines.hpp"
#include "trainer/safetensors/tensor_parts.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using State = Expectation::State;

constexpr const char* kLossKeys[] = {"loss", "aux_loss", "z_loss", "mtp_losses", "grad_norm", "lr"};
/// The tolerance of the checkpoint tests between layouts, which add in different orders.
constexpr double kBetweenLayouts = 1e-4;

bool close_to(const json& a, const json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  return std::abs(a.get<double>() - b.get<double>()) <= kBetweenLayouts * std::abs(b.get<double>());
}

/// Whether losses are compared throughout.
bool compares_losses(State state) { return state == State::bitwise || state == State::layouts; }

/// The first of the losses that differs; "" where none does.
std::string other_loss(const json& expected, const json& found, State state) {
  for (const char* key : kLossKeys) {
    const json before = expected.value(key, json()), after = found.value(key, json());
    if (!compares_losses(state) || (state == State::layouts ? close_to(after, before) : after == before)) continue;
    return fmt::format("{} is {}, not {}", key, after.dump(), before.dump());
  }
  return "";
}

/// Training state in the newest checkpoint, by key.
std::map<std::string, std::vector<float>> read_state(const fs::path& folder) {
  std::ifstream latest(folder / kCheckpointsFolder / "latest");
  std::string name;
  std::getline(latest, name);
  const StoredTensors stored = StoredTensors::of_checkpoint(folder / kCheckpointsFolder / name);
  std::map<std::string, std::vector<float>> state;
  for (const std::string& key : stored.keys()) state[key] = stored.read(key);
  return state;
}

/// NaNs with the same bits are equal; 0 and -0 are not.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// The samples that a step trained on, and those that it skipped.
std::pair<json, json> trained_on(const json& row) { return {row.at("samples"), row.value("skipped", json())}; }

void compare_metrics(const std::vector<json>& expected, const std::vector<json>& found, State state, DrillCase& out) {
  out.samples_equal = expected.size() == found.size();
  out.losses_equal = out.samples_equal && compares_losses(state);
  if (!out.samples_equal) out.differs("{} steps instead of {}", found.size(), expected.size());
  for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    if (const std::string other = other_loss(expected[i], found[i], state); !other.empty()) {
      if (out.losses_equal) out.differs("step {}: {}", i + 1, other);
      out.losses_equal = false;
    }
    if (trained_on(expected[i]) != trained_on(found[i])) {
      if (out.samples_equal) out.differs("step {}: other samples", i + 1);
      out.samples_equal = false;
    }
  }
}

void compare_state(const fs::path& undisturbed, const fs::path& place, DrillCase& out) {
  const auto expected = read_state(undisturbed), found = read_state(place);
  out.parameters_equal = out.optimizer_equal = expected.size() == found.size() && !expected.empty();
  for (const auto& [key, values] : expected) {
    const auto it = found.find(key);
    if (it != found.end() && same_bits(values, it->second)) continue;
    bool& equal = is_optimizer_key(key) ? out.optimizer_equal : out.parameters_equal;
    if (equal) out.differs("{} differs", key);
    equal = false;
  }
}

/// The step of the first strike.
std::int64_t first_struck(const fs::path& place) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const json& line : read_lines(place / "strikes.jsonl"))
    first = std::min(first, line.at("step").get<std::int64_t>());
  return first;
}

/// Losses are the same until a fault, and the state at the end is not.
void check_changed(const fs::path& undisturbed, const fs::path& place, DrillCase& out) {
  const auto expected = read_lines(undisturbed / "metrics.jsonl"), found = read_lines(place / "metrics.jsonl");
  const auto before = static_cast<std::size_t>(std::max<std::int64_t>(0, first_struck(place) - 1));
  for (std::size_t i = 0; i < std::min({before, expected.size(), found.size()}); ++i)
    if (const std::string other = other_loss(expected[i], found[i], State::bitwise); !other.empty())
      return out.differs("step {}, before the fault: {}", i + 1, other);
  DrillCase states;  // whose differences are wanted
  compare_state(undisturbed, place, states);
  out.parameters_equal = states.parameters_equal, out.optimizer_equal = states.optimizer_equal;
  if (states.parameters_equal && states.optimizer_equal)
    out.differs("the state at the end is that of the undisturbed run: the fault changed nothing");
}

/// Process ids whose command line names the folder.
std::vector<std::string> processes_of(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc", none)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || name == std::to_string(getpid())) continue;
    std::ifstream in(entry.path() / "cmdline", std::ios::binary);
    std::stringstream words;
    words << in.rdbuf();
    for (std::string word; std::getline(words, word, '\0');)
      if (word == folder.string()) out.push_back(name);
  }
  return out;
}

template <typename T>
void expect_equal(const std::string& what, const std::optional<T>& expected, const T& found, DrillCase& out) {
  if (expected && *expected != found) out.differs("{}: {}, expected {}", what, found, *expected);
}

/// Checks one value per recovery, in order. Recoveries without a value are not checked.
template <typename T, typename Of>
void expect_of_each(const char* what, const std::vector<T>& expected, DrillCase& out, Of&& of) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (i >= out.restarts.size())
      return out.differs("{}: there were {} recoveries, not {}", what, out.restarts.size(), expected.size());
    expect_equal(expected.size() > 1 ? fmt::format("recovery {}: {}", i + 1, what) : what, std::optional(expected[i]),
                 of(out.restarts[i]), out);
  }
}

/// Excluded nodes must be as expected. Without an expectation, only nodes with faults may be excluded.
void check_excluded(const fs::path& place, const Expectation& expect, DrillCase& out) {
  if (!fs::exists(place / kAgentFile)) {
    if (expect.excluded) out.differs("no agent.json, which tells of excluded nodes");
    return;
  }
  const auto excluded = read_json(place / kAgentFile).at("excluded").get<std::vector<std::int64_t>>();
  if (expect.excluded && excluded != *expect.excluded)
    out.differs("excluded nodes: {}, expected {}", json(excluded).dump(), json(*expect.excluded).dump());
  std::set<std::int64_t> with_faults;
  for (const json& line : read_lines(place / kStrikesFile)) with_faults.insert(line.at("node").get<std::int64_t>());
  for (const std::int64_t node : excluded)
    if (!expect.excluded && !with_faults.contains(node)) out.differs("node {} is excluded, which was not hit", node);
}

/// The last step done between two times; empty if there is none.
std::optional<std::int64_t> last_done(const std::vector<json>& rows, double from, double to) {
  std::optional<std::int64_t> last;
  for (const json& row : rows)
    if (const double at = row.at("unix_s"); at > from && at < to)
      last = std::max(last.value_or(0), row.at("step").get<std::int64_t>());
  return last;
}

}  // namespace

void compare_with_undisturbed(const fs::path& undisturbed, const fs::path& place, const Expectation& expect,
                              DrillCase& out) {
  compare_metrics(read_lines(undisturbed / kMetricsFile), read_lines(place / kMetricsFile), expect.state, out);
  if (expect.state == State::bitwise) compare_state(undisturbed, place, out);
  if (expect.state == State::changed) check_changed(undisturbed, place, out);
}

void check_replays(const fs::path& place, std::int64_t steps, const Expectation& expect, DrillCase& out) {
  const std::vector<json> committed = read_lines(place / kMetricsFile), before = read_lines(place / kReplayedFile);
  std::map<std::int64_t, json> by_step;
  for (std::size_t i = 0; i < committed.size(); ++i) {
    if (committed[i].at("step") != i + 1)
      out.differs("line {} of metrics.jsonl is of step {}", i + 1, committed[i].at("step").get<std::int64_t>());
    by_step[committed[i].at("step")] = committed[i];
  }
  if (expect.finishes && static_cast<std::int64_t>(committed.size()) != steps)
    out.differs("{} of {} steps were done", committed.size(), steps);
  out.steps_lost = static_cast<std::int64_t>(before.size());
  for (const json& row : before) {
    const std::int64_t step = row.at("step");
    if (!by_step.count(step)) continue;  // the run ended before it repeated this step
    if (const std::string other = other_loss(row, by_step[step], expect.state); !other.empty())
      out.differs("step {}, done again: {}", step, other);
    if (trained_on(row) != trained_on(by_step[step])) out.differs("step {}, done again: other samples", step);
  }
  expect_equal("steps lost", expect.steps_lost, out.steps_lost, out);
}

void check_generations(const fs::path& place, DrillCase& out) {
  const auto starts = read_lines(place / kStartsFile), committed = read_lines(place / kMetricsFile);
  for (const json& row : committed) {
    const auto next = std::find_if(starts.rbegin(), starts.rend(), [&](const json& start) {
                        return start.at("resumed_after") < row.at("step");
                      }).base();  // the start after the last one that did this step
    const double at = row.at("unix_s");
    if (next == starts.begin() || at < (next - 1)->at("connected_unix_s") ||
        (next != starts.end() && at > next->at("connected_unix_s")))
      return out.differs("step {} was not done by the last ranks that came to it", row.at("step").get<std::int64_t>());
  }
  std::vector<json> done = read_lines(place / kReplayedFile);
  const auto replayed = static_cast<std::int64_t>(done.size());
  done.insert(done.end(), committed.begin(), committed.end());
  std::int64_t lost = 0;
  for (std::size_t g = 1; g < starts.size(); ++g) {
    const json &before = starts[g - 1], &start = starts[g];
    const auto last = last_done(done, before.at("connected_unix_s"), start.at("connected_unix_s"));
    lost += last.value_or(before.at("resumed_after")) - start.at("resumed_after").get<std::int64_t>();
  }
  if (lost != replayed)
    out.differs("{} steps were done again, and {} lie between checkpoints and failures", replayed, lost);
}

void check_memory_given_back(const fs::path& place, DrillCase& out) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(place / kNodesFolder, none))
    out.differs("{} is left behind: the run is over, and saved", fs::relative(entry.path(), place).string());
}

void check_recoveries(const fs::path& place, const Scenario& scenario, DrillCase& out) {
  const Expectation& expect = scenario.expect;
  std::int64_t restarts = 0, returns = 0, faults = 0;
  for (const FaultEvent& e : scenario.events) faults += e.repeats;
  for (const DrillRestart& r : out.restarts) {
    if (!r.relaunch) ++restarts;
    if (r.takes_back()) ++returns;  // ranks that a fault removed
    if (!r.phases) continue;
    const RecoveryPhases& p = *r.phases;
    for (const auto& [name, seconds] : {std::pair{"detect", p.detect_s.value_or(0)},
                                        {"stop", p.stop_s},
                                        {"start", p.start_s},
                                        {"load", p.load_s},
                                        {"first step", p.first_step_s}})
      if (seconds < 0) out.differs("the phase '{}' took {:.3f} s", name, seconds);
    if (expect.within_s && p.recovery_s() > *expect.within_s)
      out.differs("recovery took {:.1f} s, expected within {:g} s", p.recovery_s(), *expect.within_s);
  }
  // A recovery cut short by another failure has no phases. The last one must reach its first step.
  if (expect.within_s && (out.restarts.empty() || !out.restarts.back().phases))
    out.differs("no recovery was measured to its first step, expected within {:g} s", *expect.within_s);
  if (!expect.restarts && restarts + out.relaunches > faults + std::min(returns, faults))
    out.differs("{} restarts and relaunches after {} faults", restarts + out.relaunches, faults);
  expect_equal("restarts", expect.restarts, restarts, out);
  expect_equal("relaunches", std::optional(expect.relaunches), out.relaunches, out);
  expect_of_each("resumed after step", expect.resumed_after, out,
                 [](const DrillRestart& r) { return r.resumed_after; });
  std::vector<std::string> levels;
  for (const CopyLevel level : expect.level) levels.push_back(to_string(level));
  expect_of_each("loaded from", levels, out, [](const DrillRestart& r) { return r.level; });
  check_excluded(place, expect, out);
}

void check_nothing_left(const fs::path& place, DrillCase& out) {
  constexpr int kTenths = 50;  // killed processes need time to end
  for (int tenth = 0; tenth < kTenths && !processes_of(place).empty(); ++tenth) usleep(100'000);
  for (const std::string& pid : processes_of(place)) out.differs("process {} is left behind", pid);
  for (const auto& entry : fs::recursive_directory_iterator(place))
    if (const std::string extension = entry.path().extension().string(); extension == ".partial" || extension == ".tmp")
      out.differs("{} is left behind", fs::relative(entry.path(), place).string());
}

}  // namespace wt
