// A place with files by name: a folder, or a prefix of a bucket. Files are written atomically. Names are relative paths
// with "/", without "." and "..". All calls are thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/base/error.hpp"

namespace wt {

struct StoreEntry {
  std::string name;
  std::uint64_t bytes = 0;
};

/// An error of a store, by kind. Only `other` and `unreachable` may be temporary.
class StoreFailed : public Error {
 public:
  enum class Kind { not_found, exists, denied, wrong_place, damaged, unreachable, other };
  StoreFailed(Kind kind, const std::string& message) : Error(Code::runtime, message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// Throws StoreFailed (not_found for a missing name), and Error{usage} for an invalid name.
class Store {
 public:
  virtual ~Store() = default;
  /// For messages and profiles; without secrets.
  virtual std::string address() const = 0;
  /// Bytes of a file; none: there is no such file.
  virtual std::optional<std::uint64_t> size(const std::string& name) = 0;
  /// Reads a small file; throws for more than `at_most` bytes.
  virtual std::string read(const std::string& name, std::uint64_t at_most) = 0;
  /// Copies a file to `to`, whose folder must exist, atomically. Gives up after timeout_s.
  virtual void fetch(const std::string& name, const std::filesystem::path& to, double timeout_s) = 0;
  /// With `only_if_absent`, throws StoreFailed{exists} where the file exists.
  virtual void put(const std::string& name, std::string_view bytes, bool only_if_absent = false) = 0;
  /// The local file must not change meanwhile.
  virtual void upload(const std::filesystem::path& from, const std::string& name) = 0;
  /// Files whose names begin with `prefix`, sorted by name, including those in subfolders, without incomplete ones.
  virtual std::vector<StoreEntry> list(const std::string& prefix) = 0;
  /// Removing a missing file is no error.
  virtual void remove(const std::string& name) = 0;
  /// Aborts incomplete uploads of earlier processes to names with this prefix, which the store keeps and charges for.
  /// Call it before any upload to such a name.
  virtual void abandon_uploads(const std::string& /*prefix*/) {}
  /// Makes calls that wait for a network fail soon, and all later ones at once.
  virtual void give_up() {}
  /// `heard` is called, possibly from several threads, as bytes of fetches and uploads move. Set it before such calls.
  void on_progress(std::function<void()> heard) { heard_ = std::move(heard); }

 protected:
  void moved() const {
    if (heard_) heard_();
  }

 private:
  std::function<void()> heard_;
};

/// Time limit of a fetch: an hour, plus its bytes at 100 kB/s. A stalled fetch fails much earlier.
inline double fetch_limit_s(std::uint64_t bytes) { return 3600 + static_cast<double>(bytes) / 1e5; }

/// "s3://bucket/prefix", "file:///folder" or a folder. Throws Error{usage} for any other address, with what to use
/// instead. Sends no request; a folder is created by the first write.
std::unique_ptr<Store> open_store(const std::string& address);
/// Whether it begins with s3://.
bool is_remote_address(const std::string& address);

/// Throws Error{usage}: "ADDRESS: found 'a/../b', allowed are ...".
void check_store_name(const std::string& address, const std::string& name);

}  // namespace wt
