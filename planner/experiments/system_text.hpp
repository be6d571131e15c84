// Real text that every Debian machine has, as training data: licence texts and package documentation.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "configs/files/run.hpp"

namespace wt {

/// The folder for the text of a command that writes into `folder`.
std::filesystem::path system_text_folder(const std::filesystem::path& folder, std::int64_t seq_len);

/// Packs about `bytes` of text (licences, then copyright files by name) into `folder`, unless a data set exists there.
/// Returns a line that describes the data. Throws Error{usage} if the machine has too little text.
std::string ensure_system_text(const std::filesystem::path& folder, std::int64_t seq_len,
                               std::uint64_t bytes = 6'000'000);

}  // namespace wt
