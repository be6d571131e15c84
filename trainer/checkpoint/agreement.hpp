// Before ranks read a checkpoint they exchange what each found, and agree on one verdict. Goes through the rendezvous
// store.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trainer/communication/communicator.hpp"

namespace wt {

/// Rank 0 collects what the first `readers` ranks found and judges it for all: judge(results by rank) -> verdict.
/// Collective. `about` names the question; each name may be used once. If `judge` throws, rank 0 rethrows, and every
/// other rank throws Error{runtime} with the same text, so that no rank mistakes the failure for an empty verdict.
std::string agree(Communicators& communicators, std::int64_t readers, const std::string& about, const std::string& own,
                  const std::function<std::string(const std::vector<std::string>&)>& judge);

}  // namespace wt
