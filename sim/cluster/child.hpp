// Runs one simulation in a forked child: SimGrid's engine is a singleton that cannot be built twice in a process and
// answers misuse with abort(). A fork costs about a millisecond.
#pragma once
#include <functional>
#include <string>

namespace wt {

/// Calls `work` in a child and returns the bytes it returned. An Error that it throws is thrown here with its code and
/// message; any other end of the child (abort, signal, out of memory) is Error{runtime}, its words are on stderr.
/// Call from a process without other running threads: only the calling thread exists in the child.
std::string run_in_child(const std::function<std::string()>& work);

}  // namespace wt
