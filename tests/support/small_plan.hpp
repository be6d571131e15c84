// A study of OLMoE on two nodes, small enough to be planned in each case of a test, and its plan's parts.
#pragma once
#include <string>

#include "reports/build/plan_report.hpp"

namespace wt::test {

inline const std::string kSmallStudy =
    "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\nstack: torchtitan\ntokens: 20B\n"
    "max_seq_len: 2048\nglobal_train_batch_size: 64\nrouting: [olmoe-c4, olmoe-arxiv]\nfailures: llama3\nruns: 50\n"
    "search: {expert_degrees: [1, 8], microbatch: [1, 2], shard_sizes: [8, 16]}\n";

inline PlanInputs inputs_of(const std::string& text) {
  return read_plan_inputs(study_from_text(text, "study.yaml"), false);
}

inline Report report_of(const PlanInputs& inputs, const Plan& plan) {
  return plan_report(inputs, plan, plan_details(inputs, plan), plan_json(inputs, plan));
}

}  // namespace wt::test
