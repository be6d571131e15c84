// Files of configs/constants: what `windtunnel calibrate --published` fitted to the tables of configs/measurements.
// Commands read them, so that no command fits anything.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "configs/base/error.hpp"

namespace wt {

/// The member `constants` of configs/constants/NAME.json. Throws Error{usage} where the file is missing or of another
/// schema.
nlohmann::json read_fitted(const std::string& name);

/// Error{usage} of such a file whose content is not what this program reads.
[[noreturn]] void throw_unfitted(const std::string& name, const std::string& why);

/// The same as the type whose from_json reads it.
template <typename Constants>
Constants fitted_constants(const std::string& name) {
  try {
    return read_fitted(name).get<Constants>();
  } catch (const nlohmann::json::exception& e) {
    throw_unfitted(name, e.what());
  }
}

/// The whole document: constants, and the tables that they were fitted to with their hashes.
nlohmann::json fitted_document(nlohmann::json constants, const nlohmann::json& tables);

}  // namespace wt
