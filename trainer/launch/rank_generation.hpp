// One generation of ranks on this machine, from its start to the end of its last process; and whom the agent blames
// when it fails.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer/launch/notice.hpp"

namespace wt {

struct Generation {
  int number = 0;                    ///< restarts before it
  std::vector<std::string> command;  ///< program and arguments of a rank
  int held = -1;                     ///< see RankProcesses
  std::int64_t world = 1;
  std::int64_t ranks_per_node = 1;  ///< ranks of a node are numbered one after the other
  /// More of a rank's environment: where it is placed.
  std::function<std::map<std::string, std::string>(std::int64_t rank)> place = {};
  double silence_s = 0;  ///< all ranks silent for so long: none of them can tell; 0 = not watched
  /// All live, and none comes further, nor does its storage move, for so long, once one has told where it is; 0 = not
  /// watched.
  double still_s = 0;
  /// So long a node that has ranks killed may take until all are: a machine that goes down does not end them at once.
  double node_goes_s = 3;
  /// Whether the ranks are to save and end: asked about twice a second while they train.
  std::function<bool()> asks_to_end = {};
  // Where ranks regroup (trainer/communication/membership.hpp), each time as a generation with the next number:
  /// After a failure, while the others wait: those that go on, in their order; none: all are stopped.
  std::function<std::vector<std::int64_t>(const struct GenerationEnd& loss)> go_on = {};
  /// How many more ranks are to be started and to join, asked about twice a second.
  std::function<std::int64_t()> more_ranks = {};
  /// Some of those have not become ready for silence_s: all of them were killed, and the others train on. Their number
  /// is not used again.
  std::function<void(const struct GenerationEnd& joiners)> given_up = {};
  /// All ranks of the next membership train.
  std::function<void(const struct Regrouped&)> regrouped = {};
};

/// A change of membership. Times as in GenerationEnd.
struct Regrouped {
  int generation = 0;                    ///< that begins
  bool joined = false;                   ///< ranks came back; else others were lost
  std::int64_t steps_done = 0;           ///< after which it takes place
  double begun_s = 0, begun_unix_s = 0;  ///< the loss was seen, or the ranks that join were started
  double decided_s = 0;                  ///< the ranks were told
  double trains_s = 0;                   ///< seen to train
};

/// Times from the start of the generation.
struct GenerationEnd {
  enum class How { finished, on_request, failed };
  How how = How::finished;
  // Of a failure:
  std::int64_t rank = -1;            ///< that explains it
  std::vector<std::int64_t> ranks;   ///< at fault, ascending: one, those that were killed, or those that others miss
  std::vector<std::int64_t> killed;  ///< ended by a signal, ascending
  std::vector<std::int64_t> taken;   ///< those of them that did not raise it themselves, as at a segmentation fault
  std::vector<std::int64_t> gone;    ///< ended in any way but well, ascending
  int generation = 0;                ///< that ended
  int exit_status = 0;               ///< of `rank`; 0: a signal
  std::string cause;                 ///< "signal 9 (Killed)", "exit status 4"
  std::string message;               ///< what the rank said, where it could
  double detected_s = 0, detected_unix_s = 0;  ///< or when the ranks were asked to end
  double stopped_s = 0;                        ///< until all of them were gone
};

/// Hosts the rendezvous store. Throws Error{runtime} where a rank cannot be started or killed, and where a notice ends
/// before the ranks have (SIGINT: at once).
GenerationEnd run_generation(const Generation& generation, GracePeriod& grace);

}  // namespace wt
