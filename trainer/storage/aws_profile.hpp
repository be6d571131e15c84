// The user's AWS configuration: ~/.aws/credentials and ~/.aws/config, for the profile AWS_PROFILE.
#pragma once
#include <map>
#include <optional>
#include <string>

namespace wt {

/// Keys of one profile from both files; the credentials file has priority. Empty where neither file exists.
/// AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE replace the paths. Throws Error{usage} where AWS_PROFILE names an
/// unknown profile, and for a line that is neither section, key nor comment. The message does not repeat the line,
/// because it may contain a secret.
std::map<std::string, std::string> aws_profile();

/// The variable's value, unless it is unset or empty.
std::optional<std::string> environment_variable(const char* name);

/// The first of: AWS_REGION, AWS_DEFAULT_REGION, the profile's region, us-east-1.
std::string aws_region();

}  // namespace wt
