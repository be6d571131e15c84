// One HTTP client on libcurl for storage and trackers. It never follows redirects, keeps connections for the next
// request, bounds every request in time and every answer in memory, and names hosts in its errors, never a query or a
// header: these hold signatures and tokens.
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

namespace wt {

/// Part of an open file. The caller keeps it open.
struct HttpFileRange {
  int fd = -1;
  std::uint64_t offset = 0, bytes = 0;
  std::string name = "";  ///< for messages
};

struct HttpRequest {
  std::string method = "GET", url = "";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = "";
  std::optional<HttpFileRange> body_file = {};  ///< sent in place of body
  /// Where the body of an answer with a 2xx status goes, in place of memory. A longer one is an error.
  std::optional<HttpFileRange> to_file = {};
  std::uint64_t at_most = 16 << 20;  ///< bytes of an answer that are kept in memory; a longer one is an error
  double timeout_s = 60;             ///< of the whole request
  double connect_timeout_s = 10;
  double stall_s = 20;            ///< it fails after so long below 1 kB/s
  std::string certificates = "";  ///< file of those that are trusted, in place of the environment's or the system's
  bool verify_server = true;      ///< false: any certificate does
  /// libcurl sends a request again where a kept connection turns out to be closed, be it after the server has done what
  /// was asked. True: it never does.
  bool sent_once = false;
  bool direct = false;                          ///< past any proxy: addresses that only this machine can reach
  const std::atomic<bool>* given_up = nullptr;  ///< once set, the request fails within a second
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers = {};  ///< names in lower case
  std::string body = "";
  std::uint64_t body_bytes = 0;  ///< received, in memory or in to_file
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

/// There was no whole answer.
class HttpFailed : public Error {
 public:
  HttpFailed(const std::string& host, int curl_code, const std::string& reason);
  const std::string& host() const { return host_; }
  int curl_code() const { return curl_code_; }
  /// Whether the same request may well succeed when it is sent again.
  bool transient() const;

 private:
  std::string host_;
  int curl_code_;
};

/// May be used by several threads at once; each request has a handle and so a connection of its own.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// An answer of any status. Throws HttpFailed where there is none, Error{runtime} where libcurl is missing or a local
  /// file cannot be read or written.
  HttpResponse send(const HttpRequest& request);
  /// Requests under way fail within a second, and all that follow.
  void give_up() { given_up_ = true; }
  bool given_up() const { return given_up_; }

 private:
  std::atomic<bool> given_up_ = false;
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

/// "https://host:port/x?y" -> "host:port".
std::string url_host(const std::string& url);
/// RFC 3986: every byte but letters, digits and "-._~" as %XX; a slash stays where `keep_slash`.
std::string percent_encoded(std::string_view text, bool keep_slash = false);

}  // namespace wt
