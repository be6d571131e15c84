// How the MLflow server knows us, from the variables of MLflow's own client. Secrets stay in here: neither messages nor
// files have them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "trainer/storage/http.hpp"

namespace wt {

class MlflowLogin {
 public:
  /// MLFLOW_TRACKING_USERNAME with _PASSWORD (both or none), else MLFLOW_TRACKING_TOKEN: MLflow's order;
  /// MLFLOW_TRACKING_INSECURE_TLS, MLFLOW_TRACKING_SERVER_CERT_PATH. Throws Error{usage} where they contradict each
  /// other.
  static MlflowLogin from_environment();

  void add_to(HttpRequest& request) const;
  /// The text with each secret, as it is and as it is sent, replaced by "***".
  std::string without_secrets(std::string text) const;

 private:
  std::string authorization_;         ///< the header's value; empty: none
  std::vector<std::string> secrets_;  ///< none of them empty
  std::string certificates_;
  bool verify_server_ = true;
};

}  // namespace wt
