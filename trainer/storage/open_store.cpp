#include "trainer/storage/file_store.hpp"

namespace wt {

bool is_remote_address(const std::string& address) { return address.starts_with("s3://"); }

std::unique_ptr<Store> open_store(const std::string& address) {
  if (is_remote_address(address)) throw_error(Code::usage, "{}: not yet", address);
  if (address.starts_with("file://")) return std::make_unique<FileStore>(address.substr(7));
  return std::make_unique<FileStore>(address);
}

}  // namespace wt
