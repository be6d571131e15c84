// Replays the memory of one step on one rank. Every executor frees at the same points of the issue order, so that the
// peak depends only on the program and the routing, not on times.
//
// When an op is issued, what it waits for is done and frees its buffers; then the op allocates. Its transient bytes are
// added while it runs. A segment is done before the next op is issued. An asynchronous op is done where the first later
// op waits for it, or at the end of the step; until then it holds what it will free, and its transient bytes.
//
// A buffer is identified by (name, microbatch, layer). A Ref resolves as in unroll(): the layer it names, otherwise the
// buffer of that name without a layer (also where the layer is outside the model: the last layer's backward frees the
// head's gradient), and in the epilogue the last microbatch. A Ref to a buffer that is not live is ignored, because
// builders name buffers that exist only in some layouts (experts.saved after recompute, scratch of one transport).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace wt {

/// Expert rows received in (microbatch, layer); only called with layers of the model.
using RowsBound = std::function<double(int microbatch, int layer)>;

/// A buffer is allocated or freed. Buffers that are held throughout the step come first, and are not freed.
struct MemoryEvent {
  int op = -1;            ///< index into unroll(program): the op whose issue allocates, or whose end frees; -1: neither
  std::string buffer;     ///< its name; "transient" for what an op needs while it runs
  std::size_t block = 0;  ///< the same number from a buffer's allocation to its end
  double bytes = 0;       ///< negative: freed
};

struct MemoryReplay {
  double peak_bytes = 0;
  double resident_bytes = 0;              ///< held throughout the step, and included in all other figures
  int peak_op = -1;                       ///< index into unroll(program)
  std::string peak_id;                    ///< id of that op
  std::vector<double> live_bytes;         ///< by op: bytes after its issue, when finished ops have freed their buffers
  std::vector<double> peak_bytes_of;      ///< by op: highest bytes during its issue and, if synchronous, its run
  std::vector<MemoryEvent> events;        ///< in their order, if asked for
  std::vector<std::size_t> events_until;  ///< by op, with events: how many of them make up peak_bytes_of
};

/// Throws Error{usage} if a live buffer is allocated again, and as unroll() does.
MemoryReplay replay_memory(const Program& program, const RowsBound& rows, bool with_events = false);

}  // namespace wt
