// Gathers a few numbers from every rank.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/communication/communicator.hpp"

namespace wt {

/// Collective. Returns (world, own.size()) fp64 in host memory: row r is rank r's `own`.
at::Tensor numbers_of_ranks(Communicators& communicators, std::int64_t world, const std::vector<double>& own);

}  // namespace wt
