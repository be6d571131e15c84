#include "trainer/storage/credential_sources.hpp"

#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "configs/base/lax_json.hpp"
#include "configs/base/process.hpp"
#include "configs/base/text.hpp"
#include "trainer/storage/aws_profile.hpp"

namespace wt {
namespace {

/// Errors never quote a document with credentials.
AwsCredentials credentials_of_json(const std::string& text, const std::string& source, const char* token_key) {
  const auto document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  AwsCredentials found{text_at(document, "AccessKeyId"), text_at(document, "SecretAccessKey"),
                       text_at(document, token_key)};
  if (found.access_key.empty() || found.secret_key.empty())
    throw_runtime("{}: found no AccessKeyId and SecretAccessKey, needs JSON with both; check what it gives", source);
  found.expires = expiration_time(text_at(document, "Expiration"), source);
  return found;
}

std::string read_token(const std::string& file) {
  std::string token = read_file(file, "a token");
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back()))) token.pop_back();
  return token;
}

/// The token must be encrypted, or stay on this machine or the link-local addresses of AWS's agents.
void check_container_url(const std::string& url) {
  const std::string host = url_host(url),
                    name = host.substr(0, host.starts_with('[') ? host.find(']') + 1 : host.find(':'));
  const bool local = name == "localhost" || name.starts_with("127.") || name == "[::1]" || name == "169.254.170.2" ||
                     name == "169.254.170.23" || name == "[fd00:ec2::23]";
  if (!url.starts_with("https://") && !(url.starts_with("http://") && local))
    throw_usage(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI: found host {}, allowed is https or a host of this machine; correct it",
        host);
}

HttpResponse ask_instance(HttpClient& http, HttpRequest request) {
  request.timeout_s = 5, request.connect_timeout_s = 1, request.direct = true, request.at_most = 1 << 16;
  return http.send(request);
}

}  // namespace

std::time_t expiration_time(const std::string& text, const std::string& source) {
  if (text.empty()) return 0;
  std::tm utc{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (end == nullptr)
    throw_runtime("{}: found an Expiration that is no time, needs 2026-01-31T12:00:00Z; check what it gives", source);
  return timegm(&utc);
}

AwsCredentials credentials_of_web_identity(HttpClient& http, const std::string& role, const std::string& token_file,
                                           const std::string& session) {
  if (role.empty()) throw_usage("AWS_ROLE_ARN: found nothing, although AWS_WEB_IDENTITY_TOKEN_FILE is set; set both");
  HttpRequest request{.method = "POST"};
  request.url =
      environment_variable("AWS_ENDPOINT_URL_STS").value_or("https://sts." + aws_region() + ".amazonaws.com") + "/";
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  request.body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + percent_encoded(role) +
                 "&RoleSessionName=" + percent_encoded(session.empty() ? "windtunnel" : session) +
                 "&WebIdentityToken=" + percent_encoded(read_token(token_file));
  request.timeout_s = 20;
  HttpResponse response;
  for (int attempt = 0; attempt < 3; ++attempt)
    if (response = http.send(request); response.status < 500) break;
  pugi::xml_document document;
  document.load_string(response.body.c_str());
  const auto found = document.select_node("//Credentials").node();
  AwsCredentials credentials{found.child_value("AccessKeyId"), found.child_value("SecretAccessKey"),
                             found.child_value("SessionToken")};
  if (response.status != 200 || credentials.access_key.empty() || credentials.secret_key.empty())
    throw_runtime("{}: no credentials for {}: status {} {}; check the role's trust and the token file {}",
                  url_host(request.url), role, response.status,
                  document.select_node("//Error/Code").node().child_value(), token_file);
  credentials.expires = expiration_time(found.child_value("Expiration"), url_host(request.url));
  return credentials;
}

AwsCredentials credentials_of_process(const std::string& command) {
  const ProcessOutput said = run_for_output({.words = {"/bin/sh", "-c", command}});
  if (said.status != 0)
    throw_runtime("credential_process: ended with status {}; run it by hand and see what it says", *said.status);
  return credentials_of_json(said.text, "credential_process", "SessionToken");
}

std::optional<AwsCredentials> credentials_of_container(HttpClient& http) {
  const auto full = environment_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  const auto relative = environment_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (!full && !relative) return std::nullopt;
  HttpRequest request{.url = relative ? "http://169.254.170.2" + *relative : *full};
  check_container_url(request.url);
  if (const auto file = environment_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))
    request.headers.emplace_back("authorization", read_token(*file));
  else if (const auto token = environment_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"))
    request.headers.emplace_back("authorization", *token);
  request.timeout_s = 10, request.connect_timeout_s = 2, request.direct = true, request.at_most = 1 << 16;
  const HttpResponse response = http.send(request);
  if (response.status != 200)
    throw_runtime("{}: no credentials of the container: status {}; check its role", url_host(request.url),
                  response.status);
  return credentials_of_json(response.body, url_host(request.url), "Token");
}

std::optional<AwsCredentials> credentials_of_instance(HttpClient& http) {
  if (lower(environment_variable("AWS_EC2_METADATA_DISABLED").value_or("")) == "true") return std::nullopt;
  std::string endpoint = environment_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  HttpRequest token{.method = "PUT", .url = endpoint + "/latest/api/token"};
  token.headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}};
  HttpResponse response;
  for (int attempt = 1;; ++attempt) try {  // retried, because many ranks of a host ask at once
      response = ask_instance(http, token);
      if (response.status == 200 || (response.status < 500 && response.status != 429) || attempt == 3) break;
    } catch (const HttpFailed&) {
      if (attempt == 3) return std::nullopt;  // not an EC2 instance
    }
  if (response.status != 200) return std::nullopt;
  HttpRequest role{.url = endpoint + "/latest/meta-data/iam/security-credentials/"};
  role.headers = {{"x-aws-ec2-metadata-token", response.body}};
  response = ask_instance(http, role);
  if (response.status != 200 || response.body.empty()) return std::nullopt;
  role.url += percent_encoded(response.body.substr(0, response.body.find('\n')));
  response = ask_instance(http, role);
  if (response.status != 200)
    throw_runtime("{}: no credentials of the instance's role: status {}; check the role", url_host(endpoint),
                  response.status);
  return credentials_of_json(response.body, url_host(endpoint), "Token");
}

}  // namespace wt
