// Writing to S3.
#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

#include "configs/base/clock.hpp"
#include "trainer/storage/input_file.hpp"
#include "trainer/storage/parallel_parts.hpp"
#include "trainer/storage/s3_store.hpp"

namespace wt {
namespace {

// S3 may need minutes to assemble a large file, without sending anything.
constexpr double kAssembly_s = 900, kAssemblyTry_s = 300;

std::string unquoted(std::string etag) {
  std::erase(etag, '"');
  return etag;
}

std::string xml_of_parts(const std::vector<std::string>& etags) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("CompleteMultipartUpload");
  root.append_attribute("xmlns") = "http://s3.amazonaws.com/doc/2006-03-01/";
  for (std::size_t i = 0; i < etags.size(); ++i) {
    pugi::xml_node part = root.append_child("Part");
    part.append_child("PartNumber").text() = static_cast<unsigned>(i + 1);
    part.append_child("ETag").text() = etags[i].c_str();
  }
  std::ostringstream out;
  document.save(out, "", pugi::format_raw);
  return out.str();
}

}  // namespace

std::string etag_of_parts(const std::vector<std::string>& etags) {
  std::string digests;
  for (const std::string& quoted : etags) {
    const std::string etag = unquoted(quoted);
    if (etag.size() != 32 || etag.find_first_not_of("0123456789abcdef") != std::string::npos) return "";
    for (std::size_t i = 0; i < 32; i += 2) digests += static_cast<char>(std::stoi(etag.substr(i, 2), nullptr, 16));
  }
  return fmt::format("\"{}-{}\"", md5_hex(digests), etags.size());
}

std::uint64_t S3Store::part_bytes(std::uint64_t file_bytes) {
  constexpr std::uint64_t mebi = 1 << 20;
  const std::uint64_t least = (file_bytes + kMost_parts - 1) / kMost_parts;
  return std::max(kPart_bytes, (least + mebi - 1) / mebi * mebi);
}

void S3Store::upload(const std::filesystem::path& from, const std::string& name) {
  const std::string key = key_of(name);
  const InputFile in(from);
  const HttpFileRange file{in.fd(), 0, in.bytes(), from.string()};
  if (file.bytes > kMost_bytes)
    throw_runtime("{}: found {} bytes, S3 takes {} in one file; use more ranks, so that each writes less",
                  from.string(), file.bytes, kMost_bytes);
  if (file.bytes > 2 * kPart_bytes) return upload_parts(file, key);
  S3Call call{.method = "PUT", .key = key, .body_file = file};
  client_.call(call);
  moved();
}

void S3Store::upload_parts(const HttpFileRange& file, const std::string& key) {
  pugi::xml_document begun;
  S3Call begin{.method = "POST", .key = key, .query = {{"uploads", ""}}};
  begin.wrong = [&](const HttpResponse& response) {
    const bool good = begun.load_string(response.body.c_str()) &&
                      *begun.child("InitiateMultipartUploadResult").child_value("UploadId") != '\0';
    return good ? "" : "an answer without an UploadId";
  };
  client_.call(begin);
  const std::string id = begun.child("InitiateMultipartUploadResult").child_value("UploadId");
  try {
    complete(key, id, file.bytes, send_parts(file, key, id));
  } catch (...) {
    abort(key, id);  // otherwise the invisible parts would be charged for
    throw;
  }
}

std::vector<std::string> S3Store::send_parts(const HttpFileRange& file, const std::string& key, const std::string& id) {
  const std::uint64_t step = part_bytes(file.bytes), parts = (file.bytes + step - 1) / step;
  std::vector<std::string> etags(parts);
  std::atomic<bool> given_up = false;
  in_parallel(parts, kConnections, given_up, [&](std::uint64_t i) {
    S3Call part{.method = "PUT", .key = key, .query = {{"partNumber", std::to_string(i + 1)}, {"uploadId", id}}};
    part.body_file = HttpFileRange{file.fd, i * step, std::min(step, file.bytes - i * step), file.name};
    part.given_up = &given_up;
    part.wrong = [](const HttpResponse& response) {
      return response.header("etag").empty() ? "an answer without an ETag" : "";
    };
    etags[i] = client_.call(part).header("etag");
    moved();
  });
  return etags;
}

void S3Store::complete(const std::string& key, const std::string& id, std::uint64_t bytes,
                       const std::vector<std::string>& etags) {
  const std::string etag = etag_of_parts(etags);
  const auto is_there = [&] {
    const auto found = etag.empty() ? std::nullopt : head(key);
    return found && found->bytes == bytes && unquoted(found->etag) == unquoted(etag);
  };
  S3Call call{
      .method = "POST", .key = key, .query = {{"uploadId", id}}, .headers = {{"content-type", "application/xml"}}};
  call.body = xml_of_parts(etags);
  call.deadline_s = steady_s() + kAssembly_s;
  call.try_s = kAssemblyTry_s;
  call.done_already = is_there;
  call.wrong = [](const HttpResponse& response) -> std::string {
    const S3Error inside = s3_error_in(response);  // S3 sends status 200 before it knows the result
    if (!inside.code.empty()) return fmt::format("status 200 with the error {} inside", inside.code.substr(0, 60));
    return response.body.find("CompleteMultipartUploadResult") == std::string::npos ? "an answer without a result" : "";
  };
  try {
    client_.call(call);
  } catch (const StoreFailed&) {
    // An earlier try may have succeeded although its answer was lost: then the upload id is unknown now.
    if (!is_there()) throw;
  }
}

}  // namespace wt
