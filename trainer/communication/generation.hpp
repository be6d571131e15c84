// Which generation of ranks this is, where a launcher keeps one rendezvous store for all of them. torchrun's agents
// count restarts each by itself, so that the counts of two agents differ after a failure; what an earlier generation
// left in the store would be taken for this one's. Rank 0 therefore takes the store's next number, and tells it to
// every rank that asks under a name of its own.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace c10d {
class Store;
}

namespace wt {

/// Rank 0: the number of the generation that begins, from 0.
int open_generation(c10d::Store& store);
/// Rank 0: answers the ranks of `world` that arrive, until all have, or `sleep` (seconds) returns false.
void answer_arrivals(c10d::Store& store, std::int64_t world, int generation, const std::function<bool(double)>& sleep);
/// Another rank: asks, and waits for the answer. Throws what the store throws when none comes in its time limit.
int ask_generation(c10d::Store& store, std::int64_t rank);

/// In front of every key of a generation: what a failed one left in the store is not seen again.
std::string store_prefix(int generation);

}  // namespace wt
