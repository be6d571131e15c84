// Real text that every Debian machine has, for runs that need some: licence texts and package documentation.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "configs/files/run.hpp"

namespace wt {

/// Where a command that writes into `folder` keeps its text.
std::filesystem::path system_text_folder(const std::filesystem::path& folder, std::int64_t seq_len);

/// Packs about `bytes` of it (licences, then copyright files in the order of their names) at `folder` unless a data set
/// is there already. Says in one line what there is. Throws Error{usage} where the machine has too little of it.
std::string ensure_system_text(const std::filesystem::path& folder, std::int64_t seq_len,
                               std::uint64_t bytes = 6'000'000);

}  // namespace wt
