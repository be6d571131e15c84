// Finds the credentials that sign requests. Order of the chain: AWS_ACCESS_KEY_ID and related variables;
// AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN (STS); the profile in ~/.aws (keys, credential_process, web identity;
// not SSO); the container's endpoint; the instance's role (IMDSv2); none, for public buckets. Error messages contain no
// secrets.
#pragma once
#include <mutex>
#include <optional>

#include "trainer/storage/sigv4.hpp"

namespace wt {

/// Walks the chain once; none: requests are not signed. Throws Error{usage} where a source is misconfigured,
/// Error{runtime} where it does not answer.
std::optional<AwsCredentials> find_credentials(HttpClient& http);

/// Caches credentials and renews them kRefresh_s before they expire. Thread-safe.
class CredentialChain {
 public:
  static constexpr int kRefresh_s = 300;

  explicit CredentialChain(HttpClient& http) : http_(http) {}
  /// Uses fixed credentials instead of the chain.
  CredentialChain(HttpClient& http, AwsCredentials fixed) : http_(http), found_(true), current_(std::move(fixed)) {}
  std::optional<AwsCredentials> get();
  /// Call when the store rejects credentials as expired. Returns whether the next get() may return others.
  bool forget(const AwsCredentials& expired);

 private:
  HttpClient& http_;
  std::mutex mutex_;
  bool found_ = false;
  std::optional<AwsCredentials> current_;
};

}  // namespace wt
