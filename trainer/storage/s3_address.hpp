// Which bucket, at which endpoint, in which region.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace wt {

struct S3Address {
  std::string bucket = "";
  std::string prefix = "";  ///< "" or "a/b": without slashes around it
  std::string text() const { return "s3://" + bucket + (prefix.empty() ? "" : "/" + prefix); }
  /// The object's name in the bucket.
  std::string key(const std::string& name) const { return prefix.empty() ? name : prefix + "/" + name; }
};

/// Throws Error{usage} where it is no s3://bucket/prefix.
S3Address parse_s3_address(const std::string& address);

struct S3Endpoint {
  std::string
      url;  ///< scheme and host of the bucket's requests, with "/bucket" in path style; without a slash at its end
  std::string region = "us-east-1";
  bool aws = false;  ///< Amazon's own
};

/// S3_ENDPOINT_URL, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's endpoint_url: path style. Else Amazon's, with
/// the bucket in the host, but for buckets with dots: no certificate fits these. Throws Error{usage} for an endpoint
/// that is no http(s) address.
S3Endpoint s3_endpoint(const std::string& bucket);

/// "a=1&uploads=", encoded and sorted.
std::string encoded_query(std::vector<std::pair<std::string, std::string>> query);

}  // namespace wt
