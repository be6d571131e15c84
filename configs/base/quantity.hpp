// Quantities with units as people write them: "400Gb/s", "30m", "64GiB", "2.5us", "12T". Decimal prefixes are powers
// of 1000, binary ones (Ki, Mi, Gi, Ti) of 1024; "b" is bits, "B" is bytes.
#pragma once
#include <string>

namespace wt {

/// 70 years, longer than any run. Such times and their sums stay below kNever of sim/months, which is 73 years.
inline constexpr double kLongest_s = 2.2e9;

/// Each throws Error{usage} with `where` (file, line and key), the text found and the units allowed.
double parse_seconds(const std::string& text, const std::string& where);           ///< ns us ms s m h d
double parse_bytes(const std::string& text, const std::string& where);             ///< B kB MB GB TB KiB MiB GiB TiB
double parse_bytes_per_second(const std::string& text, const std::string& where);  ///< GB/s, GiB/s, Gb/s ...
double parse_watts(const std::string& text, const std::string& where);             ///< W kW
/// A plain count with an optional decimal suffix: 12T, 250k, 1e6.
double parse_count(const std::string& text, const std::string& where);

/// Text for people with three significant digits: "1.25 s", "38 ms", "64 GiB"; "2.43 days" from a minute up.
std::string format_seconds(double seconds);
std::string format_bytes(double bytes);
/// A number of tokens: "12T", "500B".
std::string format_tokens(double tokens);

}  // namespace wt
