// What ranks find alone and have to judge together before they read a checkpoint, through the rendezvous store.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trainer/communication/communicator.hpp"

namespace wt {

/// What the first `readers` ranks found, put together on rank 0, which judges it for all: judge(results by rank) ->
/// verdict. Collective; `about` names it and is used once. What `judge` throws leaves rank 0, and every other rank
/// throws Error{runtime} with the same text: nobody takes no verdict for an empty one.
std::string agree(Communicators& communicators, std::int64_t readers, const std::string& about, const std::string& own,
                  const std::function<std::string(const std::vector<std::string>&)>& judge);

}  // namespace wt
