// Who signs a request. The chain goes in this order: AWS_ACCESS_KEY_ID and its fellows; AWS_WEB_IDENTITY_TOKEN_FILE
// with AWS_ROLE_ARN (STS); the profile of ~/.aws (keys, credential_process, web identity; not SSO); the container's
// endpoint; the instance's role (IMDSv2); nobody, for buckets that are open to all. No error and no message of it holds
// a secret.
#pragma once
#include <mutex>
#include <optional>

#include "trainer/storage/sigv4.hpp"

namespace wt {

/// One walk along the chain; none: requests go unsigned. Throws Error{usage} where a source is configured and wrong,
/// Error{runtime} where it does not answer.
std::optional<AwsCredentials> find_credentials(HttpClient& http);

/// Keeps what was found and looks again kRefresh_s before it expires. May be used by several threads.
class CredentialChain {
 public:
  static constexpr int kRefresh_s = 300;

  explicit CredentialChain(HttpClient& http) : http_(http) {}
  /// These, whatever the chain has.
  CredentialChain(HttpClient& http, AwsCredentials fixed) : http_(http), found_(true), current_(std::move(fixed)) {}
  std::optional<AwsCredentials> get();
  /// The store says that these have expired. Whether the next get() may give others.
  bool forget(const AwsCredentials& expired);

 private:
  HttpClient& http_;
  std::mutex mutex_;
  bool found_ = false;
  std::optional<AwsCredentials> current_;
};

}  // namespace wt
