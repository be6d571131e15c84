// Requests to one bucket: addressed, signed, sent again while that may help.
#pragma once
#include <functional>
#include <set>

#include "trainer/storage/credentials.hpp"
#include "trainer/storage/s3_error.hpp"

namespace wt {

struct S3Call {
  std::string method = "GET";
  std::string key = "";  ///< of the object; "" = the bucket itself
  std::vector<std::pair<std::string, std::string>> query = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = "";
  std::optional<HttpFileRange> body_file = {}, to_file = {};
  std::uint64_t at_most = 16 << 20;
  std::uint64_t awaited_bytes = 0;  ///< that an answer kept in memory may have: its time follows them
  double try_s = 0;                 ///< of each try, also without a byte on its way; 0: request_timeout_s()
  double deadline_s = 0;            ///< of steady_s(), all tries together; 0: request_timeout_s() of it for each try
  std::set<int> also_taken = {};    ///< statuses beside 2xx that are an answer and no error
  const std::atomic<bool>* given_up = nullptr;
  /// What is wrong with an answer, so that it is asked for again; "" = nothing.
  std::function<std::string(const HttpResponse&)> wrong = {};
  /// Asked before a try that follows a lost or failed one: whether the answer is not needed any more, because the one
  /// before had its effect.
  std::function<bool()> done_already = {};
  int attempts = 0;  ///< 0: attempts_allowed()
};

class S3Client {
 public:
  explicit S3Client(S3Address address);
  S3Client(S3Address address, S3Endpoint endpoint, AwsCredentials credentials);
  const S3Address& address() const { return address_; }
  const S3Endpoint& endpoint() const { return endpoint_; }

  /// Calls under way fail soon, and all that follow.
  void give_up() { http_.give_up(); }
  /// Throws StoreFailed. An empty answer of status 0 where done_already() said so.
  HttpResponse call(const S3Call& call);
  /// An answer of any status, asked for once.
  HttpResponse call_once(const S3Call& call, const std::optional<AwsCredentials>& signer, double timeout_s);
  /// What a failure of this call is called.
  StoreFailed failure(const S3Call& call, const HttpResponse& response, const std::optional<AwsCredentials>& signer);

 private:
  std::string asked(const S3Call& call) const;

  S3Address address_;
  S3Endpoint endpoint_;
  HttpClient http_;
  CredentialChain credentials_;
};

/// What a request may take: 30 s, and its bytes at 100 kB/s.
double request_timeout_s(std::uint64_t bytes);

}  // namespace wt
