#include "trainer/communication/rank_progress.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trainer/pch.hpp"

namespace wt {

double tick_s(std::int64_t world) { return 0.5 * std::max(1.0, static_cast<double>(world) / 512); }

std::string progress_key(std::int64_t rank) { return "progress/" + std::to_string(rank); }

std::string last_progress(c10d::Store& store, std::int64_t rank) {
  const std::string key = progress_key(rank);
  return store.check({key}) ? store.get_to_str(key) : "";
}

std::string last_position(c10d::Store& store, std::int64_t rank) {
  const std::string last = last_progress(store, rank);
  return last.empty() ? "" : nlohmann::json::parse(last).at("at").get<std::string>();
}

}  // namespace wt
