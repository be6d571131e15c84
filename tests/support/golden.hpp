// Golden files: what a command said last time, in tests/golden, read in the diff of a change.
// After an intended change: WT_UPDATE_GOLDEN=1 ctest -R 'golden|unit_reports'
#pragma once
#include <cstdlib>
#include <stdexcept>

#include "tests/support/temp_directory.hpp"

namespace wt::test {

inline bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::string(value) != "false" && std::string(value) != "0";
}

inline bool updates_golden() { return is_set("WT_UPDATE_GOLDEN"); }

/// What `file` holds. With WT_UPDATE_GOLDEN set it holds `found` from now on; throws where CI is set as well, because a
/// test that writes what it expects cannot fail.
inline std::string golden(const std::filesystem::path& file, const std::string& found) {
  if (updates_golden()) {
    if (is_set("CI"))
      throw std::runtime_error("WT_UPDATE_GOLDEN: found set while CI is set, allowed outside CI alone; unset it");
    write_bytes(file, found);
  }
  return read_bytes(file);
}

}  // namespace wt::test
