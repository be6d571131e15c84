// The part of MLflow's REST API 2.0 that a run needs; tested with a 3.17.2 server.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "trainer/trackers/mlflow_login.hpp"

namespace wt {

/// An unsuccessful answer.
struct MlflowFault {
  int status = 0;
  std::string code;     ///< error_code, such as RESOURCE_ALREADY_EXISTS; empty: the answer is not MLflow's
  std::string message;  ///< without secrets, in one line
  /// Whether a retry would fail as well: 4xx except login (401, 403), timeout (408) and too many requests (429).
  bool permanent() const;
};

class MlflowClient {
 public:
  /// `timeout_s` limits each call.
  MlflowClient(std::string tracking_uri, MlflowLogin login, double timeout_s);

  /// `call`: "runs/create". Throws TrackerRefused for permanent errors, Error{runtime} for temporary ones.
  nlohmann::json post(const std::string& call, const nlohmann::json& body);

  /// As above, but returns an unsuccessful answer in `fault`.
  std::optional<nlohmann::json> try_get(const std::string& call,
                                        const std::vector<std::pair<std::string, std::string>>& query,
                                        MlflowFault& fault);
  std::optional<nlohmann::json> try_post(const std::string& call, const nlohmann::json& body, MlflowFault& fault);
  /// Stores a file in the experiment's artifacts through the server's proxy (mlflow-artifacts); `path` is relative to
  /// their root: "1/RUN/artifacts/run.yaml". False: see `fault`. Throws without an answer.
  bool try_put_artifact(const std::string& path, const std::string& bytes, MlflowFault& fault);
  [[noreturn]] void fail(const std::string& call, const MlflowFault& fault) const;

  const std::string& tracking_uri() const { return uri_; }

 private:
  std::optional<nlohmann::json> send(HttpRequest request, MlflowFault& fault);

  std::string uri_;
  MlflowLogin login_;
  double timeout_s_;
  HttpClient http_;
};

}  // namespace wt
