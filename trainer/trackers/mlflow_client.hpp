// MLflow's REST API 2.0, as far as a run needs it; checked against a 3.17.2 server.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "trainer/trackers/mlflow_login.hpp"

namespace wt {

/// An answer that is no success.
struct MlflowFault {
  int status = 0;
  std::string code;     ///< error_code, such as RESOURCE_ALREADY_EXISTS; empty: the answer is not MLflow's
  std::string message;  ///< without secrets, cut to a line
  /// The same will be refused again: 4xx but for a login (401, 403), a timeout (408) and too many requests (429).
  bool lasting() const;
};

class MlflowClient {
 public:
  /// Calls take at most so long.
  MlflowClient(std::string tracking_uri, MlflowLogin login, double timeout_s);

  /// `call`: "runs/create". Throws TrackerRefused for what lasts, Error{runtime} for what may go away.
  nlohmann::json get(const std::string& call, const std::vector<std::pair<std::string, std::string>>& query);
  nlohmann::json post(const std::string& call, const nlohmann::json& body);

  /// As above; an answer that is no success is returned in `fault`.
  std::optional<nlohmann::json> try_get(const std::string& call,
                                        const std::vector<std::pair<std::string, std::string>>& query,
                                        MlflowFault& fault);
  std::optional<nlohmann::json> try_post(const std::string& call, const nlohmann::json& body, MlflowFault& fault);
  /// Stores a file below the experiment's artifacts by the server's proxy (mlflow-artifacts); `path` is relative to its
  /// root: "1/RUN/artifacts/run.yaml". False: `fault`. Throws where no answer comes.
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
