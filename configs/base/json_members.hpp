// JSON of structs whose keys are the names of their members: each name is written once. An empty optional is null.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>

/// WT_TO_JSON(Point, x, y): nlohmann::json(point) is {"x": ..., "y": ...}. Use it in namespace wt, in the one source
/// that writes this type.
#define WT_TO_JSON(Type, ...)                                                         \
  static void to_json(nlohmann::json& nlohmann_json_j, const Type& nlohmann_json_t) { \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, __VA_ARGS__))          \
  }

template <typename T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& out, const std::optional<T>& value) { out = value ? json(*value) : json(); }
};
