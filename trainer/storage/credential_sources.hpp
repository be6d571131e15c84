// Credentials that come from a service or a program.
#pragma once
#include <optional>
#include <string>

#include "trainer/storage/sigv4.hpp"

namespace wt {

/// STS AssumeRoleWithWebIdentity, used on EKS. Endpoint: AWS_ENDPOINT_URL_STS, by default the region's.
AwsCredentials credentials_of_web_identity(HttpClient& http, const std::string& role, const std::string& token_file,
                                           const std::string& session);
/// Runs the user's configured program through the shell and reads the JSON that it prints.
AwsCredentials credentials_of_process(const std::string& command);
/// AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI, used on ECS and EKS Pod Identity; none: neither is set.
std::optional<AwsCredentials> credentials_of_container(HttpClient& http);
/// The role of an EC2 instance by IMDSv2; none: not on EC2, or no role.
std::optional<AwsCredentials> credentials_of_instance(HttpClient& http);

/// Parses "2026-11-26T17:00:00Z"; 0 for "". Throws Error{runtime} for anything else.
std::time_t expiration_time(const std::string& text, const std::string& source);

}  // namespace wt
