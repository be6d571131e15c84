// Reading what NVIDIA's nccl-tests print (all_reduce_perf and its siblings, 2.13 and later; rccl-tests print the same).
#pragma once
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

/// One measurement a size: kernel = the collective ("all_reduce", "all_to_all", ...), shape {bytes, ranks, nodes}, one
/// sample for each time the size stands in the text: the out-of-place time, in seconds; the in-place time is the
/// counter "in_place_s". `bytes` is the tests' size column, which is the convention of Collective::bytes: the full
/// buffer of a gather or scatter, all that a rank sends in an all-to-all. Ranks and nodes (distinct hosts) are counted
/// from the list of devices, whose GPU becomes the fingerprint's `device`. Words before a row (a launcher's rank
/// labels) are passed over. Throws Error{usage}, naming origin and line: no list of devices, GPUs of different kinds,
/// no or two tests, rows that are cut off or whose bandwidth is not size / time, results that the test found wrong.
Profile from_nccl_tests(const std::string& text, const std::string& origin);

bool is_nccl_tests(const std::string& text);

}  // namespace wt
