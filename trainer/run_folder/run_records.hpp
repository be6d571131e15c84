// The records of a run that go to its save_folder beside its checkpoints: those that a run that goes on elsewhere has
// need of, and what a report is made of.
#pragma once
#include <array>
#include <string>

namespace wt {

inline constexpr std::array kRunRecords{"run.yaml",          "metrics.jsonl",     "replayed.jsonl", "generations.jsonl",
                                        "checkpoints.jsonl", "evaluations.jsonl", "summary.json",   "profile.json"};

/// Of a record at the store.
inline std::string record_name(const std::string& name) { return "results/" + name; }

}  // namespace wt
