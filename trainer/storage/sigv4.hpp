// AWS Signature Version 4 (docs.aws.amazon.com, "Authenticating requests (AWS Signature Version 4)"), signed in
// headers.
#pragma once
#include <ctime>
#include <string>
#include <string_view>

#include "trainer/storage/http.hpp"

namespace wt {

struct AwsCredentials {
  std::string access_key = "", secret_key = "";
  std::string session_token = "";  ///< for temporary credentials
  std::time_t expires = 0;         ///< Unix seconds; 0 = never
};

struct SigningScope {
  std::string region = "us-east-1", service = "s3";
};

/// Adds the headers x-amz-date, x-amz-content-sha256, x-amz-security-token and authorization, and signs all headers.
/// The URL's path and query must already be percent-encoded; they are sent unchanged.
void sign_request(HttpRequest& request, const AwsCredentials& credentials, const SigningScope& scope,
                  const std::string& payload_sha256, std::time_t now);

/// Lower-case hexadecimal.
std::string sha256_hex(std::string_view bytes);
/// Throws Error{runtime} where the file cannot be read or is shorter than the range.
std::string sha256_hex(const HttpFileRange& range);
std::string md5_hex(std::string_view bytes);
std::string md5_hex(const HttpFileRange& range);
std::string hmac_sha256(std::string_view key, std::string_view text);  ///< 32 bytes

/// "20150830T123600Z"
std::string amz_date(std::time_t time);

}  // namespace wt
