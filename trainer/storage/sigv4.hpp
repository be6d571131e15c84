// AWS Signature Version 4 (docs.aws.amazon.com, "Authenticating requests (AWS Signature Version 4)"), signed in
// headers.
#pragma once
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "trainer/storage/http.hpp"

namespace wt {

struct AwsCredentials {
  std::string access_key = "", secret_key = "";
  std::string session_token = "";  ///< of temporary ones
  std::time_t expires = 0;         ///< Unix seconds; 0 = they stay
};

struct SigningScope {
  std::string region = "us-east-1", service = "s3";
};

/// Adds host's fellow headers x-amz-date, x-amz-content-sha256, x-amz-security-token and authorization, and signs every
/// header that is there. The URL's path and query are percent-encoded already; path and query go out as they stand.
void sign_request(HttpRequest& request, const AwsCredentials& credentials, const SigningScope& scope,
                  const std::string& payload_sha256, std::time_t now);

/// Lower-case hexadecimal.
std::string sha256_hex(std::string_view bytes);
/// Throws Error{runtime} where the file cannot be read or is shorter.
std::string sha256_hex(const HttpFileRange& range);
std::string md5_hex(std::string_view bytes);
std::string md5_hex(const HttpFileRange& range);
std::string hmac_sha256(std::string_view key, std::string_view text);  ///< 32 bytes

/// "20150830T123600Z"
std::string amz_date(std::time_t time);

}  // namespace wt
