#include "trainer/data/mds_hash.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>
#include <ranges>
#include <string_view>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"

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

/// Python's names, and OpenSSL's.
constexpr std::array<std::pair<std::string_view, const char*>, 12> kDigests = {{{"blake2b", "BLAKE2b512"},
                                                                                {"blake2s", "BLAKE2s256"},
                                                                                {"md5", "MD5"},
                                                                                {"sha1", "SHA1"},
                                                                                {"sha224", "SHA224"},
                                                                                {"sha256", "SHA256"},
                                                                                {"sha384", "SHA384"},
                                                                                {"sha512", "SHA512"},
                                                                                {"sha3_224", "SHA3-224"},
                                                                                {"sha3_256", "SHA3-256"},
                                                                                {"sha3_384", "SHA3-384"},
                                                                                {"sha3_512", "SHA3-512"}}};
constexpr std::array<std::string_view, 5> kXxhashes = {"xxh32", "xxh64", "xxh128", "xxh3_64", "xxh3_128"};

/// None: null.
const char* digest_named(std::string_view name) {
  const auto* const found = std::ranges::find(kDigests, name, &std::pair<std::string_view, const char*>::first);
  return found == kDigests.end() ? nullptr : found->second;
}

std::string digest(const char* name, Parts parts) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> state(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  bool right = state != nullptr && EVP_DigestInit_ex(state.get(), EVP_get_digestbyname(name), nullptr) == 1;
  for (const auto part : parts) right = right && EVP_DigestUpdate(state.get(), part.data(), part.size()) == 1;
  right = right && EVP_DigestFinal_ex(state.get(), bytes.data(), &size) == 1;
  if (!right) throw_runtime("hash: OpenSSL gives no {} here, allowed are hashes that it has; use xxh3_64", name);
  return fmt::format("{:02x}", fmt::join(bytes.begin(), bytes.begin() + size, ""));
}

}  // namespace

bool is_mds_hash(const std::string& name) {
  return digest_named(name) != nullptr || std::ranges::find(kXxhashes, name) != kXxhashes.end();
}

std::string mds_hash_names() { return joined(std::views::keys(kDigests), ", ") + ", " + joined(kXxhashes, ", "); }

std::string mds_hash(const std::string& name, Parts parts) {
  if (name == "xxh32") return xxh32(parts);
  if (name == "xxh64") return xxh64(parts);
  if (name == "xxh3_64") return xxh3(parts, false);
  if (name == "xxh128" || name == "xxh3_128") return xxh3(parts, true);
  if (const auto* const known = digest_named(name)) return digest(known, parts);
  throw_usage("hash: found '{}', allowed are {}; use one of them", name, mds_hash_names());
}

}  // namespace wt
