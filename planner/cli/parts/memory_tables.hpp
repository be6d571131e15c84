// What a rank's memory is, when, and what makes it smaller; the same for plans and simulations.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/model/report.hpp"
#include "sim/program/memory/memory_moments.hpp"

namespace wt {

struct MemoryPart {
  std::string text, use;
  double bytes = 0;
};
/// The buffers of the highest moment, and the process's memory that is not tensors; the largest first.
std::vector<MemoryPart> memory_parts(const std::vector<MemoryMoment>& moments, double reserved_bytes,
                                     double process_bytes);

/// The uses of memory in the order of charts, and "outside of tensors".
std::vector<std::string> memory_uses();

/// "What it is": each part; small ones together.
Table memory_parts_table(const std::vector<MemoryPart>& parts);

/// "When": GiB by use and part of the step, at the part's highest moment, and what makes each use smaller.
Table memory_moments_table(const std::vector<MemoryMoment>& moments);

/// The moments with the bytes of their buffers, and by use.
nlohmann::json moments_json(const std::vector<MemoryMoment>& moments);

}  // namespace wt
