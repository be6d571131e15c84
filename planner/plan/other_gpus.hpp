// Other numbers of GPUs for a study whose batch does not divide among its own, or that cannot be planned on them.
#pragma once
#include <string>

#include "planner/plan/plan.hpp"

namespace wt {

/// Whether the sequences of a step divide among the GPUs; true for more GPUs than sequences, which share sequences.
/// Where they do not, only layouts whose groups share sequences are left (tensor, pipeline, context).
inline bool divides_batch(const StudySpec& study) {
  return study.gpus > study.global_batch || study.global_batch % study.gpus == 0;
}
/// "The batch of 1024 sequences does not divide among 24 GPUs. It does among 16 and 32."
std::string dividing_gpus_sentence(const StudySpec& study);

/// That sentence, if the space is empty, and the fewest GPUs on which a layout fits in memory: whole nodes that divide
/// the batch, with experts in order. "" if a layout fits on the study's own GPUs. Bounds the layouts of about ten
/// numbers of GPUs, which takes seconds.
std::string other_gpus_sentence(const PlanInputs& inputs);

/// make_plan(); if no layout fits, its error ends with other_gpus_sentence().
Plan make_plan_or_say(const PlanInputs& inputs, const SearchProgress& progress = {});

}  // namespace wt
