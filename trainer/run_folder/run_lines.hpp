// Lines of a run's other files, as the trainer writes them and as they are read: starts, saves, evaluations, the step
// that diverged.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/base/json_reader.hpp"

namespace wt {

/// Of generations.jsonl.
struct StartLine {
  int generation = 0;
  double connected_unix_s = 0, loaded_unix_s = 0;
  std::int64_t resumed_after = 0;  ///< the step that it went on from
  std::string level = {};          ///< of the copy that was loaded: storage, local, peer; empty: none
};
nlohmann::json to_json(const StartLine& line);
/// Its generation is left at 0: a report counts starts of several launches.
StartLine start_line(const JsonReader& line);

/// Of checkpoints.jsonl.
struct SaveLine {
  std::int64_t step = 0;
  double blocking_s = 0;  ///< training stood still for so long
  double total_s = 0;     ///< until the checkpoint was valid
  double bytes = 0;
};
nlohmann::json to_json(const SaveLine& line);
SaveLine save_line(const JsonReader& line);

/// Of evaluations.jsonl: one set of eval_loader, over all ranks.
struct EvaluationLine {
  std::int64_t step = 0;  ///< after so many
  std::string label = {};
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< mean cross-entropy, nats a target; NaN: null
  double targets = 0;
  std::int64_t samples = 0;
  double seconds = 0;
};
nlohmann::json to_json(const EvaluationLine& line);
/// Step, label and loss, which a report shows.
EvaluationLine evaluation_line(const JsonReader& line);

/// diverged.json: a step whose gradients were no numbers. The trainer ends there, and writes no line of it.
struct DivergedStep {
  std::int64_t step = 0;
  std::int64_t times = 0;  ///< in a row
  double unix_s = 0;       ///< the last time
};
nlohmann::json to_json(const DivergedStep& step);
/// None where the folder has no such file. Throws Error{usage} where it cannot be read.
std::optional<DivergedStep> read_diverged(const std::filesystem::path& folder);

/// Of such a file. Throws Error{usage} below 0.
std::int64_t step_count(const JsonReader& reader);

/// All lines of a file, as JSON; none where there is no file. Throws Error{usage} naming the file.
std::vector<nlohmann::json> read_lines(const std::filesystem::path& file);
/// Its first and its last line alone, for files of 1e6 lines. Throws Error{usage} where there is none.
std::pair<nlohmann::json, nlohmann::json> first_and_last_line(const std::filesystem::path& file);

}  // namespace wt
