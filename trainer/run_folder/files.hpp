// The files of a run's output folder (docs/train.md), by the names that writers and readers share.
#pragma once
#include <array>
#include <string>
#include <string_view>

namespace wt {

inline constexpr const char* kRunFile = "run.yaml";                   ///< the run as it is trained
inline constexpr const char* kMetricsFile = "metrics.jsonl";          ///< a line a step
inline constexpr const char* kReplayedFile = "replayed.jsonl";        ///< lines of steps that were done again since
inline constexpr const char* kStartsFile = "generations.jsonl";       ///< a line a start
inline constexpr const char* kSavesFile = "checkpoints.jsonl";        ///< a line a save
inline constexpr const char* kEvaluationsFile = "evaluations.jsonl";  ///< a line a set and evaluation
inline constexpr const char* kDivergedFile = "diverged.json";         ///< a step whose gradients were no numbers
inline constexpr const char* kSummaryFile = "summary.json";           ///< medians; the run has come to its end
inline constexpr const char* kProfileFile = "profile.json";           ///< op times for calibration
inline constexpr const char* kRoutingFile = "routing.csv";            ///< rows by expert
inline constexpr const char* kTraceFile = "trace.json";               ///< for Chrome
inline constexpr const char* kTimelineFile = "timeline.json";         ///< the same as records
inline constexpr const char* kAgentFile = "agent.json";               ///< restarts, as the agent tells them
inline constexpr const char* kStrikesFile = "strikes.jsonl";          ///< faults that really struck
inline constexpr const char* kRemainingFile = "remaining.yaml";       ///< the run in the layout that is left
inline constexpr const char* kMlflowFile = "mlflow.json";             ///< which run it is there
inline constexpr const char* kCheckpointsFolder = "checkpoints";
inline constexpr const char* kNodesFolder = "nodes";    ///< copies in the memory of nodes
inline constexpr const char* kExportFolder = "export";  ///< weights before they are uploaded
inline constexpr const char* kSavedTrace = ".saved";    ///< something was saved, whatever is left of it

/// What a run leaves in its folder: moved aside where another one begins there. The run file is copied.
inline constexpr auto kRunFiles = std::to_array<std::string_view>(
    {kCheckpointsFolder, kSavesFile, kEvaluationsFile, kExportFolder, kNodesFolder, kMetricsFile, kReplayedFile,
     kStartsFile, kStrikesFile, kDivergedFile, kSummaryFile, kProfileFile, kRoutingFile, kTimelineFile, kTraceFile,
     kAgentFile, kRemainingFile, kMlflowFile, kSavedTrace});

/// The records that go to the run's save_folder beside its checkpoints: those that a run that goes on elsewhere has
/// need of, and what a report is made of.
inline constexpr std::array kRunRecords{kRunFile,   kMetricsFile,     kReplayedFile, kStartsFile,
                                        kSavesFile, kEvaluationsFile, kSummaryFile,  kProfileFile};

/// Of a record at the store.
inline std::string record_name(const std::string& name) { return "results/" + name; }

}  // namespace wt
