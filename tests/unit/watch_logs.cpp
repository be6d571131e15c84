// The logs of other trainers' jobs, watched as they grow: what is decided, told and written down, and what is not done.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "planner/watch/log_watch.hpp"
#include "tests/fixtures/log_lines.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// A watch of a log by the shipped rules, and what it said and decided.
class LogSite {
 public:
  explicit LogSite(const std::string& text = "", std::optional<HookCommand> tell = {}) : tell_(std::move(tell)) {
    add(text);
  }

  void add(const std::string& text) {
    write_bytes(log(), (std::filesystem::exists(log()) ? read_bytes(log()) : "") + text);
  }
  bool look() {
    if (!watch_) watch_.emplace(log(), options());
    return watch_->look();
  }
  std::vector<std::string> standing() const {
    std::vector<std::string> out;
    for (const WatchSignal& signal : watch_->standing()) out.push_back(signal.rule);
    return out;
  }
  LogWatch& watch() { return *watch_; }
  std::filesystem::path log() const { return folder_ / "job.log"; }
  const TempDirectory& folder() const { return folder_; }

  std::vector<json> decisions = {};
  std::vector<std::string> said = {};
  double now = 2e9;  // long after the file was written

 private:
  LogWatchOptions options() {
    LogWatchOptions out{.rules = read_watch_rules("default"), .tell = tell_};
    out.decisions = folder_ / "job.log.decisions.jsonl";
    out.clock = [this] { return now; };
    out.on_decision = [this](const json& decision) { decisions.push_back(decision); };
    out.said = [this](const std::string& what) { said.push_back(what); };
    return out;
  }

  TempDirectory folder_;
  std::optional<HookCommand> tell_;
  std::optional<LogWatch> watch_;
};

const std::string kEnd = "[titan] 2026-01-02 03:09:05,678 - root - INFO - Training completed\n";

/// Lines of each tenth step, with noise of 0.02 nats and steps up to 2 % slower.
std::string titan_log(int first, int last, double loss, int tps = 6000, double grad_norm = 0.5) {
  std::mt19937 random(static_cast<unsigned>(first));
  std::normal_distribution<double> noise(0, 0.02);
  std::string out;
  for (int step = first; step <= last; step += 10)
    out += titan(step, fmt::format("{:.5f}", loss + noise(random)), std::to_string(tps - step % 7 * tps / 350),
                 fmt::format("{:.4f}", grad_norm));
  return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a log in which nothing is wrong: nothing is decided, and what it does not say is said once") {
  LogSite site(titan_log(10, 1000, 2.5) + kEnd);
  CHECK_FALSE(site.look());
  CHECK(site.decisions.empty());
  CHECK(site.standing().empty());
  CHECK(site.watch().seen().lines.size() == 100);
  CHECK(site.said.empty());  // tokens per second in place of step times
  LogSite megatron_site;
  for (int step = 10; step <= 200; step += 10) megatron_site.add(megatron(step));
  megatron_site.look();
  megatron_site.add(megatron(210));
  megatron_site.look();
  CHECK(megatron_site.said == Names{"says no memory, mfu: nothing is seen by low MFU, memory grows"});
}

TEST_CASE(
    "a jump of half a nat in a log of every tenth step: told at its second line, dated to its first, and stands") {
  LogSite site(titan_log(10, 1000, 2.5));
  site.now = 1;  // not silent
  CHECK(site.look());
  site.add(titan_log(1010, 1010, 3.05));
  site.look();
  CHECK(site.decisions.empty());
  site.add(titan_log(1020, 1020, 3.05));
  site.look();
  REQUIRE(site.decisions.size() == 1);
  const json& decision = site.decisions[0];
  CHECK(decision["rule"] == "loss jump");
  CHECK(decision["run"] == site.log().string());
  CHECK(decision["signals"][0]["first_step"] == 1010);
  CHECK(decision["signals"][0]["reference"].get<double>() == Approx(2.5).margin(0.02));
  CHECK(decision["action"].is_null());
  CHECK(decision["ledger"].is_null());
  CHECK_THAT(decision["why"].get<std::string>(), Contains("a human is to look") && Contains("since step 1010"));
  CHECK(json::parse(read_bytes(site.folder() / "job.log.decisions.jsonl")) == decision);
  site.add(titan_log(1030, 3000, 3.05));
  site.look();
  CHECK(site.decisions.size() == 1);  // said once
  CHECK(site.standing() == Names{"loss jump"});
  site.add(titan_log(3010, 3020, 2.5));
  site.look();
  CHECK(site.standing().empty());
  CHECK(site.decisions.back()["why"] == "nothing is wrong any more");
}

TEST_CASE("a spike that came and went between two looks is told") {
  LogSite site(titan_log(10, 1000, 2.5));
  site.now = 1;
  site.look();
  site.now = 5;
  site.add(titan_log(1010, 1030, 9) + titan_log(1040, 1100, 2.5));
  site.look();
  REQUIRE(site.decisions.size() == 1);
  CHECK(site.decisions[0]["signals"][0]["first_step"] == 1010);
  CHECK(site.standing().empty());
}

TEST_CASE("tokens per second that fall, and gradients, by the same rules as a run's") {
  LogSite slow(titan_log(10, 500, 2.5) + titan_log(510, 660, 2.5, 4500));
  slow.now = 1;
  slow.look();
  REQUIRE(slow.watch().standing().size() == 1);
  const WatchSignal signal = slow.watch().standing()[0];
  CHECK((signal.rule == "slow steps" && signal.metric == WatchedMetric::tokens_per_s));
  CHECK(signal.limit == Approx(signal.reference / 1.2));
  CHECK(signal.first_step == 510);
  LogSite gradients(titan_log(10, 500, 2.5) + titan_log(510, 580, 2.5, 6000, 3.5));
  gradients.now = 1;
  gradients.look();
  CHECK(gradients.standing() == Names{"gradient jump"});
  LogSite lost(titan_log(10, 500, 2.5));
  lost.now = 1;
  for (const int step : {510, 520}) lost.add(titan(step, "nan", "6,000", "nan"));
  lost.look();
  CHECK(lost.standing() == Names{"loss jump"});
  CHECK_THAT(lost.decisions.at(0)["why"].get<std::string>(), Contains("loss is nan since step 510"));
}

TEST_CASE("silence of a log: ten usual distances of its lines, by their clock; a job that has ended is not silent") {
  std::string text;
  for (int i = 1; i <= 20; ++i)
    text += fmt::format(
        " [2026-01-02 03:{:02}:00.000001] iteration {}/ 900 | elapsed time per iteration (ms): 4000.0 | "
        "lm loss: 2.5E+00 |\n",
        i, 10 * i);
  LogSite site(text);
  site.now = 1;
  site.look();
  site.add(
      " [2026-01-02 03:21:00.000001] iteration 210/ 900 | elapsed time per iteration (ms): 4000.0 | lm loss: "
      "2.5E+00 |\n");
  site.now = 1000;
  site.look();
  site.now += 599;
  site.look();
  CHECK(site.standing().empty());
  site.add("a warning is no step\n");
  site.now += 2;
  site.look();
  CHECK(site.standing() == Names{"silence"});
  CHECK_THAT(site.decisions.at(0)["why"].get<std::string>(), Contains("no step since step 210, for 10.0 min"));
  site.add("[after training is done] datetime: 2026-01-02 03:40:00\n");
  CHECK_FALSE(site.look());
  CHECK(site.standing().empty());
  CHECK(site.decisions.back()["why"] == "the run has ended");
}

TEST_CASE("silence by a value of its own needs no usual distance of lines") {
  WatchRules rules = read_watch_rules("default");
  std::erase_if(rules.signals, [](const SignalRule& rule) { return rule.metric != WatchedMetric::silence; });
  REQUIRE(rules.signals.size() == 1);
  rules.signals[0].of = WatchReference::value, rules.signals[0].factor = 300, rules.signals[0].least_s = 60;
  const auto fires = [&](double silent_s) {
    const WatchedLog log{.lines = {{.step = 1, .unix_s = 0}}, .now_unix_s = silent_s, .last_sign_unix_s = 0};
    return !RunSignals(log, rules).now().empty();
  };
  CHECK((fires(301) && !fires(299)));
  rules.signals[0].of = WatchReference::recent;
  CHECK((fires(601) && !fires(599)));
}

TEST_CASE("a restart of the job is said; what was lost goes, with its signal") {
  LogSite site(titan_log(10, 1000, 2.5) + titan_log(1010, 1050, 4));
  site.now = 1;
  site.look();
  CHECK(site.standing() == Names{"loss jump"});
  site.add("Training starts at step 901\n" + titan_log(910, 1100, 2.5));
  site.look();
  CHECK(site.standing().empty());
  REQUIRE(site.said.size() == 1);
  CHECK_THAT(site.said[0], Contains("After step 1050 the log goes on at step 910: the job started again"));
}

TEST_CASE("what is wrong with the log itself: no steps yet, no steps ever, and lines that end the watch") {
  LogSite site("loading\n");
  site.now = 1;
  CHECK(site.look());
  CHECK(site.standing().empty());
  CHECK(site.decisions.empty());
  site.add(titan(10) + titan(20, "6,50000"));
  CHECK_THAT(usage_error([&] { site.look(); }), Contains("line 3") && Contains("found loss '6,50000'"));
}

TEST_CASE("a folder of event files is watched, and nothing in it says that the job has ended") {
  const std::filesystem::path folder = "tests/data/job_logs/composer/events";
  LogWatch watch(folder,
                 {.rules = read_watch_rules("default"), .clock = [] { return 1.0; }, .said = [](const auto&) {}});
  CHECK(watch.look());
  CHECK(watch.seen().lines.size() == read_job_log(folder).steps.size());
  CHECK(watch.standing().empty());
}

TEST_CASE("with a hook to tell a human it is run, with the sentence; no other action is ever asked for") {
  LogSite site(titan_log(10, 1000, 2.5),
               HookCommand{{"sh", "-c", "echo \"$1|$2\" >> \"$1.told\"", "sh", "{run}", "{reason}"}, 60});
  site.now = 1;
  site.look();
  site.add(titan_log(1010, 1100, 9, 3000, 20));
  site.now = 1e6;  // silent, too
  site.look();
  REQUIRE(site.decisions.size() == 1);
  CHECK(site.decisions[0]["action"]["hook"] == "tell");
  CHECK(site.decisions[0]["outcome"]["how"] == "ok");
  CHECK_THAT(read_bytes(site.log().string() + ".told"),
             Contains(site.log().string() + "|") && Contains("loss is") && Contains("since step 1010"));
  CHECK(std::filesystem::exists(site.folder() / "job.log.decisions.hooks.log"));
}

TEST_CASE("noise in logs of many seeds raises nothing") {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::string text;
    for (int step = 1; step <= 500; ++step)
      text += titan(step, fmt::format("{:.5f}", 2.5 + 0.1 * normal(random)),
                    fmt::format("{:.0f}", 6000 * (1 + 0.03 * normal(random))),
                    fmt::format("{:.4f}", 0.5 * std::exp(0.3 * normal(random))));
    LogSite site(text);
    site.now = 1;
    site.look();
    INFO(seed);
    CHECK(site.decisions.empty());
  }
}
