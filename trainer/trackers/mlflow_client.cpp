#include "trainer/trackers/mlflow_client.hpp"

#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"
#include "trainer/trackers/tracker.hpp"

namespace wt {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestMessage = 300;
const std::string kApi = "mlflow/";

/// A server's message in one line.
std::string as_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text.size() > kLongestMessage ? text.substr(0, kLongestMessage) + "..." : text;
}

}  // namespace

bool MlflowFault::permanent() const {
  return status / 100 == 4 && status != 401 && status != 403 && status != 408 && status != 429;
}

MlflowClient::MlflowClient(std::string tracking_uri, MlflowLogin login, double timeout_s)
    : uri_(std::move(tracking_uri)), login_(std::move(login)), timeout_s_(timeout_s) {
  while (uri_.ends_with('/')) uri_.pop_back();
}

std::optional<json> MlflowClient::send(HttpRequest request, MlflowFault& fault) {
  request.url = uri_ + "/api/2.0/" + request.url;
  request.timeout_s = timeout_s_;
  login_.add_to(request);
  const HttpResponse answer = http_.send(request);
  const json body = json::parse(answer.body, nullptr, false);
  if (answer.status == 200 && body.is_object()) return body;
  fault.status = answer.status;
  fault.code = as_line(text_at(body, "error_code"));
  if (body.is_object() && body.contains("message") && body["message"].is_string())
    fault.message = as_line(login_.without_secrets(body["message"]));
  else
    fault.message = answer.status == 200       ? "no JSON: this is no MLflow server"
                    : answer.status / 100 == 3 ? "a redirect, which is not followed: name the address it leads to"
                    : answer.status == 401     ? "set MLFLOW_TRACKING_TOKEN, or _USERNAME and _PASSWORD"
                    : answer.status / 100 == 4 ? "not MLflow's words: check tracking_uri"
                                               : "the server has failed";
  return {};
}

std::optional<json> MlflowClient::try_get(const std::string& call,
                                          const std::vector<std::pair<std::string, std::string>>& query,
                                          MlflowFault& fault) {
  HttpRequest request;
  request.url = kApi + call;
  char separator = '?';
  for (const auto& [key, value] : query)
    request.url += std::exchange(separator, '&') + key + "=" + percent_encoded(value);
  return send(std::move(request), fault);
}

std::optional<json> MlflowClient::try_post(const std::string& call, const json& body, MlflowFault& fault) {
  HttpRequest request;
  request.method = "POST", request.url = kApi + call;
  request.headers = {{"Content-Type", "application/json"}};
  request.sent_once = call == "runs/create";  // a repeated request would create a second run
  request.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return send(std::move(request), fault);
}

bool MlflowClient::try_put_artifact(const std::string& path, const std::string& bytes, MlflowFault& fault) {
  HttpRequest request;
  request.method = "PUT", request.url = "mlflow-artifacts/artifacts/" + path;
  request.body = bytes;
  return send(std::move(request), fault).has_value();
}

json MlflowClient::post(const std::string& call, const json& body) {
  MlflowFault fault;
  if (auto answer = try_post(call, body, fault)) return *answer;
  fail(call, fault);
}

void MlflowClient::fail(const std::string& call, const MlflowFault& fault) const {
  const std::string said = fmt::format("{}: found status {}{}{}", call, fault.status,
                                       fault.code.empty() ? "" : " " + fault.code, ": " + fault.message);
  if (fault.permanent()) throw TrackerRefused(said);
  throw_runtime("{}, needs 200", said);
}

}  // namespace wt
