#include "trainer/storage/sigv4.hpp"

#include <fmt/chrono.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "configs/base/lists.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

std::string hex(std::string_view bytes) {
  return joined(bytes, "", [](char c) { return fmt::format("{:02x}", static_cast<unsigned char>(c)); });
}

class Digest {
 public:
  explicit Digest(const EVP_MD* kind) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), kind, nullptr) != 1)
      throw_runtime("OpenSSL refuses {}, S3 needs it; use its default provider", EVP_MD_get0_name(kind));
  }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string hex_value() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> value{};
    unsigned n = 0;
    EVP_DigestFinal_ex(context_.get(), value.data(), &n);
    return hex({reinterpret_cast<const char*>(value.data()), n});
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

std::string digest_hex(const EVP_MD* kind, std::string_view bytes) {
  Digest digest(kind);
  digest.add(bytes);
  return digest.hex_value();
}

std::string digest_hex(const EVP_MD* kind, const HttpFileRange& range) {
  Digest digest(kind);
  std::string buffer(1 << 18, '\0');
  for (std::uint64_t done = 0; done < range.bytes;) {
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), range.bytes - done));
    const ssize_t n = ::pread(range.fd, buffer.data(), want, static_cast<off_t>(range.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw_runtime("{}: not read: {}; did another process change it?", range.name,
                    n < 0 ? std::generic_category().message(errno) : "it has become shorter");
    digest.add({buffer.data(), static_cast<std::size_t>(n)});
    done += static_cast<std::uint64_t>(n);
  }
  return digest.hex_value();
}

/// A header's value without surrounding blanks, and with single ones inside.
std::string trimmed(const std::string& value) {
  std::string out;
  for (const char c : value)
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

/// "b=2&a" -> "a=&b=2"
std::string canonical_query(const std::string& query) {
  std::vector<std::pair<std::string, std::string>> parts;
  for (std::size_t begin = 0; begin < query.size();) {
    const std::size_t end = std::min(query.find('&', begin), query.size());
    const std::string part = query.substr(begin, end - begin);
    const std::size_t equals = std::min(part.find('='), part.size());
    parts.emplace_back(part.substr(0, equals), equals < part.size() ? part.substr(equals + 1) : "");
    begin = end + 1;
  }
  std::ranges::sort(parts);
  return joined(parts, "&", [](const auto& each) { return each.first + "=" + each.second; });
}

}  // namespace

std::string sha256_hex(std::string_view bytes) { return digest_hex(EVP_sha256(), bytes); }
std::string sha256_hex(const HttpFileRange& range) { return digest_hex(EVP_sha256(), range); }
std::string md5_hex(std::string_view bytes) { return digest_hex(EVP_md5(), bytes); }
std::string md5_hex(const HttpFileRange& range) { return digest_hex(EVP_md5(), range); }

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> value{};
  unsigned n = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), value.data(), &n) == nullptr)
    throw_runtime("OpenSSL refuses HMAC-SHA256, S3 needs it; use its default provider");
  return {reinterpret_cast<const char*>(value.data()), n};
}

std::string amz_date(std::time_t time) { return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(time)); }

void sign_request(HttpRequest& request, const AwsCredentials& credentials, const SigningScope& scope,
                  const std::string& payload_sha256, std::time_t now) {
  const std::string date = amz_date(now), day = date.substr(0, 8);
  request.headers.emplace_back("x-amz-date", date);
  request.headers.emplace_back("x-amz-content-sha256", payload_sha256);
  if (!credentials.session_token.empty())
    request.headers.emplace_back("x-amz-security-token", credentials.session_token);

  const std::size_t host = request.url.find("://") + 3;
  const std::size_t path = std::min(request.url.find_first_of("/?", host), request.url.size());
  const std::size_t query = std::min(request.url.find('?', path), request.url.size());
  std::map<std::string, std::string> headers{{"host", url_host(request.url)}};
  for (const auto& [name, value] : request.headers) headers[lower(name)] = trimmed(value);
  std::string lines, names;
  for (const auto& [name, value] : headers) {
    lines += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical = fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}", request.method, path == query ? "/" : request.url.substr(path, query - path),
      query < request.url.size() ? canonical_query(request.url.substr(query + 1)) : "", lines, names, payload_sha256);
  const std::string credential = fmt::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
  const std::string to_sign = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", date, credential, sha256_hex(canonical));
  std::string key = hmac_sha256("AWS4" + credentials.secret_key, day);
  for (const std::string& part : {scope.region, scope.service, std::string("aws4_request")})
    key = hmac_sha256(key, part);
  request.headers.emplace_back("authorization",
                               fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                                           credentials.access_key, credential, names, hex(hmac_sha256(key, to_sign))));
}

}  // namespace wt
