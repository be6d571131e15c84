// A plan's results: in sentences, as files, and as the capacity report for the person who signs.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/plan/plan_details.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// What the layout gains over the simple alternative, and whether its interval is wider by more; "" for a simple
/// layout.
std::string simple_sentence(const PlanInputs& inputs, const Plan& plan);
/// "dbrx on 3,072 hgx-h100 GPUs: 12T tokens in 31.2 days (25.1 to 48.0)."
std::string plan_answer(const PlanInputs& inputs, const Plan& plan);
/// "Step: 6.25 s (4.00 to 10.4, 80 % interval), 1,311 tokens/s/GPU, MFU 29.3 %. Parameters: 131.6B, 36.5B of them for
/// each token."
std::string step_sentence(const PlanInputs& inputs, const Plan& plan);
/// The meaning of the range in the answer: "from the 5 % quantile of ..."
std::string plan_range(const Plan& plan);
/// The search space, and what the search never considers.
std::string plan_scope(const PlanInputs& inputs);
/// "the fewest days are proved", or how much better another layout could be.
std::string proof_words(const Certificate& certificate);
/// The chosen layout: each axis with value and meaning; saves and spare nodes.
Table layout_table(const PlanInputs& inputs, const Plan& plan);
/// "Memory: 62 GiB of 79 GiB a process; out of memory with a probability of 1.2 %, at most 5 % is accepted."; no
/// probability where only tensors are counted.
std::string memory_sentence(const PlanInputs& inputs, const Plan& plan);
/// The `rows` fastest simulated candidates, always including the chosen one, and how the others were decided.
Table candidate_table(const PlanInputs& inputs, const Plan& plan, std::size_t rows);
/// The best layout in each format of search.precision, and what it is not known to cost.
Table format_table(const PlanInputs& inputs);
nlohmann::json formats_json(const PlanInputs& inputs);
/// The regret of the chosen layout in its worst scenarios, and the compared layouts.
Table regret_table(const PlanInputs& inputs, const Plan& plan);
nlohmann::json robust_json(const Plan& plan);
/// The `rows` most valuable measurements; 0 = all.
Table measure_table(const Plan& plan, std::size_t rows);
nlohmann::json measure_json(const Plan& plan);
/// "Step time rests on 0 % measured, 98 % published (directly or by derivation), ...": derived numbers count as their
/// root.
std::string evidence_sentence(const EvidenceShares& shares);
nlohmann::json evidence_json(const EvidenceShares& shares);
/// "221.2 GFLOP a token without recompute over 989 TFLOP/s"; "" where the peak is unknown and there is no MFU.
std::string mfu_definition(const PlanInputs& inputs);
/// Both figures with their definitions.
nlohmann::json mfu_json(const PlanInputs& inputs);
/// Sentences on implausible results, which suggest a wrong input: more spares than a quarter of the nodes, less than
/// half of the time spent training, a batch that does not divide among the GPUs. Empty if there are none.
std::vector<std::string> plan_doubts(const PlanInputs& inputs, const Plan& plan);
/// Sentences on slow nodes, maintenance, local saves, silent errors and tolerated losses in the simulated runs; empty
/// where the study has none.
std::vector<std::string> plan_disturbances(const PlanInputs& inputs, const Plan& plan);
/// collective_basis() for a study with profiles of GPUs; otherwise empty.
std::vector<std::string> plan_collectives(const PlanInputs& inputs);
/// The population of the p99 of expert loads, for which memory is sized ("layers and microbatches").
std::string p99_basis(const PlanInputs& inputs);
/// The unmeasured assumptions of the answer, one sentence each.
std::vector<std::string> plan_assumptions(const PlanInputs& inputs, const Plan& plan);

/// A run file that the trainer can read once data is added; comments give the plan's expectations.
std::string plan_yaml(const PlanInputs& inputs, const Plan& plan);
/// All results for machines. Schema "windtunnel.plan/1".
nlohmann::json plan_json(const PlanInputs& inputs, const Plan& plan);
/// `document`: plan_json() of the same plan, which becomes the payload.
Report plan_report(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details, nlohmann::json document);
/// Writes plan.yaml, plan.json (the document), report.html, report.md, report.json and the resolved study; creates the
/// folder. Returns the files.
std::vector<std::filesystem::path> write_plan(const PlanInputs& inputs, const Plan& plan, const PlanDetails& details,
                                              const nlohmann::json& document, const std::filesystem::path& folder);

}  // namespace wt
