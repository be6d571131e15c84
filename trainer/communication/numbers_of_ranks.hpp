// What every rank says, in numbers.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/communication/communicator.hpp"

namespace wt {

/// Collective. (world, own.size()) fp64 in host memory: row r is what rank r gave.
at::Tensor numbers_of_ranks(Communicators& communicators, std::int64_t world, const std::vector<double>& own);

}  // namespace wt
