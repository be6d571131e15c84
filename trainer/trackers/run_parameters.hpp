// A run file as names and values, for trackers that show such a list.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace wt {

/// "optimizer.lr" -> "0.001", in the order of the names; a list of numbers or words is one value, of maps one for each
/// entry. The key `loggers` is left out.
std::vector<std::pair<std::string, std::string>> run_parameters(const std::string& run_yaml);

}  // namespace wt
