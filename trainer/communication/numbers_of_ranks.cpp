#include "trainer/communication/numbers_of_ranks.hpp"

#include <algorithm>

#include "trainer/pch.hpp"

namespace wt {

at::Tensor numbers_of_ranks(Communicators& communicators, std::int64_t world, const std::vector<double>& own) {
  const std::int64_t width = static_cast<std::int64_t>(own.size());
  at::Tensor all = at::zeros({world, width}, at::kDouble);  // the sum over ranks fills all rows
  std::ranges::copy(own, all.data_ptr<double>() + communicators.rank() * width);
  if (world > 1) communicators.all_reduce(Axis::world, all)->wait();
  return all;
}

}  // namespace wt
