// OUT/strikes.jsonl: proof of injected faults. A line is written before an injection, with the proof known by then. A
// later line with the same event, generation and rank completes it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trainer/run_folder/files.hpp"

namespace wt {

struct Strike {
  std::size_t event = 0;  ///< index in the scenario, from 0
  int generation = 0;
  std::int64_t rank = 0, node = 0;
  std::int64_t step = 0;
  std::string at, kind;
};

class StrikeLog {
 public:
  explicit StrikeLog(const std::filesystem::path& folder) : file_(folder / kStrikesFile) {}

  /// Whether it is in the log, also from an earlier launch in the same folder: events are not repeated.
  bool struck(std::size_t event, int generation, std::int64_t rank) const;
  /// Appends a line with a single write(2). Does nothing if the disk is full.
  void add(const Strike& strike, const nlohmann::json& proof) const;

  /// Excludes other processes during its lifetime. Released at the process's end at the latest.
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
