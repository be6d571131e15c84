// A place that holds files by name: a folder, or a prefix of a bucket. A file is there whole or not at all, whatever
// fails while it is written. Names are relative paths with "/" and neither "." nor ".." in them. Every call may come
// from several threads at once.
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

/// What a store answered, by kind; `other` and `unreachable` may go away, the rest does not.
class StoreFailed : public Error {
 public:
  enum class Kind { not_found, exists, denied, wrong_place, damaged, unreachable, other };
  StoreFailed(Kind kind, const std::string& message) : Error(Code::runtime, message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// Throws StoreFailed, of kind not_found for a name that is not there, and Error{usage} for a name as no store has it.
class Store {
 public:
  virtual ~Store() = default;
  /// For messages and profiles; without secrets.
  virtual std::string address() const = 0;
  /// In bytes; none: there is no such file.
  virtual std::optional<std::uint64_t> size(const std::string& name) = 0;
  /// A small file; of more than `at_most` bytes it throws.
  virtual std::string read(const std::string& name, std::uint64_t at_most) = 0;
  /// Writes the whole file to `to`, whose folder exists, or leaves `to` as it was. Gives up after timeout_s.
  virtual void fetch(const std::string& name, const std::filesystem::path& to, double timeout_s) = 0;
  /// Throws StoreFailed{exists} where `only_if_absent` and it is there.
  virtual void put(const std::string& name, std::string_view bytes, bool only_if_absent = false) = 0;
  /// Of a file that nobody changes meanwhile.
  virtual void upload(const std::filesystem::path& from, const std::string& name) = 0;
  /// Whose names begin so, in the order of names, those in folders too; without files that are being written.
  virtual std::vector<StoreEntry> list(const std::string& prefix) = 0;
  /// One that is not there is no error.
  virtual void remove(const std::string& name) = 0;
  /// Ends uploads to names that begin so, which earlier processes left half done and the store keeps (and charges for).
  /// Before anybody uploads to such a name.
  virtual void abandon_uploads(const std::string& /*prefix*/) {}
  /// Calls under way fail soon where they wait for a network, and so do all that follow.
  virtual void give_up() {}
  /// `heard` is told whenever a fetch or an upload has moved some bytes, by several threads at once. Before such calls.
  void on_progress(std::function<void()> heard) { heard_ = std::move(heard); }

 protected:
  void moved() const {
    if (heard_) heard_();
  }

 private:
  std::function<void()> heard_;
};

/// What a fetch of so many bytes may take: an hour, and its bytes at 100 kB/s. One that stands still ends much sooner.
inline double fetch_limit_s(std::uint64_t bytes) { return 3600 + static_cast<double>(bytes) / 1e5; }

/// "s3://bucket/prefix", "file:///folder" or a folder. Throws Error{usage} for any other address, naming what to use in
/// its place. Nothing is sent yet, and a folder is made by the first write.
std::unique_ptr<Store> open_store(const std::string& address);
/// s3://
bool is_remote_address(const std::string& address);

/// Throws Error{usage}: "ADDRESS: found 'a/../b', allowed are ...".
void check_store_name(const std::string& address, const std::string& name);

}  // namespace wt
