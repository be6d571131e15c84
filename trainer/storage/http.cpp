#include "trainer/storage/http.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>

#include "configs/base/temporary_file.hpp"
#include "configs/base/text.hpp"
#include "trainer/storage/curl_library.hpp"

namespace wt {
namespace {

/// The state of a running request, for libcurl's callbacks.
struct Exchange {
  const HttpRequest& request;
  const std::atomic<bool>& given_up;  ///< the client's flag
  HttpResponse response = {};
  std::uint64_t sent = 0;
  int local_error = 0;  ///< errno of a local file
  bool too_long = false;
};

std::uint64_t body_bytes(const HttpRequest& request) {
  return request.body_file ? request.body_file->bytes : request.body.size();
}

/// Limit of the answer's body. An error body may be longer than the file range that was asked for.
std::uint64_t most_bytes(const Exchange& exchange) {
  const HttpRequest& request = exchange.request;
  if (exchange.response.status / 100 != 2) return std::max<std::uint64_t>(request.at_most, 1 << 16);
  return request.to_file ? request.to_file->bytes : request.at_most;
}

std::size_t on_header(char* text, std::size_t, std::size_t n, void* data) {
  HttpResponse& response = static_cast<Exchange*>(data)->response;
  std::string line(text, n);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.pop_back();
  if (line.starts_with("HTTP/")) {  // first line of an answer; an interim one ("100 Continue") may precede
    response.headers.clear();
    response.status = line.size() > 9 ? std::atoi(line.c_str() + line.find(' ') + 1) : 0;
  } else if (const auto colon = line.find(':'); colon != std::string::npos) {
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    response.headers[lower(line.substr(0, colon))] = begin == std::string::npos ? "" : line.substr(begin);
  }
  return n;
}

std::size_t on_body(char* bytes, std::size_t, std::size_t n, void* data) {
  Exchange& exchange = *static_cast<Exchange*>(data);
  HttpResponse& response = exchange.response;
  const auto& file = exchange.request.to_file;
  const bool to_file = file && response.status / 100 == 2;
  if (response.body_bytes + n > most_bytes(exchange)) {
    exchange.too_long = true;
    return 0;
  }
  for (std::size_t done = 0; to_file && done < n;) {
    const ssize_t part =
        ::pwrite(file->fd, bytes + done, n - done, static_cast<off_t>(file->offset + response.body_bytes + done));
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) {
      exchange.local_error = part < 0 ? errno : EIO;
      return 0;
    }
    done += static_cast<std::size_t>(part);
  }
  if (!to_file) response.body.append(bytes, n);
  response.body_bytes += n;
  return n;
}

std::size_t on_send(char* bytes, std::size_t, std::size_t room, void* data) {
  Exchange& exchange = *static_cast<Exchange*>(data);
  const HttpRequest& request = exchange.request;
  std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(room, body_bytes(request) - exchange.sent));
  if (request.body_file && n > 0) {
    ssize_t part = 0;
    do part = ::pread(request.body_file->fd, bytes, n, static_cast<off_t>(request.body_file->offset + exchange.sent));
    while (part < 0 && errno == EINTR);
    if (part <= 0) {  // 0: the file has become shorter
      exchange.local_error = part < 0 ? errno : EIO;
      return CURL_READFUNC_ABORT;
    }
    n = static_cast<std::size_t>(part);
  } else {
    std::memcpy(bytes, request.body.data() + exchange.sent, n);
  }
  exchange.sent += n;
  return n;
}

/// Called when a reused connection was closed: libcurl sends the request again over a new one.
int on_rewind(void* data, curl_off_t offset, int origin) {
  if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Exchange*>(data)->sent = static_cast<std::uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int on_progress(void* data, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const Exchange& exchange = *static_cast<Exchange*>(data);
  const std::atomic<bool>* given_up = exchange.request.given_up;
  return exchange.given_up || (given_up != nullptr && *given_up) ? 1 : 0;
}

/// Refuses names and values with line breaks, which could inject further headers.
std::unique_ptr<curl_slist, FreeCurl> header_list(const HttpRequest& request) {
  std::unique_ptr<curl_slist, FreeCurl> list;
  const auto add = [&](const std::string& line) {
    curl_slist* longer = curl_library().slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list.release();
    list.reset(longer);
  };
  for (const auto& [name, value] : request.headers) {
    if ((name + value).find_first_of(std::string("\r\n\0", 3)) != std::string::npos)
      throw_usage("header {}: found a line break in its value, allowed is one line; correct it", name);
    add(value.empty() ? name + ";" : name + ": " + value);
  }
  add("Expect:");  // avoids libcurl's pause of a second before it sends a body
  for (const char* none : {"Content-Type", "Accept"})
    if (std::ranges::none_of(request.headers, [&](const auto& header) { return lower(header.first) == lower(none); }))
      add(std::string(none) + ":");
  return list;
}

void set_up(CURL* handle, Exchange& exchange, curl_slist* headers) {
  const HttpRequest& request = exchange.request;
  const auto set = [&](CURLoption option, auto value) {
    if (curl_library().easy_setopt(handle, option, value) != CURLE_OK)
      throw_runtime("{}: libcurl does not take option {}, needs 7.85 or newer; install libcurl4", url_host(request.url),
                    static_cast<int>(option));
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // one connection per parallel request
  set(CURLOPT_PATH_AS_IS, 1L);                                          // sends exactly what was signed
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::clamp(1e3 * request.timeout_s, 1.0, 1e9)));
  set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(1e3 * std::max(0.001, std::min(request.connect_timeout_s, request.timeout_s))));
  set(CURLOPT_LOW_SPEED_LIMIT, 1000L);
  set(CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(request.stall_s)));
  set(CURLOPT_BUFFERSIZE, 512L << 10);
  set(CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&exchange));
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&exchange));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, on_progress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&exchange));
  if (request.direct) set(CURLOPT_NOPROXY, "*");
  for (const char* bundle : {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* file = std::getenv(bundle); file != nullptr && *file != '\0') {
      set(CURLOPT_CAINFO, file);
      break;
    }
  if (request.sent_once) set(CURLOPT_FRESH_CONNECT, 1L);
  if (!request.certificates.empty()) set(CURLOPT_CAINFO, request.certificates.c_str());
  if (!request.verify_server) set(CURLOPT_SSL_VERIFYPEER, 0L), set(CURLOPT_SSL_VERIFYHOST, 0L);
  if (request.method == "HEAD") return set(CURLOPT_NOBODY, 1L);
  if (request.method == "PUT" || request.method == "POST" || body_bytes(request) > 0) {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(body_bytes(request)));
    set(CURLOPT_READFUNCTION, on_send);
    set(CURLOPT_READDATA, static_cast<void*>(&exchange));
    set(CURLOPT_SEEKFUNCTION, on_rewind);
    set(CURLOPT_SEEKDATA, static_cast<void*>(&exchange));
  }
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

}  // namespace

HttpFailed::HttpFailed(const std::string& host, int curl_code, const std::string& reason)
    : Error(Code::runtime, fmt::format("{}: no whole answer: {} (curl {}); check the address and the network", host,
                                       reason, curl_code)),
      host_(host),
      curl_code_(curl_code) {}

bool HttpFailed::transient() const {
  constexpr std::array<int, 8> kTransient = {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,   CURLE_PARTIAL_FILE,
                                             CURLE_OPERATION_TIMEDOUT,   CURLE_SSL_CONNECT_ERROR, CURLE_GOT_NOTHING,
                                             CURLE_SEND_ERROR,           CURLE_RECV_ERROR};
  return std::ranges::find(kTransient, curl_code_) != kTransient.end();
}

struct HttpClient::Handles {
  std::mutex mutex;
  std::vector<CurlHandle> idle;

  CurlHandle take() {
    const std::lock_guard lock(mutex);
    if (idle.empty()) return CurlHandle(curl_library().easy_init());
    CurlHandle last = std::move(idle.back());
    idle.pop_back();
    return last;
  }
  void give_back(CurlHandle handle) {
    curl_library().easy_reset(handle.get());  // keeps its connection
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(handle));
  }
};

HttpClient::HttpClient() : handles_(std::make_unique<Handles>()) {}
HttpClient::~HttpClient() = default;

HttpResponse HttpClient::send(const HttpRequest& request) {
  const std::string host = url_host(request.url);
  if (given_up_) throw HttpFailed(host, CURLE_ABORTED_BY_CALLBACK, "given up");
  const auto headers = header_list(request);
  const HoldFileSizeSignal hold;  // for to_file
  CurlHandle handle = handles_->take();
  if (!handle) throw_runtime("{}: libcurl makes no handle; free memory", host);
  Exchange exchange{request, given_up_};
  set_up(handle.get(), exchange, headers.get());
  const CURLcode code = curl_library().easy_perform(handle.get());
  if (exchange.local_error != 0) {
    const auto& file = request.to_file ? *request.to_file : *request.body_file;
    throw_runtime("{}: not {}: {}; check its disk", file.name, request.to_file ? "written" : "read",
                  std::generic_category().message(exchange.local_error));
  }
  if (exchange.too_long)
    throw HttpFailed(host, code, fmt::format("it is longer than the {} bytes allowed", most_bytes(exchange)));
  if (code == CURLE_ABORTED_BY_CALLBACK) throw HttpFailed(host, code, "given up");
  if (code != CURLE_OK) throw HttpFailed(host, code, curl_library().easy_strerror(code));
  handles_->give_back(std::move(handle));
  return std::move(exchange.response);
}

std::string url_host(const std::string& url) {
  const auto scheme = url.find("://");
  const auto begin = scheme == std::string::npos ? 0 : scheme + 3;
  const std::string authority = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  const auto user = authority.rfind('@');  // a user and password may precede the host
  return user == std::string::npos ? authority : authority.substr(user + 1);
}

std::string percent_encoded(std::string_view text, bool keep_slash) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || (keep_slash && c == '/');
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace wt
