#include "trainer/storage/s3_error.hpp"

#include <algorithm>
#include <pugixml.hpp>

namespace wt {
namespace {

using Kind = StoreFailed::Kind;

struct Explained {
  const char* code;
  Kind kind;
  const char* advice;
};

constexpr const char* kCheckRights = "check the policy of the bucket and of the role or user";

// Sorted by how common they are on a new machine.
const Explained kExplained[] = {
    {"AccessDenied", Kind::denied, kCheckRights},
    {"AllAccessDisabled", Kind::denied, kCheckRights},
    {"InvalidAccessKeyId", Kind::denied,
     "the store does not know this access key; check AWS_ACCESS_KEY_ID and the endpoint"},
    {"SignatureDoesNotMatch", Kind::denied,
     "the secret key does not belong to the access key; check AWS_SECRET_ACCESS_KEY"},
    {"ExpiredToken", Kind::denied,
     "the session token has expired; get new credentials, or use a source that refreshes them"},
    {"ExpiredTokenException", Kind::denied, "the session token has expired; get new credentials"},
    {"InvalidToken", Kind::denied, "the session token is not of this access key; check AWS_SESSION_TOKEN"},
    {"NoSuchBucket", Kind::wrong_place, "there is no such bucket; check its name and the endpoint (S3_ENDPOINT_URL)"},
    {"NoSuchKey", Kind::not_found, "there is no such file; check its name"},
    {"NoSuchUpload", Kind::other, "the upload was aborted from outside; do two runs write to the same place?"},
    {"PreconditionFailed", Kind::exists, "it is there already and is not replaced; remove it or choose another name"},
    {"EntityTooLarge", Kind::other, "it is larger than the store takes; use more ranks or a store with a larger limit"},
    {"QuotaExceeded", Kind::other, "the store's quota is used up; remove files or raise it"},
    {"XMinioStorageFull", Kind::other, "the store's disks are full; remove files"},
    {"NotImplemented", Kind::other, "the store lacks this part of S3; use one that has it"},
};

const Explained kRequestTimeTooSkewed{"RequestTimeTooSkewed", Kind::denied, ""};

/// A server's message, made fit for a log: without the signer's secrets, in one line, shortened. A message that repeats
/// what was signed is dropped.
std::string told_text(std::string text, const std::optional<AwsCredentials>& signer, std::size_t most) {
  for (const char* mark : {"AWS4-HMAC-SHA256", "Signature="})
    if (text.find(mark) != std::string::npos) return "";
  if (signer)
    for (const std::string& secret : {signer->secret_key, signer->session_token})
      for (std::size_t at = 0; secret.size() >= 4 && (at = text.find(secret, at)) != std::string::npos;)
        text.replace(at, secret.size(), "***");
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text.substr(0, most);
}

bool transient_status(int status) {
  return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

bool transient_code(const std::string& code) {
  static const char* const codes[] = {"InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout", "Throttling",
                                      "ThrottlingException", "OperationAborted", "ConditionalRequestConflict",
                                      "TooManyRequests", "RequestLimitExceeded",
                                      // for bytes that changed in transit
                                      "XAmzContentSHA256Mismatch", "BadDigest", "IncompleteBody"};
  return std::ranges::any_of(codes, [&](const char* known) { return code == known; });
}

}  // namespace

S3Error s3_error_in(const HttpResponse& response) {
  S3Error error{.status = response.status};
  error.region = response.header("x-amz-bucket-region");
  error.date = response.header("date");
  pugi::xml_document document;
  if (document.load_string(response.body.c_str()))
    if (const pugi::xml_node node = document.child("Error")) {
      error.code = node.child_value("Code");
      if (error.code.empty()) error.code = "Error";
      error.message = node.child_value("Message");
      if (error.region.empty()) error.region = node.child_value("Region");
    }
  return error;
}

S3Error s3_error_of(const HttpResponse& response) {
  S3Error error = s3_error_in(response);
  if (error.code.empty() && response.status == 404) error.code = "NoSuchKey";
  if (error.code.empty() && response.status == 412) error.code = "PreconditionFailed";
  if (error.code.empty() && response.status == 501) error.code = "NotImplemented";
  if (error.code == "NotImplemented")
    error.transient = false;
  else
    error.transient = transient_status(response.status) || transient_code(error.code);
  return error;
}

StoreFailed s3_failure(const std::string& asked, const S3Error& error, const S3Endpoint& endpoint,
                       const std::optional<AwsCredentials>& signer) {
  const auto told = [&](Kind kind, const std::string& advice) {
    const std::string code = told_text(error.code, signer, 60);
    return StoreFailed(kind, fmt::format("{}: found status {}{}{}, needs success; {}", asked, error.status,
                                         code.empty() ? "" : " ", code, advice));
  };
  const bool elsewhere = error.status == 301 || error.status == 307 || error.code == "PermanentRedirect" ||
                         error.code == "AuthorizationHeaderMalformed" ||
                         error.code == "IllegalLocationConstraintException";
  if (const std::string region = told_text(error.region, signer, 40);
      elsewhere && !region.empty() && region != endpoint.region)
    return told(Kind::wrong_place, fmt::format("the bucket is in region {}, asked was {}; set AWS_REGION={}", region,
                                               endpoint.region, region));
  if (error.status / 100 == 3)
    return told(Kind::wrong_place, "the bucket is at another endpoint; set AWS_REGION or S3_ENDPOINT_URL to its own");
  if (error.code == kRequestTimeTooSkewed.code)
    return told(kRequestTimeTooSkewed.kind,
                fmt::format("the clocks differ: here it is {}, the store says {}; set the clock of this machine",
                            amz_date(std::time(nullptr)), told_text(error.date, signer, 40)));
  for (const Explained& known : kExplained)
    if (error.code == known.code) {
      const bool nobody = known.kind == Kind::denied && !signer;
      return told(known.kind, nobody ? "no credentials were found, so that the request was unsigned; set "
                                       "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another source (docs/s3.md)"
                                     : known.advice);
    }
  if (error.status == 401 || error.status == 403)
    return told(Kind::denied, signer ? kCheckRights : "no credentials were found; set AWS_ACCESS_KEY_ID (docs/s3.md)");
  if (error.transient)
    return told(Kind::unreachable, "the store stayed busy or broken over all tries; try again later");
  const std::string message = told_text(error.message, signer, 200);
  return told(Kind::other, message.empty() ? "check the address and the endpoint" : "the store says: " + message);
}

}  // namespace wt
