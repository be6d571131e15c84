// OUT/strikes.jsonl: proof of what really struck. A line is written before the strike, with the proof that is known
// then; a later line of the same event, generation and rank completes it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trainer/run_folder/files.hpp"

namespace wt {

struct Strike {
  std::size_t event = 0;  ///< number in the scenario, from 0
  int generation = 0;
  std::int64_t rank = 0, node = 0;
  std::int64_t step = 0;
  std::string at, kind;
};

class StrikeLog {
 public:
  explicit StrikeLog(const std::filesystem::path& folder) : file_(folder / kStrikesFile) {}

  /// Also by an earlier launch into the same folder: what was struck once is not struck again.
  bool struck(std::size_t event, int generation, std::int64_t rank) const;
  /// Appends one line with one write(2). Does nothing where the disk is full.
  void add(const Strike& strike, const nlohmann::json& proof) const;

  /// While it lives, no other process has it. It ends with the process at the latest.
  class Lock {
   public:
    explicit Lock(const StrikeLog& log);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int fd_;
  };

 private:
  std::filesystem::path file_;
};

}  // namespace wt
