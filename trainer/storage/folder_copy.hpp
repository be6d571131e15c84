// Whole folders between a store and this machine: pretrained weights, exports.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

namespace wt {

/// Where fetch_folder() puts what is at `address`, in `output`; `address` itself if it is a folder of this machine.
std::filesystem::path local_folder_of(const std::string& address, const std::filesystem::path& output);
/// All files of `address` in `folder`, which is there whole or not at all; one that is there already stays as it is.
/// `moved` hears whenever some bytes have come. Throws StoreFailed; Error{usage} where nothing is at `address`.
void fetch_folder(const std::string& address, const std::filesystem::path& folder, std::function<void()> moved = {});
/// All files of `folder` to `address`, those named *.json last: their readers look for these first. Throws StoreFailed.
void upload_folder(const std::filesystem::path& folder, const std::string& address, std::function<void()> moved = {});

}  // namespace wt
