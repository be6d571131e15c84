// JSON documents that carry a checksum of themselves, so that a flipped bit anywhere in one is seen.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace wt {

/// The object with one more key, `xxh3`: XXH3-64 of its compact text without that key.
nlohmann::json sealed(nlohmann::json document);

/// What was sealed. Throws Error{usage} where `xxh3` is missing or is not that of the rest.
nlohmann::json unsealed(nlohmann::json document);

}  // namespace wt
