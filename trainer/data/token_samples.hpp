// Random access to samples of tokens, independent of their storage.
#pragma once
#include <cstdint>
#include <vector>

namespace wt {

class TokenSamples {
 public:
  virtual ~TokenSamples() = default;
  virtual std::int64_t size() const = 0;
  /// Token ids of sample `id` (0..size()-1). Thread-safe; waits for its shard. Throws Error{usage} for other ids and
  /// damaged samples, Error{runtime} when the shard cannot be fetched.
  virtual std::vector<std::int32_t> tokens(std::int64_t id) const = 0;
};

}  // namespace wt
