// Runs one simulation in a forked child, because SimGrid's engine is a singleton: a process cannot build it twice, and
// misuse ends in abort(). A fork costs about a millisecond.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace wt {

/// Calls `work` in a child and returns its bytes. An Error thrown there is thrown here, with its code and message. Any
/// other end of the child (abort, signal, out of memory) is Error{runtime}; the child's output is on stderr. Call it
/// from a process without other running threads: only the calling thread exists in the child.
std::string run_in_child(const std::function<std::string()>& work);

/// The same for several works, as many at a time as the machine has cores (at most 16). Results are in the order of
/// `works`. If several throw, the first in that order counts. Calls `done(i)` when works[i] has ended.
std::vector<std::string> run_in_children(const std::vector<std::function<std::string()>>& works,
                                         const std::function<void(std::size_t)>& done = {});

}  // namespace wt
