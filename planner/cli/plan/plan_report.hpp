// What a plan says: in sentences, as files, and as the capacity report for the person who signs.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/plan/plan_details.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// "dbrx on 3,072 hgx-h100 GPUs: 12T tokens in 31.2 days (25.1 to 48.0)."
std::string plan_answer(const PlanInputs& inputs, const Plan& plan);
/// What the two ends in the answer are: "from the 5 % quantile of ..."
std::string plan_range(const Plan& plan);
/// What the search chose among, and what it never looks at.
std::string plan_scope(const PlanInputs& inputs);
/// "the fewest days are proved", or by how much another layout may be better.
std::string proof_words(const Certificate& certificate);
/// The chosen layout: each axis with its value and what it means; saves and spare nodes.
Table layout_table(const PlanInputs& inputs, const Plan& plan);
/// "Memory: 62 GiB of 79 GiB a process; out of memory with a probability of 1.2 %, at most 5 % is accepted."; of ranks
/// whose tensors alone are counted no probability.
std::string memory_sentence(const PlanInputs& inputs, const Plan& plan);
/// The `rows` fastest simulated candidates, the chosen one even where it is not among them, and how the rest was
/// decided.
Table candidate_table(const PlanInputs& inputs, const Plan& plan, std::size_t rows);
/// What the layout's choice gives up, scenario by scenario where it is furthest behind; the compared layouts.
Table regret_table(const Plan& plan);
nlohmann::json robust_json(const Plan& plan);
/// The first `rows` of what is worth measuring; 0 = all.
Table measure_table(const Plan& plan, std::size_t rows);
nlohmann::json measure_json(const Plan& plan);
/// "Step time rests on 0 % measured, 98 % published (directly or by derivation), ...": shares by root.
std::string evidence_sentence(const EvidenceShares& shares);
nlohmann::json evidence_json(const EvidenceShares& shares);
/// "221.2 GFLOP a token without recompute over 989 TFLOP/s"; "" where the peak is unknown and there is no MFU.
std::string mfu_definition(const PlanInputs& inputs);
/// Both figures and how they are counted.
nlohmann::json mfu_json(const PlanInputs& inputs);
/// What of the answer no job can be run with, so that an input is likely to be wrong: more spares than a quarter of the
/// nodes, less than half of the time spent training. A sentence each; none where all is well.
std::vector<std::string> plan_doubts(const PlanInputs& inputs, const Plan& plan);
/// Slow nodes, maintenance, local saves, silent errors and tolerated losses of the simulated runs, a sentence each;
/// none where the study names none.
std::vector<std::string> plan_disturbances(const PlanInputs& inputs, const Plan& plan);
/// collective_basis() of a study with profiles of GPUs; else none.
std::vector<std::string> plan_collectives(const PlanInputs& inputs);
/// What the p99 of expert loads, which memory is sized for, is taken over.
std::string p99_basis(const PlanInputs& inputs);
/// What the answer rests on that nobody measured, one sentence each.
std::vector<std::string> plan_assumptions(const PlanInputs& inputs, const Plan& plan);

/// A run file that the trainer reads once it names data; comments say what the plan expects.
std::string plan_yaml(const PlanInputs& inputs, const Plan& plan);
/// Everything, for machines. Schema "windtunnel.plan/1".
nlohmann::json plan_json(const PlanInputs& inputs, const Plan& plan);
/// `document`: plan_json() of the same, which becomes the payload.
Report plan_report(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details, nlohmann::json document);
/// plan.yaml, plan.json (the document), report.html, report.md, report.json and the study as resolved; the folder is
/// created. Returns the files.
std::vector<std::filesystem::path> write_plan(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details,
                                              const nlohmann::json& document, const std::filesystem::path& folder);

}  // namespace wt
