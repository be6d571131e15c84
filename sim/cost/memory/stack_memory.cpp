#include "sim/cost/memory/stack_memory.hpp"

#include <nlohmann/json.hpp>

namespace wt {

void to_json(nlohmann::json& json, const StackMemories& m) {
  json = {{"allocator", m.allocator}, {"outside", m.outside}};
}

void from_json(const nlohmann::json& json, StackMemories& m) {
  json.at("allocator").get_to(m.allocator);
  json.at("outside").get_to(m.outside);
}

}  // namespace wt
