#include "trainer/storage/s3_store.hpp"

#include <algorithm>
#include <iterator>
#include <pugixml.hpp>

#include "configs/base/clock.hpp"
#include "trainer/storage/s3_list.hpp"

namespace wt {
namespace {

/// Parses an XML answer; another root element makes the request be repeated.
std::function<std::string(const HttpResponse&)> needs_root(const char* root, pugi::xml_document& document) {
  return [root, &document](const HttpResponse& response) -> std::string {
    if (const S3Error error = s3_error_in(response); !error.code.empty())
      return fmt::format("status {} with the error {} inside", response.status, error.code.substr(0, 60));
    if (!document.load_string(response.body.c_str()) || !document.child(root))
      return fmt::format("an answer without {}", root);
    return "";
  };
}

}  // namespace

std::string S3Store::key_of(const std::string& name) const {
  check_store_name(address(), name);
  return client_.address().key(name);
}

std::optional<S3Store::Head> S3Store::head(const std::string& key) {
  S3Call call{.method = "HEAD", .key = key};
  call.also_taken = {400, 403, 404};
  call.wrong = [](const HttpResponse& r) {
    return r.status == 200 && r.header("content-length").empty() ? "no length" : "";
  };
  for (bool again = true;; again = false) {
    const HttpResponse response = client_.call(call);
    if (response.status == 404) return std::nullopt;
    if (response.status / 100 == 2)
      return Head{std::stoull(response.header("content-length")), response.header("etag")};
    // An answer to HEAD has no reason; one to GET does. The GET may also renew credentials.
    S3Call why{.key = key, .headers = {{"range", "bytes=0-0"}}};
    why.also_taken = {404, 416};
    if (client_.call(why).status == 404) return std::nullopt;
    if (!again)
      throw StoreFailed(
          StoreFailed::Kind::denied,
          fmt::format("HEAD s3://{}/{}: found status {}, although reading is allowed; check the bucket's policy",
                      client_.address().bucket, key, response.status));
  }
}

std::optional<std::uint64_t> S3Store::size(const std::string& name) {
  const auto found = head(key_of(name));
  return found ? std::optional(found->bytes) : std::nullopt;
}

void S3Store::put(const std::string& name, std::string_view bytes, bool only_if_absent) {
  S3Call call{.method = "PUT", .key = key_of(name), .body = std::string(bytes)};
  if (only_if_absent) {
    call.headers.emplace_back("if-none-match", "*");
    // The answer to the previous try was lost: check whether the object has these bytes.
    call.done_already = [&] {
      try {
        return read(name, bytes.size()) == bytes;
      } catch (const StoreFailed&) {
        return false;
      }
    };
  }
  client_.call(call);
}

std::vector<StoreEntry> S3Store::list(const std::string& prefix) {
  const std::string root = client_.address().prefix.empty() ? "" : client_.address().prefix + "/";
  std::vector<StoreEntry> found;
  for (std::string token;;) {
    S3Call call{.query = {{"list-type", "2"}, {"prefix", root + prefix}, {"encoding-type", "url"}}};
    if (!token.empty()) call.query.emplace_back("continuation-token", token);
    pugi::xml_document document;
    call.wrong = needs_root("ListBucketResult", document);
    client_.call(call);
    S3ListPage page = s3_list_page(document.child("ListBucketResult"), root, prefix);
    std::ranges::move(page.files, std::back_inserter(found));
    if (page.is_last) break;
    if (page.next.empty() || page.next == token)
      throw StoreFailed(
          StoreFailed::Kind::other,
          fmt::format("{}: found a list that never ends, needs one that does; the store is broken", address()));
    token = page.next;
  }
  std::ranges::sort(found, {}, &StoreEntry::name);
  return found;
}

void S3Store::remove(const std::string& name) {
  S3Call call{.method = "DELETE", .key = key_of(name)};
  call.also_taken = {404};
  client_.call(call);
}

void S3Store::abandon_uploads(const std::string& prefix) {
  const std::string root = client_.address().prefix.empty() ? "" : client_.address().prefix + "/";
  std::string key_marker, id_marker;
  for (;;) {
    S3Call call{.query = {{"uploads", ""}, {"prefix", root + prefix}}};
    if (!key_marker.empty())
      call.query.insert(call.query.end(), {{"key-marker", key_marker}, {"upload-id-marker", id_marker}});
    pugi::xml_document document;
    call.wrong = needs_root("ListMultipartUploadsResult", document);
    client_.call(call);
    const pugi::xml_node result = document.child("ListMultipartUploadsResult");
    for (const pugi::xml_node upload : result.children("Upload"))
      if (const std::string key = upload.child_value("Key"); key.starts_with(root + prefix))
        abort(key, upload.child_value("UploadId"));
    const std::string key = result.child_value("NextKeyMarker"), id = result.child_value("NextUploadIdMarker");
    if (std::string(result.child_value("IsTruncated")) != "true" || key.empty() ||
        (key == key_marker && id == id_marker))
      return;
    key_marker = key, id_marker = id;
  }
}

void S3Store::abort(const std::string& key, const std::string& id) noexcept try {
  S3Call call{.method = "DELETE", .key = key, .query = {{"uploadId", id}}};
  call.also_taken = {404};
  call.attempts = 3;
  call.deadline_s = steady_s() + 30;
  client_.call(call);
} catch (const std::exception&) {  // abandon_uploads() of the next run removes it
}

}  // namespace wt
