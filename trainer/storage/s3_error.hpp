// The meaning of an S3 error, whether to retry, and the message.
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
  std::string message = "";  ///< the server's text
  std::string region = "";   ///< the bucket's region, if the answer gives it
  std::string date = "";     ///< the server's clock
  bool transient = false;
};

S3Error s3_error_of(const HttpResponse& response);
/// The same from the body only, because a 200 may contain an <Error>. `code` is "" if it contains none.
S3Error s3_error_in(const HttpResponse& response);

/// `asked`: the request, "PUT s3://bucket/key". The message never contains the secrets of `signer`.
StoreFailed s3_failure(const std::string& asked, const S3Error& error, const S3Endpoint& endpoint,
                       const std::optional<AwsCredentials>& signer);

}  // namespace wt
