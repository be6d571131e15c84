// An HTTP client on libcurl, for storage and trackers. It never follows redirects, reuses connections, and limits every
// request's time and every answer's memory. Errors name hosts, never queries or headers, which contain signatures and
// tokens.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"

namespace wt {

/// A range of a file, which the caller keeps open.
struct HttpFileRange {
  int fd = -1;
  std::uint64_t offset = 0, bytes = 0;
  std::string name = "";  ///< for messages
};

struct HttpRequest {
  std::string method = "GET", url = "";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = "";
  std::optional<HttpFileRange> body_file = {};  ///< sent instead of body
  /// Receives the body of a 2xx answer instead of memory. A longer body is an error.
  std::optional<HttpFileRange> to_file = {};
  std::uint64_t at_most = 16 << 20;  ///< limit of an answer kept in memory, bytes; a longer one is an error
  double timeout_s = 60;             ///< of the whole request
  double connect_timeout_s = 10;
  double stall_s = 20;            ///< fails after this time below 1 kB/s
  std::string certificates = "";  ///< file of trusted certificates, instead of the environment's or the system's
  bool verify_server = true;      ///< false: accept any certificate
  /// By default libcurl repeats a request when a reused connection turns out to be closed, even if the server has
  /// processed it. True: never repeat.
  bool sent_once = false;
  bool direct = false;                          ///< bypass proxies, for addresses that only this machine can reach
  const std::atomic<bool>* given_up = nullptr;  ///< once set, the request fails within a second
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers = {};  ///< names in lower case
  std::string body = "";
  std::uint64_t body_bytes = 0;  ///< received, in memory or in to_file
  std::string header(const std::string& name) const { return value_or(headers, name); }
};

/// No complete answer was received.
class HttpFailed : public Error {
 public:
  HttpFailed(const std::string& host, int curl_code, const std::string& reason);
  const std::string& host() const { return host_; }
  int curl_code() const { return curl_code_; }
  /// Whether repeating the request may succeed.
  bool transient() const;

 private:
  std::string host_;
  int curl_code_;
};

/// Thread-safe; each concurrent request uses its own handle and connection.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();

  /// Returns an answer of any status. Throws HttpFailed without one, Error{runtime} where libcurl is missing or a local
  /// file cannot be read or written.
  HttpResponse send(const HttpRequest& request);
  /// Makes running requests fail within a second, and all later ones at once.
  void give_up() { given_up_ = true; }
  bool given_up() const { return given_up_; }

 private:
  std::atomic<bool> given_up_ = false;
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

/// "https://host:port/x?y" -> "host:port".
std::string url_host(const std::string& url);
/// RFC 3986: encodes every byte but letters, digits and "-._~" as %XX; with `keep_slash` also keeps slashes.
std::string percent_encoded(std::string_view text, bool keep_slash = false);

}  // namespace wt
