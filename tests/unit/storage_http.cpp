// The client against a server of one answer a connection, made of sockets here.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "tests/fixtures/temp_directory.hpp"
#include "trainer/storage/http.hpp"

using namespace wt;
using Catch::Contains;

namespace {

/// Gives these answers, a connection each, and keeps what it was sent.
class CannedServer {
 public:
  explicit CannedServer(std::vector<std::string> answers) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof address;
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), n) != 0 || listen(socket_, 8) != 0 ||
        getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &n) != 0)
      throw std::runtime_error("no socket");
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::jthread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) serve(answer);
    });
  }
  ~CannedServer() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }
  const std::string& url() const { return url_; }
  const std::string& heard() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    thread_ = std::jthread([] {});
    return heard_;
  }

 private:
  void serve(const std::string& answer) {
    const int connection = accept(socket_, nullptr, nullptr);
    if (connection < 0) return;
    char buffer[4096];
    std::string request;
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t n = recv(connection, buffer, sizeof buffer, 0);
      if (n <= 0) break;
      request.append(buffer, static_cast<std::size_t>(n));
    }
    for (std::size_t left = body_left(request); left > 0;) {
      const ssize_t n = recv(connection, buffer, sizeof buffer, 0);
      if (n <= 0) break;
      request.append(buffer, static_cast<std::size_t>(n));
      left -= std::min(left, static_cast<std::size_t>(n));
    }
    heard_ += request;
    for (std::size_t done = 0; done < answer.size();) {
      const ssize_t n = send(connection, answer.data() + done, answer.size() - done, MSG_NOSIGNAL);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    close(connection);
  }
  static std::size_t body_left(const std::string& request) {
    const auto at = request.find("Content-Length: ");
    if (at == std::string::npos) return 0;
    return static_cast<std::size_t>(std::stoul(request.substr(at + 16))) -
           (request.size() - request.find("\r\n\r\n") - 4);
  }

  int socket_;
  std::string url_, heard_;
  std::jthread thread_;
};

std::string http_answer(const std::string& status, const std::string& body, const std::string& headers = "") {
  return "HTTP/1.1 " + status + "\r\n" + headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("an answer of any status is an answer; redirects are not followed") {
  CannedServer server({"HTTP/1.1 100 Continue\r\n\r\n" + http_answer("200 OK", "body", "X-Name:  a value\r\n"),
                       http_answer("404 Not Found", ""),
                       http_answer("307 x", "", "Location: http://127.0.0.1:1/\r\n")});
  HttpClient http;
  const HttpResponse first = http.send({.url = server.url() + "/a?b=c"});
  CHECK(first.status == 200);
  CHECK(first.body == "body");
  CHECK(first.header("x-name") == "a value");
  CHECK(http.send({.url = server.url()}).status == 404);
  CHECK(http.send({.url = server.url()}).status == 307);
  CHECK_THAT(server.heard(), Contains("GET /a?b=c HTTP/1.1"));
}

TEST_CASE("bodies come from memory or from part of a file") {
  const test::TempDirectory folder;
  test::write_bytes(folder / "f", "0123456789");
  const int fd = open((folder / "f").c_str(), O_RDONLY);
  CannedServer server({http_answer("200 OK", ""), http_answer("200 OK", ""), http_answer("200 OK", "")});
  HttpClient http;
  http.send({.method = "POST", .url = server.url(), .headers = {{"content-type", "text/x"}}, .body = "from memory"});
  http.send({.method = "PUT", .url = server.url(), .body_file = HttpFileRange{fd, 3, 4, "f"}});
  http.send({.method = "POST", .url = server.url()});
  close(fd);
  const std::string& heard = server.heard();
  CHECK_THAT(heard, Contains("content-type: text/x") && Contains("\r\n\r\nfrom memory"));
  CHECK_THAT(heard, Contains("\r\n\r\n3456POST"));
  CHECK_THAT(heard, Contains("Content-Length: 0"));
  CHECK_THAT(heard, !Contains("Expect") && !Contains("x-www-form-urlencoded"));
}

TEST_CASE("an answer goes to its place in a file, but for that of an error") {
  const test::TempDirectory folder;
  const int fd = open((folder / "f").c_str(), O_RDWR | O_CREAT, 0600);
  CannedServer server({http_answer("206 Partial Content", "3456"), http_answer("500 x", "sorry, no bytes"),
                       http_answer("206 Partial Content", "too many")});
  HttpClient http;
  const HttpRequest request{.url = server.url(), .to_file = HttpFileRange{fd, 3, 4, "f"}};
  CHECK(http.send(request).body_bytes == 4);
  CHECK(http.send(request).body == "sorry, no bytes");
  CHECK_THROWS_WITH(http.send(request), Contains("longer than the 4 bytes allowed"));
  close(fd);
  CHECK(test::read_bytes(folder / "f").substr(3, 4).size() == 4);
}

TEST_CASE("an answer that is too long for memory is none") {
  CannedServer server({http_answer("200 OK", std::string(1001, 'x'))});
  HttpClient http;
  CHECK_THROWS_WITH(http.send({.url = server.url(), .at_most = 1000}), Contains("longer than the 1000 bytes"));
}

TEST_CASE("no whole answer is an error that names the host and no secret") {
  CannedServer server({"", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"});
  HttpClient http;
  for (const int code : {52, 18}) try {
      http.send({.url = server.url() + "/x?X-Amz-Signature=secret", .headers = {{"authorization", "secret"}}});
      FAIL("there is an answer");
    } catch (const HttpFailed& e) {
      CHECK(e.curl_code() == code);
      CHECK(e.transient());
      CHECK_THAT(e.what(), Contains("127.0.0.1:") && !Contains("secret"));
    }
}

TEST_CASE("what cannot be sent is refused") {
  HttpClient http;
  CHECK_THROWS_WITH(http.send({.url = "http://127.0.0.1:1", .headers = {{"a", "b\r\nc: d"}}}), Contains("line break"));
  for (const char* url : {"file:///etc/passwd", "gopher://127.0.0.1:1/", "not a url"})
    CHECK_THROWS_AS(http.send({.url = url}), HttpFailed);
  try {
    http.send({.url = "http://127.0.0.1:1"});
    FAIL("there is an answer");
  } catch (const HttpFailed& e) {
    CHECK(e.curl_code() == 7);
    CHECK(e.transient());
  }
}

TEST_CASE("a request that is given up ends") {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t n = sizeof address;
  REQUIRE(bind(listening, reinterpret_cast<sockaddr*>(&address), n) == 0);
  REQUIRE(listen(listening, 1) == 0);
  REQUIRE(getsockname(listening, reinterpret_cast<sockaddr*>(&address), &n) == 0);
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  HttpClient http;
  const std::atomic<bool> given_up = true;
  CHECK_THROWS_WITH(http.send({.url = url, .given_up = &given_up}), Contains("given up"));
  try {
    http.send({.url = url, .timeout_s = 0.2});
    FAIL("there is an answer");
  } catch (const HttpFailed& e) {
    CHECK(e.curl_code() == 28);
  }
  close(listening);
}
