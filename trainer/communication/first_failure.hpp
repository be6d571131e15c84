// The first failure of a generation of ranks, shared through the rendezvous store, so that a user reads one cause,
// once, instead of a message per rank, most of which are consequences.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace c10d {
class Store;
}

namespace wt {

struct Failure {
  std::int64_t rank = 0;
  int status = 0;  ///< exit status, see Code
  std::string text;
  std::vector<std::int64_t> missed = {};  ///< ranks that others wait for and that do not respond, ascending
};

/// Prints one line on stderr that names the rank.
void print(const Failure& failure);

/// The failure that the first failed rank published, if any. Throws the store's errors.
std::optional<Failure> first_failure(c10d::Store& store);

/// Publishes `own` unless another rank was first, ensures that the first failure is printed on stderr exactly once, and
/// returns it. Usage errors, which usually occur on every rank, are printed by rank 0, all others by the rank that had
/// them. Takes up to 3 s if a rank dies in between.
Failure settle_failure(c10d::Store& store, const Failure& own);

/// Keeps the store's host alive until the other ranks have settled, or `at_most_s` have passed.
void wait_until_settled(c10d::Store& store, std::int64_t others, double at_most_s);

}  // namespace wt
