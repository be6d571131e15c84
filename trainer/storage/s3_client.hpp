// Requests to one bucket: addressed, signed, and retried where that may help.
#pragma once
#include <functional>
#include <set>

#include "trainer/storage/credentials.hpp"
#include "trainer/storage/s3_error.hpp"

namespace wt {

struct S3Call {
  std::string method = "GET";
  std::string key = "";  ///< of the object; "" = the bucket
  std::vector<std::pair<std::string, std::string>> query = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = "";
  std::optional<HttpFileRange> body_file = {}, to_file = {};
  std::uint64_t at_most = 16 << 20;
  std::uint64_t awaited_bytes = 0;  ///< expected size of an answer kept in memory, for its timeout
  double try_s = 0;                 ///< limit of each try; 0: request_timeout_s()
  double deadline_s = 0;            ///< limit of all tries, by steady_s(); 0: only each try is limited
  std::set<int> also_taken = {};    ///< statuses other than 2xx that are not errors
  const std::atomic<bool>* given_up = nullptr;
  /// Checks an answer; a non-empty result is its problem, and the request is repeated.
  std::function<std::string(const HttpResponse&)> wrong = {};
  /// Called before a retry: whether the failed try has had its effect, so that no answer is needed.
  std::function<bool()> done_already = {};
  int attempts = 0;  ///< 0: attempts_allowed()
};

class S3Client {
 public:
  explicit S3Client(S3Address address);
  S3Client(S3Address address, S3Endpoint endpoint, AwsCredentials credentials);
  const S3Address& address() const { return address_; }
  const S3Endpoint& endpoint() const { return endpoint_; }

  /// Makes running calls fail soon, and all later ones at once.
  void give_up() { http_.give_up(); }
  /// Throws StoreFailed. Returns an empty answer of status 0 where done_already() returned true.
  HttpResponse call(const S3Call& call);
  /// A single try; returns an answer of any status.
  HttpResponse call_once(const S3Call& call, const std::optional<AwsCredentials>& signer, double timeout_s);
  /// The error for a failed call.
  StoreFailed failure(const S3Call& call, const HttpResponse& response, const std::optional<AwsCredentials>& signer);

 private:
  std::string asked(const S3Call& call) const;

  S3Address address_;
  S3Endpoint endpoint_;
  HttpClient http_;
  CredentialChain credentials_;
};

/// Timeout of a request: 30 s, plus its bytes at 100 kB/s.
double request_timeout_s(std::uint64_t bytes);

}  // namespace wt
