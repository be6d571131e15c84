// Numbers the generations of ranks, for launchers that keep one rendezvous store for all of them. torchrun's agents
// count restarts separately, so that their counts may differ after a failure, and values of an earlier generation in
// the store could be taken for current ones. Therefore rank 0 takes the next number from the store and answers every
// rank that asks under a unique name.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace c10d {
class Store;
}

namespace wt {

/// Rank 0: the number of the new generation, from 0.
int open_generation(c10d::Store& store);
/// Rank 0: answers arriving ranks of `world` until all have an answer, or `sleep` (seconds) returns false.
void answer_arrivals(c10d::Store& store, std::int64_t world, int generation, const std::function<bool(double)>& sleep);
/// Other ranks: asks, and waits for the answer. Throws the store's error if none comes within its time limit.
int ask_generation(c10d::Store& store, std::int64_t rank);

/// Prefix of all keys of a generation, which hides values that a failed generation left in the store.
std::string store_prefix(int generation);

}  // namespace wt
