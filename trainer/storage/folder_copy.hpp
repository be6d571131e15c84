// Copies whole folders between a store and this machine: pretrained weights, exports.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

namespace wt {

/// The folder in `output` that fetch_folder() uses for `address`; for a local folder `address` itself.
std::filesystem::path local_folder_of(const std::string& address, const std::filesystem::path& output);
/// Copies all files of `address` to `folder`, atomically; an existing folder is not changed. `moved` is called as bytes
/// arrive. Throws StoreFailed; Error{usage} where nothing is at `address`.
void fetch_folder(const std::string& address, const std::filesystem::path& folder, std::function<void()> moved = {});
/// Uploads all files of `folder`, *.json last, because readers look for these first. Throws StoreFailed.
void upload_folder(const std::filesystem::path& folder, const std::string& address, std::function<void()> moved = {});

}  // namespace wt
