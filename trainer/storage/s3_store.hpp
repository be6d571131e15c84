// A prefix of a bucket in S3 or a compatible store. Files above kPart_bytes are read in ranges and written in parts,
// kConnections at a time. All ranges must have the version of the first (If-Match). Parts are signed with their
// SHA-256, so that the store rejects parts that changed in transit. Whole files are verified by the XXH3 hashes in
// manifests and shard indexes, not by a store's own checksum.
#pragma once
#include "trainer/storage/s3_client.hpp"

namespace wt {

class S3Store : public Store {
 public:
  static constexpr std::uint64_t kPart_bytes = 8 << 20;     ///< 8-16 MiB: AWS's advice for ranges and parts
  static constexpr std::uint64_t kMost_parts = 10000;       ///< of an upload
  static constexpr std::uint64_t kMost_bytes = 5ull << 40;  ///< of an object
  static constexpr unsigned kConnections = 16;

  explicit S3Store(S3Address address) : client_(std::move(address)) {}
  /// Uses this endpoint instead of the environment's.
  S3Store(S3Address address, S3Endpoint endpoint, AwsCredentials credentials)
      : client_(std::move(address), std::move(endpoint), std::move(credentials)) {}
  std::string address() const override { return client_.address().text(); }
  std::optional<std::uint64_t> size(const std::string& name) override;
  std::string read(const std::string& name, std::uint64_t at_most) override;
  void fetch(const std::string& name, const std::filesystem::path& to, double timeout_s) override;
  void put(const std::string& name, std::string_view bytes, bool only_if_absent = false) override;
  void upload(const std::filesystem::path& from, const std::string& name) override;
  std::vector<StoreEntry> list(const std::string& prefix) override;
  void remove(const std::string& name) override;
  void abandon_uploads(const std::string& prefix) override;
  void give_up() override { client_.give_up(); }

  /// Bytes of a part for a file of this size: large enough for kMost_parts.
  static std::uint64_t part_bytes(std::uint64_t file_bytes);

 private:
  std::string key_of(const std::string& name) const;
  struct Head {
    std::uint64_t bytes = 0;
    std::string etag;
  };
  std::optional<Head> head(const std::string& key);
  void upload_parts(const HttpFileRange& file, const std::string& key);
  /// Returns the ETag of each part, in order.
  std::vector<std::string> send_parts(const HttpFileRange& file, const std::string& key, const std::string& id);
  void complete(const std::string& key, const std::string& id, std::uint64_t bytes,
                const std::vector<std::string>& etags);
  void abort(const std::string& key, const std::string& id) noexcept;

  S3Client client_;
};

/// "\"abc-2\"", AWS's ETag for a file uploaded in parts: the MD5 of the parts' MD5s, and their number. "" if an ETag is
/// not an MD5.
std::string etag_of_parts(const std::vector<std::string>& etags);

}  // namespace wt
