#include "configs/spec/support/utf8.hpp"

#include <nlohmann/json.hpp>

namespace wt {

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();  // refuses what is not
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

}  // namespace wt
