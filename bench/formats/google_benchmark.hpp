// Reads Google Benchmark's JSON (--benchmark_out_format=json; 1.7.1 and later).
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

/// Which of a benchmark's two times is the sample: `real` the wall clock's, or what the suite itself timed
/// ("/manual_time"); `cpu` that of the benchmark's thread, which other programs on the machine disturb less.
enum class GoogleBenchmarkClock { real, cpu };

/// One measurement per benchmark, one sample per repetition, in seconds; aggregate rows, which repeat the samples, are
/// left out. Named integer arguments ("m:512") become the shape, the rest of the name is the kernel. The library's own
/// suffixes ("/real_time", "/repeats:9", ...) are dropped. The clock is "device" for "/manual_time" (the suite timed
/// the device itself), otherwise "wall", with CPU time as the counter "cpu_s"; with GoogleBenchmarkClock::cpu it is
/// "thread_cpu". User counters are averaged over samples.
/// The fingerprint gets host, date, cores, CPU scaling and every custom text of the context. `library_build_type` is
/// ignored, because Debian's library always says "debug". Throws Error{usage} with origin and JSON pointer: a row that
/// reports an error or was skipped (the library exits 0 with such rows), an unknown unit of time, no iteration rows.
Profile from_google_benchmark(const nlohmann::json& document, const std::string& origin,
                              GoogleBenchmarkClock clock = GoogleBenchmarkClock::real);

/// Whether the document is Google Benchmark's, not a profile of ours.
bool is_google_benchmark(const nlohmann::json& document);

/// Name of each measurement -> the library's own name, for --benchmark_filter.
std::map<std::string, std::string> google_benchmark_names(const nlohmann::json& document, const std::string& origin,
                                                          GoogleBenchmarkClock clock = GoogleBenchmarkClock::real);

}  // namespace wt
