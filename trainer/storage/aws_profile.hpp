// The AWS configuration of the user: ~/.aws/credentials and ~/.aws/config, by AWS_PROFILE.
#pragma once
#include <map>
#include <optional>
#include <string>

namespace wt {

/// Keys of one profile, from both files; the file of credentials goes before. Empty where neither file is there. The
/// paths are those of AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE, where these are set. Throws Error{usage} where
/// AWS_PROFILE names a profile that neither file has, and for a line that is neither section, key nor comment (without
/// its text: it may be a secret).
std::map<std::string, std::string> aws_profile();

/// Set and not empty.
std::optional<std::string> environment_variable(const char* name);

/// AWS_REGION, AWS_DEFAULT_REGION, the profile's region, us-east-1.
std::string aws_region();

}  // namespace wt
