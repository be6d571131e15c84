// The numbers of microbatches that a pipeline's schedule supports.
#pragma once
#include <cstdint>
#include <string>

#include "configs/files/layout.hpp"

namespace wt {

/// Why the schedule refuses this number: "dualpipe_v of 4 stages, needs at least 8, two a stage". Empty: it does not.
inline std::string schedule_refuses(const Layout& layout, std::int64_t microbatches) {
  const std::int64_t stages = layout.pipeline;
  if (layout.schedule == Schedule::dualpipe_v)
    return microbatches >= 2 * stages
               ? ""
               : fmt::format("dualpipe_v of {} stages, needs at least {}, two a stage", stages, 2 * stages);
  if (layout.virtual_stages > 1 && microbatches % stages != 0)
    return fmt::format("{} interleaved stages, needs a multiple (Narayanan et al. 2021)", stages);
  return "";
}

}  // namespace wt
