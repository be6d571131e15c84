// One generation of ranks on this machine, from its start to the end of its last process, and the ranks that the agent
// blames for a failure.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer/launch/notice.hpp"

namespace wt {

struct Generation {
  int number = 0;                    ///< number of restarts before it
  std::vector<std::string> command;  ///< program and arguments of a rank
  int held = -1;                     ///< see RankProcesses
  std::int64_t world = 1;
  std::int64_t ranks_per_node = 1;  ///< ranks of a node have consecutive numbers
  /// Additional environment of a rank: its placement.
  std::function<std::map<std::string, std::string>(std::int64_t rank)> place = {};
  double silence_s = 0;  ///< failure if all ranks are silent for so long; 0 = not watched
  /// Failure if all ranks live, but neither a rank nor its storage makes progress for so long, once a rank has reported
  /// its position; 0 = not watched.
  double still_s = 0;
  /// Longest time between the ends of a node's killed ranks. A machine that goes down does not end them all at once.
  double node_goes_s = 3;
  /// Whether the ranks should save and end. Called about twice a second while they train.
  std::function<bool()> asks_to_end = {};
  // If ranks regroup (trainer/communication/membership.hpp), each time as the generation with the next number:
  /// After a failure, while the others wait: the ranks that go on, in order. Empty: all are stopped.
  std::function<std::vector<std::int64_t>(const struct GenerationEnd& loss)> go_on = {};
  /// Number of additional ranks to start and to join. Called about twice a second.
  std::function<std::int64_t()> more_ranks = {};
  /// Some joining ranks did not become ready within silence_s. All of them were killed, and the others train on. Their
  /// generation's number is not reused.
  std::function<void(const struct GenerationEnd& joiners)> given_up = {};
  /// All ranks of the next membership train.
  std::function<void(const struct Regrouped&)> regrouped = {};
};

/// A change of membership. Times as in GenerationEnd.
struct Regrouped {
  int generation = 0;                    ///< the new generation
  bool joined = false;                   ///< ranks came back; false: ranks were lost
  std::int64_t steps_done = 0;           ///< the change follows this step
  double begun_s = 0, begun_unix_s = 0;  ///< when the loss was detected, or the joining ranks were started
  double decided_s = 0;                  ///< when the ranks were told
  double trains_s = 0;                   ///< when all were seen to train
};

/// Times are relative to the start of the generation.
struct GenerationEnd {
  enum class How { finished, on_request, failed };
  How how = How::finished;
  // For a failure:
  std::int64_t rank = -1;            ///< the rank that explains it
  std::vector<std::int64_t> ranks;   ///< at fault, ascending: one rank, the killed ones, or those that others miss
  std::vector<std::int64_t> killed;  ///< ended by a signal, ascending
  /// Killed ranks that did not raise the signal themselves (unlike a segmentation fault).
  std::vector<std::int64_t> taken;
  std::vector<std::int64_t> gone;              ///< ended with an error or a signal, ascending
  int generation = 0;                          ///< the generation that ended
  int exit_status = 0;                         ///< of `rank`; 0 = a signal
  std::string cause;                           ///< "signal 9 (Killed)", "exit status 4"
  std::string message;                         ///< the rank's own message, if any
  double detected_s = 0, detected_unix_s = 0;  ///< of the failure, or of the request to end
  double stopped_s = 0;                        ///< when all ranks had ended
};

/// Hosts the rendezvous store. Throws Error{runtime} if a rank cannot be started or killed, and if the grace period of
/// a notice ends before the ranks (SIGINT: at once).
GenerationEnd run_generation(const Generation& generation, GracePeriod& grace);

}  // namespace wt
