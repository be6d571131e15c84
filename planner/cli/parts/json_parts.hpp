// Parts of JSON documents, written the same in every report.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/cost/memory/memory_forecast.hpp"

namespace wt {

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

inline nlohmann::json forecast_json(const MemoryForecast& f) {
  return {{"value", f.bytes}, {"low", f.low}, {"high", f.high}};
}

}  // namespace wt
