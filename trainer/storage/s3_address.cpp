#include "trainer/storage/s3_address.hpp"

#include <algorithm>

#include "configs/base/lists.hpp"
#include "trainer/storage/aws_profile.hpp"
#include "trainer/storage/http.hpp"
#include "trainer/storage/store.hpp"

namespace wt {
namespace {

std::string configured_endpoint() {
  for (const char* name : {"S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
    if (auto url = environment_variable(name)) return *url;
  return aws_profile()["endpoint_url"];
}

bool is_bucket_name(const std::string& name) {
  return name.size() >= 3 && name.size() <= 255 && name != "..." &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
             std::string::npos;
}

}  // namespace

S3Address parse_s3_address(const std::string& address) {
  S3Address found;
  const std::string rest = address.starts_with("s3://") ? address.substr(5) : "";
  const auto slash = std::min(rest.find('/'), rest.size());
  found.bucket = rest.substr(0, slash);
  found.prefix = slash < rest.size() ? rest.substr(slash + 1) : "";
  while (found.prefix.ends_with('/')) found.prefix.pop_back();
  if (!is_bucket_name(found.bucket))
    throw_usage("{}: found bucket '{}', needs s3://bucket/prefix; correct the address", address, found.bucket);
  if (!found.prefix.empty()) check_store_name(address, found.prefix);
  return found;
}

S3Endpoint s3_endpoint(const std::string& bucket) {
  S3Endpoint endpoint{configured_endpoint(), aws_region()};
  while (endpoint.url.ends_with('/')) endpoint.url.pop_back();
  if (endpoint.url.empty()) {
    endpoint.aws = true;
    const std::string host =
        fmt::format("s3.{}.amazonaws.com{}", endpoint.region, endpoint.region.starts_with("cn-") ? ".cn" : "");
    endpoint.url = bucket.find('.') == std::string::npos ? fmt::format("https://{}.{}", bucket, host)
                                                         : fmt::format("https://{}/{}", host, bucket);
    return endpoint;
  }
  if ((!endpoint.url.starts_with("http://") && !endpoint.url.starts_with("https://")) ||
      url_host(endpoint.url).empty() || endpoint.url.find_first_of("?#@ ") != std::string::npos)
    throw_usage("S3 endpoint: found host '{}', needs http(s)://host:port; correct S3_ENDPOINT_URL",
                url_host(endpoint.url));
  endpoint.aws = url_host(endpoint.url).ends_with(".amazonaws.com");
  endpoint.url += "/" + bucket;
  return endpoint;
}

std::string encoded_query(std::vector<std::pair<std::string, std::string>> query) {
  for (auto& [name, value] : query) name = percent_encoded(name), value = percent_encoded(value);
  std::ranges::sort(query);
  return joined(query, "&", [](const auto& each) { return each.first + "=" + each.second; });
}

}  // namespace wt
