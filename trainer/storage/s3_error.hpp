// What an answer of S3 that is no success means, whether to ask again, and what to tell.
#pragma once
#include <string>

#include "trainer/storage/http.hpp"
#include "trainer/storage/s3_address.hpp"
#include "trainer/storage/sigv4.hpp"
#include "trainer/storage/store.hpp"

namespace wt {

struct S3Error {
  int status = 0;
  std::string code = "";     ///< "NoSuchKey"; "" where the answer has no body
  std::string message = "";  ///< the server's words
  std::string region = "";   ///< where the bucket is, if the answer says so
  std::string date = "";     ///< the server's clock
  bool transient = false;
};

S3Error s3_error_of(const HttpResponse& response);
/// The same of a body alone: a 200 may carry an <Error>. "" as code: it carries none.
S3Error s3_error_in(const HttpResponse& response);

/// What was asked: "PUT s3://bucket/key". Without the secrets of `signer`, whatever the server says.
StoreFailed s3_failure(const std::string& asked, const S3Error& error, const S3Endpoint& endpoint,
                       const std::optional<AwsCredentials>& signer);

}  // namespace wt
