#include "trainer/storage/s3_client.hpp"

#include "configs/base/clock.hpp"
#include "trainer/storage/retry.hpp"

namespace wt {
namespace {

std::uint64_t bytes_of(const S3Call& call) {
  if (call.to_file) return call.to_file->bytes < (std::uint64_t{1} << 50) ? call.to_file->bytes : 0;
  return call.body_file ? call.body_file->bytes : call.body.size() + call.awaited_bytes;
}

bool has_expired(const S3Error& error) {
  return error.code == "ExpiredToken" || error.code == "ExpiredTokenException" || error.code == "RequestExpired";
}

}  // namespace

double request_timeout_s(std::uint64_t bytes) { return 30 + static_cast<double>(bytes) / 1e5; }

S3Client::S3Client(S3Address address)
    : address_(std::move(address)), endpoint_(s3_endpoint(address_.bucket)), credentials_(http_) {}

S3Client::S3Client(S3Address address, S3Endpoint endpoint, AwsCredentials credentials)
    : address_(std::move(address)), endpoint_(std::move(endpoint)), credentials_(http_, std::move(credentials)) {}

std::string S3Client::asked(const S3Call& call) const {
  return fmt::format("{} s3://{}{}{} at {}", call.method, address_.bucket, call.key.empty() ? "" : "/", call.key,
                     url_host(endpoint_.url));
}

HttpResponse S3Client::call_once(const S3Call& call, const std::optional<AwsCredentials>& signer, double timeout_s) {
  HttpRequest request{.method = call.method, .url = endpoint_.url};
  if (!call.key.empty() || endpoint_.url.find('/', 8) == std::string::npos)
    request.url += "/" + percent_encoded(call.key, /*keep_slash=*/true);
  if (!call.query.empty()) request.url += "?" + encoded_query(call.query);
  request.headers = call.headers;
  request.body = call.body, request.body_file = call.body_file, request.to_file = call.to_file;
  request.at_most = call.at_most, request.timeout_s = timeout_s, request.given_up = call.given_up;
  if (call.try_s > 0) request.stall_s = call.try_s;
  request.direct = url_host(endpoint_.url).starts_with("127.0.0.1:");
  if (signer)
    sign_request(request, *signer, {endpoint_.region},
                 call.body_file ? sha256_hex(*call.body_file) : sha256_hex(call.body), std::time(nullptr));
  return http_.send(request);
}

StoreFailed S3Client::failure(const S3Call& call, const HttpResponse& response,
                              const std::optional<AwsCredentials>& signer) {
  return s3_failure(asked(call), s3_error_of(response), endpoint_, signer);
}

HttpResponse S3Client::call(const S3Call& call) {
  RetryBudget& budget = RetryBudget::of_process();
  const int attempts = call.attempts > 0 ? call.attempts : attempts_allowed();
  bool refreshed = false;
  for (int attempt = 1;; ++attempt) {
    if (attempt > 1 && call.done_already && call.done_already()) return {};
    const std::optional<AwsCredentials> signer = credentials_.get();
    const double left_s = call.deadline_s > 0 ? call.deadline_s - steady_s() : 1e9;
    const auto give_up = [&](const std::string& found) {
      const bool too_late = call.deadline_s > 0 && steady_s() >= call.deadline_s;
      throw StoreFailed(
          StoreFailed::Kind::unreachable,
          fmt::format("{}: {} ({} of {} tries{}); check the store and the network, and try again", asked(call), found,
                      attempt, attempts, too_late ? ", and the time allowed is over" : ""));
    };
    if (left_s <= 0) give_up("no answer in the time allowed");
    const auto may_try_again = [&] {
      return attempt < attempts && (call.deadline_s == 0 || steady_s() < call.deadline_s) &&
             !(call.given_up && *call.given_up) && !http_.given_up() && budget.take();
    };
    try {
      HttpResponse response =
          call_once(call, signer, std::min(left_s, call.try_s > 0 ? call.try_s : request_timeout_s(bytes_of(call))));
      if (response.status / 100 == 2 || call.also_taken.contains(response.status)) {
        const std::string wrong = call.wrong ? call.wrong(response) : "";
        if (wrong.empty()) {
          budget.success();
          return response;
        }
        if (!may_try_again()) give_up(wrong);
      } else {
        const S3Error error = s3_error_of(response);
        if (has_expired(error) && signer && !refreshed && credentials_.forget(*signer)) {
          refreshed = true;
          continue;
        }
        if (!error.transient || !may_try_again()) throw s3_failure(asked(call), error, endpoint_, signer);
      }
    } catch (const HttpFailed& e) {
      if (!e.transient() || !may_try_again()) give_up(e.what());
    }
    back_off(attempt - 1, call.deadline_s > 0 ? std::max(0.0, call.deadline_s - steady_s()) : 1e9, call.given_up);
  }
}

}  // namespace wt
