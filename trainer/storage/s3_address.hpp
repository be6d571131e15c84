// Bucket, endpoint and region of an S3 address.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace wt {

struct S3Address {
  std::string bucket = "";
  std::string prefix = "";  ///< "" or "a/b", without leading and trailing slashes
  std::string text() const { return "s3://" + bucket + (prefix.empty() ? "" : "/" + prefix); }
  /// The object's key in the bucket.
  std::string key(const std::string& name) const { return prefix.empty() ? name : prefix + "/" + name; }
};

/// Throws Error{usage} for text other than s3://bucket/prefix.
S3Address parse_s3_address(const std::string& address);

struct S3Endpoint {
  std::string url;  ///< scheme and host of the bucket's requests, with "/bucket" in path style; no trailing slash
  std::string region = "us-east-1";
  bool aws = false;  ///< Amazon's own endpoint
};

/// S3_ENDPOINT_URL, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile's endpoint_url, in path style. Otherwise
/// Amazon's, with the bucket in the host, except for buckets with dots, which no certificate matches. Throws
/// Error{usage} for an endpoint that is not an http(s) address.
S3Endpoint s3_endpoint(const std::string& bucket);

/// "a=1&uploads=", encoded and sorted.
std::string encoded_query(std::vector<std::pair<std::string, std::string>> query);

}  // namespace wt
