#include "bench/store/loopback_store.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

constexpr std::size_t kLoopbackBuffer = 1 << 20;

bool send_all(int connection, const char* bytes, std::uint64_t n) {
  while (n > 0) {
    const ssize_t sent = send(connection, bytes, n, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent, n -= static_cast<std::uint64_t>(sent);
  }
  return true;
}

std::string ok(const std::string& headers, std::uint64_t bytes) {
  return fmt::format("HTTP/1.1 200 OK\r\n{}Content-Length: {}\r\n\r\n", headers, bytes);
}

}  // namespace

struct LoopbackStore::LoopbackRequest {
  std::string method, path, query;
  std::uint64_t body_bytes = 0, first = 0, wanted = 0;  ///< wanted: bytes of a range; 0 = all
};

LoopbackStore::LoopbackStore() : listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof address;
  if (listening_ < 0 || bind(listening_, reinterpret_cast<sockaddr*>(&address), n) != 0 ||
      listen(listening_, 64) != 0 || getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &n) != 0)
    throw_runtime("127.0.0.1: cannot be listened at: {}, the client's own limit is measured there; allow it",
                  std::generic_category().message(errno));
  port_ = ntohs(address.sin_port);
  threads_.emplace_back([this] { accept_connections(); });
}

LoopbackStore::~LoopbackStore() {
  shutdown(listening_, SHUT_RDWR);
  threads_.front().join();  // after this no more threads are added
  for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
  for (std::size_t i = 1; i < threads_.size(); ++i) threads_[i].join();
  for (const int connection : connections_) close(connection);
  close(listening_);
}

std::string LoopbackStore::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

void LoopbackStore::accept_connections() {
  for (;;) {
    const int connection = accept(listening_, nullptr, nullptr);
    if (connection < 0 && errno == EINTR) continue;
    if (connection < 0) return;
    const int on = 1;
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections_.push_back(connection);
    threads_.emplace_back([this, connection] { serve(connection); });
  }
}

void LoopbackStore::serve(int connection) {
  std::string buffer(kLoopbackBuffer, '\0'), head;
  const std::string bytes(kLoopbackBuffer, 'x');
  for (;;) {
    std::size_t end = 0;
    while ((end = head.find("\r\n\r\n")) == std::string::npos) {
      const ssize_t n = recv(connection, buffer.data(), buffer.size(), 0);
      if (n <= 0) return;
      head.append(buffer, 0, static_cast<std::size_t>(n));
    }
    LoopbackRequest request;
    const std::string lines = lower(head.substr(0, end));
    const auto space = head.find(' '), space2 = head.find(' ', space + 1), question = head.find('?');
    request.method = head.substr(0, space);
    request.path = head.substr(space + 1, std::min(question, space2) - space - 1);
    if (question < space2) request.query = head.substr(question + 1, space2 - question - 1);
    if (const auto at = lines.find("\r\ncontent-length: "); at != std::string::npos)
      request.body_bytes = std::stoull(lines.substr(at + 18));
    if (const auto at = lines.find("\r\nrange: bytes="); at != std::string::npos) {
      request.first = std::stoull(lines.substr(at + 15));
      request.wanted = std::stoull(lines.substr(lines.find('-', at + 15) + 1)) - request.first + 1;
    }
    std::uint64_t heard = std::min<std::uint64_t>(head.size() - end - 4, request.body_bytes);
    head.erase(0, end + 4 + heard);
    while (heard < request.body_bytes) {
      const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), request.body_bytes - heard));
      const ssize_t n = recv(connection, buffer.data(), want, 0);
      if (n <= 0) return;
      heard += static_cast<std::uint64_t>(n);
    }
    const std::string reply = answer(request);
    if (!send_all(connection, reply.data(), reply.size())) return;
    if (request.method != "GET" || reply.find("\r\n\r\n") + 4 != reply.size()) continue;
    std::uint64_t left = std::stoull(reply.substr(reply.find("Content-Length: ") + 16));
    for (; left > 0; left -= std::min<std::uint64_t>(left, bytes.size()))
      if (!send_all(connection, bytes.data(), std::min<std::uint64_t>(left, bytes.size()))) return;
  }
}

std::string LoopbackStore::answer(const LoopbackRequest& request) {
  const std::lock_guard lock(mutex_);
  const std::string tag = "ETag: \"loopback\"\r\n";
  const auto document = [](const std::string& body) { return ok("", body.size()) + body; };
  std::uint64_t& bytes = bytes_[request.path];
  if (request.method == "POST" && request.query.starts_with("uploads")) {
    bytes = 0;
    return document("<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>");
  }
  if (request.method == "POST") return document("<CompleteMultipartUploadResult/>");
  if (request.method == "PUT") {
    bytes = request.query.empty() ? request.body_bytes : bytes + request.body_bytes;
    return ok(tag, 0);
  }
  if (request.method == "DELETE") {
    bytes_.erase(request.path);
    return "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n";
  }
  if (request.method == "HEAD" || request.wanted == 0) return ok(tag, bytes);
  const std::uint64_t n = std::min(request.wanted, bytes - std::min(bytes, request.first));
  if (n == 0) return "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n";
  return fmt::format("HTTP/1.1 206 Partial Content\r\n{}Content-Range: bytes {}-{}/{}\r\nContent-Length: {}\r\n\r\n",
                     tag, request.first, request.first + n - 1, bytes, n);
}

}  // namespace wt
