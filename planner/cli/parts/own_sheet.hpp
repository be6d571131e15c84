// What a prediction says of a GPU that nobody measured.
#pragma once
#include <string>

#include "configs/files/cluster.hpp"

namespace wt {

/// What times of a GPU rest on whose data sheet is in the cluster's file; "" where it is built in.
std::string own_sheet_sentence(const ClusterSpec& cluster);

}  // namespace wt
