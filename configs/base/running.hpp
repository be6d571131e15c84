// Whether a process is at work, and what one says of itself to others that meet its traces.
#pragma once
#include <sys/types.h>

#include <string>

namespace wt {

/// A process of this machine that runs. One that has ended and that nobody has waited for (a zombie) does not: where
/// process 1 of a container waits for nobody, it stays for ever.
bool is_running(pid_t process);

std::string host_name();
/// "2026-11-28 04:10:00 UTC"
std::string utc_now();

}  // namespace wt
