#include "trainer/trackers/mlflow_login.hpp"

#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>

#include "configs/base/error.hpp"
#include "configs/base/text.hpp"
#include "trainer/storage/aws_profile.hpp"

namespace wt {
namespace {

std::string variable(const char* name) { return environment_variable(name).value_or(""); }

std::string base64(const std::string& bytes) {
  namespace it = boost::archive::iterators;
  using Letters = it::base64_from_binary<it::transform_width<std::string::const_iterator, 6, 8>>;
  std::string out(Letters(bytes.begin()), Letters(bytes.end()));
  return out + std::string((3 - bytes.size() % 3) % 3, '=');
}

void check_value(const char* name, const std::string& value) {
  if (value.find_first_of(std::string("\r\n", 2)) != std::string::npos)
    throw_usage("{}: found a line break in it (its value is not repeated here), allowed is one line; set it without",
                name);
}

}  // namespace

MlflowLogin MlflowLogin::from_environment() {
  MlflowLogin out;
  const std::string user = variable("MLFLOW_TRACKING_USERNAME"), password = variable("MLFLOW_TRACKING_PASSWORD"),
                    token = variable("MLFLOW_TRACKING_TOKEN"),
                    insecure = lower(variable("MLFLOW_TRACKING_INSECURE_TLS"));
  check_value("MLFLOW_TRACKING_USERNAME", user);
  check_value("MLFLOW_TRACKING_PASSWORD", password);
  check_value("MLFLOW_TRACKING_TOKEN", token);
  if (user.empty() != password.empty())
    throw_usage("MLFLOW_TRACKING_{}: found it without MLFLOW_TRACKING_{}, allowed are both or none; set both",
                user.empty() ? "PASSWORD" : "USERNAME", user.empty() ? "USERNAME" : "PASSWORD");
  if (!user.empty()) {
    const std::string coded = base64(user + ":" + password);
    out.authorization_ = "Basic " + coded;
    out.secrets_ = {password, coded};
  } else if (!token.empty()) {
    out.authorization_ = "Bearer " + token;
    out.secrets_ = {token};
  }
  out.verify_server_ = insecure != "true" && insecure != "1";
  out.certificates_ = variable("MLFLOW_TRACKING_SERVER_CERT_PATH");
  if (!out.verify_server_ && !out.certificates_.empty())
    throw_usage(
        "MLFLOW_TRACKING_INSECURE_TLS: found it beside MLFLOW_TRACKING_SERVER_CERT_PATH, allowed is one of them; leave "
        "one out");
  return out;
}

void MlflowLogin::add_to(HttpRequest& request) const {
  if (!authorization_.empty()) request.headers.emplace_back("Authorization", authorization_);
  request.certificates = certificates_;
  request.verify_server = verify_server_;
}

std::string MlflowLogin::without_secrets(std::string text) const {
  for (const std::string& secret : secrets_)
    for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += 3)
      text.replace(at, secret.size(), "***");
  return text;
}

}  // namespace wt
