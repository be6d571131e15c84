// Runs one simulation in a forked child: SimGrid's engine is a singleton that cannot be built twice in a process and
// answers misuse with abort(). A fork costs about a millisecond.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace wt {

/// Calls `work` in a child and returns the bytes it returned. An Error that it throws is thrown here with its code and
/// message; any other end of the child (abort, signal, out of memory) is Error{runtime}, its words are on stderr.
/// Call from a process without other running threads: only the calling thread exists in the child.
std::string run_in_child(const std::function<std::string()>& work);

/// The same of several, which run beside each other, as many at a time as the machine has cores. Answers in the order
/// of `works`; of errors the first in that order. `done(i)` is called when works[i] has answered.
std::vector<std::string> run_in_children(const std::vector<std::function<std::string()>>& works,
                                         const std::function<void(std::size_t)>& done = {});

}  // namespace wt
