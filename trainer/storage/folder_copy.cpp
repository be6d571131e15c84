#include "trainer/storage/folder_copy.hpp"

#include <algorithm>
#include <vector>

#include "configs/base/hash.hpp"
#include "trainer/storage/store.hpp"

namespace wt {
namespace fs = std::filesystem;

namespace {

bool is_json(const fs::path& file) { return file.extension() == ".json"; }

}  // namespace

fs::path local_folder_of(const std::string& address, const fs::path& output) {
  if (!is_remote_address(address)) return address;
  return output / fmt::format("fetched-{:016x}", hash_of(address));
}

void fetch_folder(const std::string& address, const fs::path& folder, std::function<void()> moved) {
  if (fs::exists(folder)) return;
  const auto store = open_store(address);
  store->on_progress(std::move(moved));
  const auto files = store->list("");
  if (files.empty())
    throw_usage("{}: found nothing there, needs the files of a folder; correct the address", store->address());
  const fs::path partial = folder.string() + ".partial";
  fs::remove_all(partial);
  for (const StoreEntry& file : files) {
    check_store_name(store->address(), file.name);
    fs::create_directories((partial / file.name).parent_path());
    store->fetch(file.name, partial / file.name, fetch_limit_s(file.bytes));
  }
  fs::rename(partial, folder);
}

void upload_folder(const fs::path& folder, const std::string& address, std::function<void()> moved) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  std::stable_partition(files.begin(), files.end(), [](const fs::path& file) { return !is_json(file); });
  const auto store = open_store(address);
  store->on_progress(std::move(moved));
  for (const fs::path& file : files) store->upload(file, file.lexically_relative(folder).generic_string());
}

}  // namespace wt
