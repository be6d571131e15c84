// JSON documents with a checksum of themselves, to detect any flipped bit.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace wt {

/// Adds the key `xxh3`: XXH3-64 of the document's compact text without that key.
nlohmann::json sealed(nlohmann::json document);

/// Removes the checksum. Throws Error{usage} where `xxh3` is missing or does not match.
nlohmann::json unsealed(nlohmann::json document);

}  // namespace wt
