// A folder as a store that behaves like a bucket, so that the same code runs, and is tested, on both.
#pragma once
#include "trainer/storage/store.hpp"

namespace wt {

class FileStore : public Store {
 public:
  explicit FileStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::string address() const override { return folder_.string(); }
  std::optional<std::uint64_t> size(const std::string& name) override;
  std::string read(const std::string& name, std::uint64_t at_most) override;
  void fetch(const std::string& name, const std::filesystem::path& to, double timeout_s) override;
  void put(const std::string& name, std::string_view bytes, bool only_if_absent = false) override;
  void upload(const std::filesystem::path& from, const std::string& name) override;
  std::vector<StoreEntry> list(const std::string& prefix) override;
  void remove(const std::string& name) override;

 private:
  std::filesystem::path path_of(const std::string& name) const;
  std::filesystem::path made_path_of(const std::string& name) const;  ///< also creates its folders

  std::filesystem::path folder_;
};

}  // namespace wt
