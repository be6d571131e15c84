// A run that saves checkpoints, and ways to spoil what it saved.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "tests/support/trainer_fixture.hpp"

namespace wt::test {

/// 2x2 expert 2, a checkpoint every second step, all kept. Constant learning rate: the schedule must not depend on
/// where the run ends.
RunSpec saved_run(std::int64_t steps);
/// A copy of the 12 steps that went straight through, to be spoilt.
std::filesystem::path copy_of_straight_run(const std::string& name);
/// File 1 of rank index - 1.
std::filesystem::path shard(const std::filesystem::path& checkpoint, int index);
void flip_byte(const std::filesystem::path& file);
/// Bytes of every file below, by relative path.
std::map<std::string, std::string> bytes_below(const std::filesystem::path& folder);

}  // namespace wt::test
