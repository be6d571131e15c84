#include "configs/base/text.hpp"
#include "trainer/storage/file_store.hpp"
#include "trainer/storage/s3_store.hpp"

namespace wt {
namespace {

struct OtherScheme {
  const char* scheme;
  const char* instead;
};

const OtherScheme kOtherSchemes[] = {
    {"gs", "s3:// with S3_ENDPOINT_URL=https://storage.googleapis.com and HMAC keys"},
    {"oci", "s3:// with S3_ENDPOINT_URL=https://NAMESPACE.compat.objectstorage.REGION.oci.customer-oci.com"},
    {"r2", "s3:// with S3_ENDPOINT_URL=https://ACCOUNT.r2.cloudflarestorage.com and AWS_REGION=auto"},
    {"az", "s3:// through s3proxy, or a folder that rclone mounts: Azure has no S3 interface"},
    {"azure", "s3:// through s3proxy, or a folder that rclone mounts: Azure has no S3 interface"},
    {"azure-dl", "s3:// through s3proxy, or a folder that rclone mounts: Azure has no S3 interface"},
    {"abfs", "s3:// through s3proxy, or a folder that rclone mounts: Azure has no S3 interface"},
    {"abfss", "s3:// through s3proxy, or a folder that rclone mounts: Azure has no S3 interface"},
    {"wasbs", "s3:// through s3proxy, or a folder that rclone mounts: Azure has no S3 interface"},
    {"hf", "a folder into which `huggingface-cli download` has written"},
};

}  // namespace

bool is_remote_address(const std::string& address) { return address.starts_with("s3://"); }

std::unique_ptr<Store> open_store(const std::string& address) {
  if (is_remote_address(address)) return std::make_unique<S3Store>(parse_s3_address(address));
  std::string folder = address;
  if (const auto end = address.find("://"); end != std::string::npos) {
    const std::string scheme = lower(address.substr(0, end));
    for (const OtherScheme& other : kOtherSchemes)
      if (scheme == other.scheme)
        throw_usage("{}: found {}://, allowed are s3://, file:// and folders; use {}", address, scheme, other.instead);
    if (scheme != "file")
      throw_usage("{}: found {}://, allowed are s3://, file:// and folders; use one of them", address, scheme);
    folder = address.substr(end + 3);
    if (!folder.starts_with('/'))
      throw_usage("{}: found host '{}', needs file:///folder; write three slashes", address,
                  folder.substr(0, folder.find('/')));
  }
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (folder.empty() || folder.find('\0') != std::string::npos)
    throw_usage("storage: found '{}', allowed are s3://, file:// and folders; name one", address);
  return std::make_unique<FileStore>(folder);
}

}  // namespace wt
