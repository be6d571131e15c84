#include "trainer/communication/rank_links.hpp"

#include <algorithm>

#include "trainer/pch.hpp"

namespace wt {

void RankLinks::connect(std::vector<Link> links) {
  // The same order on all ranks prevents deadlocks: both ends of the first unconnected pair are always free.
  std::ranges::sort(links);
  const Mesh pair(/*replicate=*/2, /*shard=*/1, /*expert=*/1);
  for (const Link& link : links)
    if ((link.from == environment_.rank || link.to == environment_.rank) && !links_.contains(link))
      links_[link] =
          make_gloo_communicators(environment_, pair, watch_, OrderCheck::off, /*members=*/{link.from, link.to});
}

void RankLinks::wait_for(const std::string& what, const std::function<bool()>& over) {
  const RankWatch::Wait wait(watch_, watch_.issue(/*group=*/-1, what));
  while (!over()) {
  }
}

}  // namespace wt
