#include "configs/files/storage_rates.hpp"

#include "configs/base/number.hpp"

namespace wt {
namespace {

/// Scheme and bucket of an address.
std::string bucket_of(const std::string& address) {
  const std::size_t scheme = address.find("://");
  return scheme == std::string::npos ? address : address.substr(0, address.find('/', scheme + 3));
}

}  // namespace

double StorageRate::node_Bps(std::int64_t ranks) const {
  const NodeRate* below = nullptr;
  for (const NodeRate& point : node) {
    if (point.ranks >= ranks) {
      if (below == nullptr) return point.Bps * as_double(ranks) / as_double(point.ranks);
      const double share = as_double(ranks - below->ranks) / as_double(point.ranks - below->ranks);
      return below->Bps + share * (point.Bps - below->Bps);
    }
    below = &point;
  }
  return below->Bps;
}

bool same_store(const std::string& a, const std::string& b) { return bucket_of(a) == bucket_of(b); }

std::string store_words(const std::string& store) { return store.empty() ? "a file system" : store; }

}  // namespace wt
