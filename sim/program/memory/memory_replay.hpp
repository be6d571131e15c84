// Replays the memory of one step on one rank: every executor frees at the same place of the issue order, so the peak is
// a property of the program and the routing, without any clock.
//
// At an op's issue: what it waits for is done, and gives back its buffers; then the op allocates; its transient bytes
// come on top while it runs. A segment is done before the next op is issued. An asynchronous op is done where the first
// later op waits for it, or at the end of the step; until then it holds what it frees, and its transient bytes.
//
// A buffer is known by (name, microbatch, layer). A Ref resolves as in unroll(): the layer it names, else the buffer of
// that name without a layer (also where the layer lies outside the model: the last layer's backward frees the head's
// gradient), and in the epilogue the last microbatch. A Ref to a buffer that is not live is ignored: builders name
// buffers that exist in some layouts only (experts.saved after recompute, scratch of one transport).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace wt {

/// Expert rows received in (microbatch, layer); called with layers inside the model only.
using RowsBound = std::function<double(int microbatch, int layer)>;

struct MemoryReplay {
  double peak_bytes = 0;
  double resident_bytes = 0;  ///< held through the whole step, contained in every other figure
  int peak_op = -1;           ///< index into unroll(program)
  std::string peak_id;        ///< its id
  std::map<std::string, double>
      at_peak;                        ///< bytes live at the peak by buffer name, "transient" of the running op apart
  std::vector<double> live_bytes;     ///< by op: after it was issued and what is done was freed
  std::vector<double> peak_bytes_of;  ///< by op: highest while it was issued and, if not asynchronous, ran
};

/// Throws Error{usage} where a live buffer is allocated again, and what unroll() throws.
MemoryReplay replay_memory(const Program& program, const RowsBound& rows);

}  // namespace wt
