#include "trainer/safetensors/sealed_document.hpp"

#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"

namespace wt {
namespace {

using nlohmann::json;

constexpr const char* kSeal = "xxh3";

/// Keys are sorted and numbers have one representation, so that a document has the same text after a round trip.
std::string seal_of(const json& document) {
  const std::string text = document.dump();
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

}  // namespace

json sealed(json document) {
  document.erase(kSeal);
  document[kSeal] = seal_of(document);
  return document;
}

json unsealed(json document) {
  if (!document.is_object() || !document.contains(kSeal)) throw_usage("has no checksum of its own ({})", kSeal);
  const json found = document.at(kSeal);
  document.erase(kSeal);
  if (const std::string needed = seal_of(document); found != needed)
    throw_usage("says that its checksum is {}, it has {}", found.dump(), needed);
  return document;
}

}  // namespace wt
