// Rows of one job, of which a user has measured some: which are known, and which are asked about.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/validate/judged.hpp"

namespace wt {

struct AnchorsAsked {
  std::int64_t anchors = 1;  ///< known rows, at least 1
  std::uint64_t seed = 0;    ///< draws them
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

/// The same rows without and with their anchors: those of which there are enough others.
struct AnchoredRows {
  std::vector<Judged> without, with;
};

/// For each row of a job with enough others: which of these are known. `jobs`: indices of rows.
std::map<std::size_t, std::vector<std::size_t>> draw_anchors(
    const std::map<std::string, std::vector<std::size_t>>& jobs, const AnchorsAsked& asked);

}  // namespace wt
