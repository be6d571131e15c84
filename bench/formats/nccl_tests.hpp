// Reads the output of NVIDIA's nccl-tests (all_reduce_perf and others, 2.13 and later) and of rccl-tests.
#pragma once
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

/// One measurement per size: kernel = the collective ("all_reduce", "all_to_all", ...), shape {bytes, ranks, nodes}.
/// Each occurrence of the size gives one sample, the out-of-place time in seconds; the in-place time is the counter
/// "in_place_s". `bytes` is the tests' size column, which matches Collective::bytes: the full buffer of a gather or
/// scatter, everything that a rank sends in an all-to-all. Ranks and nodes (distinct hosts) are counted in the list of
/// devices, whose GPU becomes the fingerprint's `device`. Words before a row (a launcher's rank labels) are ignored.
/// Throws Error{usage} with origin and line: no list of devices, different GPUs, no or two tests, truncated rows,
/// bandwidth that is not size / time, wrong results reported by the test.
Profile from_nccl_tests(const std::string& text, const std::string& origin);

bool is_nccl_tests(const std::string& text);

}  // namespace wt
