// Reading from S3.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "configs/base/clock.hpp"
#include "configs/base/temporary_file.hpp"
#include "trainer/storage/parallel_parts.hpp"
#include "trainer/storage/s3_store.hpp"

namespace wt {
namespace {

/// Checks bytes against an ETag that looks like an MD5. It is the MD5 of files written in one request without KMS. If a
/// second read gives the same bytes, they are correct, and the ETag is not an MD5.
class EtagJudge {
 public:
  template <class Bytes>
  std::string operator()(const HttpResponse& response, const Bytes& bytes) {
    std::string etag = response.header("etag");
    std::erase(etag, '"');
    if (etag.size() != 32 || etag.find_first_not_of("0123456789abcdef") != std::string::npos) return "";
    const std::string digest = md5_hex(bytes);
    if (digest == etag || digest == last_) return "";
    last_ = digest;
    return "the bytes are not those of the ETag";
  }

 private:
  std::string last_;
};

/// The file's total size in the answer to a range request: "bytes 0-7/20" = 20. Empty where the answer is another
/// range, or its body has another length.
std::optional<std::uint64_t> total_of(const HttpResponse& response, std::uint64_t first, std::uint64_t wanted) {
  const std::string text = response.header("content-range");
  unsigned long long begin = 0, last = 0, total = 0;
  if (std::sscanf(text.c_str(), "bytes %llu-%llu/%llu", &begin, &last, &total) != 3) return std::nullopt;
  const std::uint64_t expected = std::min<std::uint64_t>(wanted, total - std::min<std::uint64_t>(total, first));
  if (begin != first || expected == 0 || last + 1 != first + expected || response.body_bytes != expected)
    return std::nullopt;
  return total;
}

std::string range_header(std::uint64_t first, std::uint64_t bytes) {
  return fmt::format("bytes={}-{}", first, first + bytes - 1);
}

/// Sets the file's length, and allocates its blocks where the file system supports that, to find a full disk before the
/// download.
void allocate(const TemporaryFile& file, const std::filesystem::path& to, std::uint64_t bytes) {
  if (ftruncate(file.fd(), static_cast<off_t>(bytes)) != 0) fail_write(to, "ftruncate", errno);
  if (bytes > 0 && fallocate(file.fd(), 0, 0, static_cast<off_t>(bytes)) != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
    fail_write(to, "fallocate", errno);
}

}  // namespace

std::string S3Store::read(const std::string& name, std::uint64_t at_most) {
  EtagJudge judge;
  S3Call call{.key = key_of(name)};
  call.at_most = call.awaited_bytes = at_most;
  call.wrong = [&](const HttpResponse& response) {
    return response.status != 200 ? fmt::format("status {}", response.status) : judge(response, response.body);
  };
  return client_.call(call).body;
}

void S3Store::fetch(const std::string& name, const std::filesystem::path& to, double timeout_s) {
  const std::string key = key_of(name);
  const HoldFileSizeSignal hold;
  TemporaryFile file(to);
  std::atomic<bool> given_up = false;
  const auto ranged = [&](std::uint64_t first) {
    S3Call call{.key = key, .headers = {{"range", range_header(first, kPart_bytes)}}};
    call.to_file = HttpFileRange{file.fd(), first, kPart_bytes, to.string()};
    call.given_up = &given_up;
    return call;
  };
  const double deadline_s = steady_s() + timeout_s;

  std::uint64_t total = 0;
  EtagJudge judge;
  S3Call begin = ranged(0);
  begin.deadline_s = deadline_s;
  begin.also_taken = {416};  // an empty file has no valid range
  begin.wrong = [&](const HttpResponse& response) -> std::string {
    if (response.status == 416) return "";
    const auto named = response.status == 206 ? total_of(response, 0, kPart_bytes) : std::optional(response.body_bytes);
    if (!named) return "an answer to another range";
    total = *named;
    return total <= kPart_bytes ? judge(response, HttpFileRange{file.fd(), 0, total, to.string()}) : "";
  };
  const HttpResponse response = client_.call(begin);
  moved();
  if (response.status == 416 && head(key).value_or(Head{}).bytes != 0)
    throw StoreFailed(
        StoreFailed::Kind::other,
        fmt::format("{}/{}: found status 416 for its first bytes, needs them; does another process write it?",
                    address(), name));
  allocate(file, to, total);
  const std::string etag = response.header("etag");
  in_parallel(total == 0 ? 0 : (total - 1) / kPart_bytes, kConnections, given_up, [&](std::uint64_t i) {
    const std::uint64_t first = (i + 1) * kPart_bytes;
    S3Call part = ranged(first);
    part.deadline_s = deadline_s;
    if (!etag.empty()) part.headers.emplace_back("if-match", etag);
    part.also_taken = {412};
    part.wrong = [&](const HttpResponse& r) {
      return r.status == 412 || total_of(r, first, kPart_bytes) == total ? "" : "an answer to another range";
    };
    if (client_.call(part).status == 412)
      throw StoreFailed(
          StoreFailed::Kind::damaged,
          fmt::format("{}/{}: changed while it was read, needs a file that stays; read it again", address(), name));
    moved();
  });
  file.rename_to_target();
}

}  // namespace wt
