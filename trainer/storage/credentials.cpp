#include "trainer/storage/credentials.hpp"

#include <algorithm>

#include "trainer/storage/aws_profile.hpp"
#include "trainer/storage/credential_sources.hpp"

namespace wt {
namespace {

std::optional<AwsCredentials> from_environment() {
  const auto key = environment_variable("AWS_ACCESS_KEY_ID"), secret = environment_variable("AWS_SECRET_ACCESS_KEY");
  if (key.has_value() != secret.has_value())
    throw_usage("{}: found nothing, although {} is set; set both or neither",
                key ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                key ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY");
  if (!key) return std::nullopt;
  return AwsCredentials{*key, *secret, environment_variable("AWS_SESSION_TOKEN").value_or("")};
}

std::optional<AwsCredentials> from_profile(HttpClient& http) {
  auto profile = aws_profile();
  const std::string name = environment_variable("AWS_PROFILE").value_or("default");
  if (profile.contains("aws_access_key_id") && profile.contains("aws_secret_access_key"))
    return AwsCredentials{profile["aws_access_key_id"], profile["aws_secret_access_key"], profile["aws_session_token"]};
  if (profile.contains("credential_process")) return credentials_of_process(profile["credential_process"]);
  if (profile.contains("web_identity_token_file"))
    return credentials_of_web_identity(http, profile["role_arn"], profile["web_identity_token_file"],
                                       profile["role_session_name"]);
  for (const auto& [key, value] : profile)
    if (key.starts_with("sso_") || key == "role_arn")
      throw_usage(
          "profile {}: found {}, allowed are keys, credential_process and web identity; add credential_process = aws "
          "configure export-credentials --profile {}",
          name, key, name);
  return std::nullopt;
}

}  // namespace

std::optional<AwsCredentials> find_credentials(HttpClient& http) {
  if (auto found = from_environment()) return found;
  if (const auto file = environment_variable("AWS_WEB_IDENTITY_TOKEN_FILE"))
    return credentials_of_web_identity(http, environment_variable("AWS_ROLE_ARN").value_or(""), *file,
                                       environment_variable("AWS_ROLE_SESSION_NAME").value_or(""));
  if (auto found = from_profile(http)) return found;
  if (auto found = credentials_of_container(http)) return found;
  return credentials_of_instance(http);
}

std::optional<AwsCredentials> CredentialChain::get() {
  const std::lock_guard lock(mutex_);
  const std::time_t now = std::time(nullptr);
  if (found_ && (!current_ || current_->expires == 0 || now < current_->expires - kRefresh_s)) return current_;
  try {
    auto found = find_credentials(http_);
    // A source that had credentials before and has none now is also only temporarily unavailable.
    if (!found && current_ && now < current_->expires) return current_;
    current_ = std::move(found);
  } catch (const Error&) {
    // The source is temporarily unavailable: keep using credentials that are still valid.
    if (!found_ || !current_ || now >= current_->expires) throw;
  }
  found_ = true;
  return current_;
}

bool CredentialChain::forget(const AwsCredentials& expired) {
  const std::lock_guard lock(mutex_);
  if (expired.expires == 0) return false;  // from the environment or a file, which would give the same again
  if (current_ && current_->access_key == expired.access_key) found_ = false;
  return true;
}

}  // namespace wt
