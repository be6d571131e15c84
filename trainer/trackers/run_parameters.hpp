// A run file as a list of names and values, for trackers.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace wt {

/// "optimizer.lr" -> "0.001", sorted by name. A list of numbers or words is one value; a list of maps gives one value
/// per entry and key. The key `loggers` is left out.
std::vector<std::pair<std::string, std::string>> run_parameters(const std::string& run_yaml);

}  // namespace wt
