// The login at an MLflow server, from the environment variables of MLflow's own client. Secrets appear in no message
// and no file.
#pragma once
#include <string>
#include <vector>

#include "trainer/storage/http.hpp"

namespace wt {

class MlflowLogin {
 public:
  /// MLFLOW_TRACKING_USERNAME with _PASSWORD (both or neither), otherwise MLFLOW_TRACKING_TOKEN, in MLflow's order;
  /// also MLFLOW_TRACKING_INSECURE_TLS and MLFLOW_TRACKING_SERVER_CERT_PATH. Throws Error{usage} where they contradict
  /// each other.
  static MlflowLogin from_environment();

  void add_to(HttpRequest& request) const;
  /// The text with each secret, plain or encoded, replaced by "***".
  std::string without_secrets(std::string text) const;

 private:
  std::string authorization_;         ///< the header's value; empty: none
  std::vector<std::string> secrets_;  ///< none of them empty
  std::string certificates_;
  bool verify_server_ = true;
};

}  // namespace wt
