// Writes an unknown figure as "UNKNOWN".
#pragma once
#include <nlohmann/json.hpp>
#include <optional>

namespace wt {

inline nlohmann::json or_unknown(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json("UNKNOWN");
}

}  // namespace wt
