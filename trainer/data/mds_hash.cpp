#include "trainer/data/mds_hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <memory>

#include "configs/spec/support/error.hpp"

namespace wt {
namespace {

using Parts = std::initializer_list<std::span<const std::byte>>;

std::string xxh32(Parts parts) {
  const std::unique_ptr<XXH32_state_t, decltype(&XXH32_freeState)> state(XXH32_createState(), XXH32_freeState);
  XXH32_reset(state.get(), 0);
  for (const auto part : parts) XXH32_update(state.get(), part.data(), part.size());
  return fmt::format("{:08x}", XXH32_digest(state.get()));
}

std::string xxh64(Parts parts) {
  const std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)> state(XXH64_createState(), XXH64_freeState);
  XXH64_reset(state.get(), 0);
  for (const auto part : parts) XXH64_update(state.get(), part.data(), part.size());
  return fmt::format("{:016x}", XXH64_digest(state.get()));
}

std::string xxh3(Parts parts, bool wide) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  if (wide) {
    XXH3_128bits_reset(state.get());
    for (const auto part : parts) XXH3_128bits_update(state.get(), part.data(), part.size());
    const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }
  XXH3_64bits_reset(state.get());
  for (const auto part : parts) XXH3_64bits_update(state.get(), part.data(), part.size());
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

}  // namespace

bool is_mds_hash(const std::string& name) {
  return name == "xxh32" || name == "xxh64" || name == "xxh3_64" || name == "xxh128" || name == "xxh3_128";
}

std::string mds_hash(const std::string& name, Parts parts) {
  if (name == "xxh32") return xxh32(parts);
  if (name == "xxh64") return xxh64(parts);
  if (name == "xxh3_64") return xxh3(parts, false);
  if (name == "xxh128" || name == "xxh3_128") return xxh3(parts, true);
  throw_error(Code::usage, "hash: found '{}', allowed are xxh32, xxh64, xxh3_64, xxh128, xxh3_128; use one of them",
              name);
}

}  // namespace wt
