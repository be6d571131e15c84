// Reading what Google Benchmark writes with --benchmark_out_format=json (1.7.1 and later).
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

/// One measurement per benchmark, one sample per repetition, in seconds; aggregate rows are left out (they repeat the
/// samples). Named integer arguments ("m:512") become the shape, the rest of the name is the kernel; the library's own
/// suffixes ("/real_time", "/repeats:9", ...) are dropped. Clock: "device" for "/manual_time" (the suite timed the
/// device itself), "wall" otherwise, whose CPU time is the counter "cpu_s". User counters are averaged over samples.
/// The fingerprint takes host, date, cores, CPU scaling and every custom text of the context; `library_build_type` is
/// not read: Debian's library says "debug" always. Throws Error{usage}, naming the origin and JSON pointer, for a row
/// that reports an error or was skipped (the library exits 0 with such rows), a unit of time it does not know, or no
/// iteration rows.
Profile from_google_benchmark(const nlohmann::json& document, const std::string& origin);

/// Whether the document looks like Google Benchmark's and not like a profile of ours.
bool is_google_benchmark(const nlohmann::json& document);

/// Name of each measurement of the document -> the library's own name, which --benchmark_filter takes.
std::map<std::string, std::string> google_benchmark_names(const nlohmann::json& document, const std::string& origin);

}  // namespace wt
