// The first failure of a generation of ranks, known to all of them through the rendezvous store: a user reads one
// cause, once, and not one message a rank of which most are consequences.
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
  std::vector<std::int64_t> missed = {};  ///< ranks that others wait for and that do not answer, ascending
};

/// One line on stderr that names the rank.
void print(const Failure& failure);

/// What the first failed rank put down, if one has. Throws what the store throws.
std::optional<Failure> first_failure(c10d::Store& store);

/// Puts `own` down unless another rank was first, sees to it that the first failure is printed on stderr exactly once,
/// and returns it. A usage error is mostly found by every rank: rank 0 speaks. Any other is told by the rank that has
/// it. Takes up to 3 s, when a rank dies in the middle of it.
Failure settle_failure(c10d::Store& store, const Failure& own);

/// The host of the store stays until the other ranks have settled, or `at_most_s` have passed.
void wait_until_settled(c10d::Store& store, std::int64_t others, double at_most_s);

}  // namespace wt
