// Sends lines of a metrics.jsonl to the loggers of a run file, as rank 0 does while it trains. For tests in Python,
// which look at what arrives:
//   track_lines RUN.yaml FOLDER DONE METRICS.jsonl finished|failed|asked_to_end|scores END_S PAUSE_MS
// scores: each line is {"name": ..., "value": ...}, a score of the run's weights after DONE steps.
// PAUSE_MS: after each line; loggers are flushed every 10 ms, and tried again after 10 to 50 ms.
#include <fmt/core.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "configs/base/error.hpp"
#include "trainer/trackers/track_scores.hpp"
#include "trainer/trackers/trackers.hpp"

namespace {

int send_scores(const wt::RunSpec& run, char** words) {
  std::vector<std::pair<std::string, double>> scores;
  std::ifstream in(words[4]);
  for (std::string line; std::getline(in, line);) {
    const auto score = nlohmann::json::parse(line);
    scores.emplace_back(score.at("name"), score.at("value"));
  }
  for (const std::string& line : wt::track_scores(run, words[2], std::stoll(words[3]), scores))
    fmt::print("{}\n", line);
  fmt::print("trained on\n");
  return 0;
}

}  // namespace

int main(int count, char** words) {
  using namespace wt;
  if (count != 8) return 2;
  try {
    const RunSpec run = read_run(words[1]);
    check_loggers(run.loggers);
    if (words[5] == std::string("scores")) return send_scores(run, words);
    Trackers trackers(run, words[2], std::stoll(words[3]),
                      {.capacity = 1000, .batch = 50, .flush_s = 0.01, .least_pause_s = 0.01, .most_pause_s = 0.05});
    std::ifstream in(words[4]);
    for (std::string line; std::getline(in, line);) {
      trackers.step(nlohmann::json::parse(line));
      std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(words[7])));
    }
    const std::string how = words[5];
    trackers.end(how == "finished" ? TrackedEnd::finished
                 : how == "failed" ? TrackedEnd::failed
                                   : TrackedEnd::asked_to_end,
                 std::stod(words[6]));
    fmt::print("trained on\n");
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "track_lines: {}\n", e.what());
    return e.exit_status();
  }
}
