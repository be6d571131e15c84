// Parts of JSON documents, written the same in every report.
#pragma once
#include <nlohmann/json.hpp>

#include "sim/cost/memory/memory_forecast.hpp"

namespace wt {

inline nlohmann::json forecast_json(const MemoryForecast& f) {
  return {{"value", f.bytes}, {"low", f.low}, {"high", f.high}};
}

}  // namespace wt
