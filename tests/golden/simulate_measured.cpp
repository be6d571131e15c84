// simulate --measured: a user's own step, and what it changes.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/windtunnel.hpp"

using namespace wt::test;
using nlohmann::json;

namespace {

json simulated(const std::string& more) {
  const auto [status, text] =
      windtunnel("simulate llama3-8b-128-h100 --cluster hgx-h100 --stack torchtitan --json" + more);
  INFO(text.substr(0, 500));
  REQUIRE(status == 0);
  return json::parse(text.substr(text.find('{'))).at("payload");
}

}  // namespace

TEST_CASE("a measured step moves the prediction towards it, and makes its interval narrower") {
  const json before = simulated("");
  CHECK(before.at("own_steps").is_null());
  const double step_s = before.at("step_s"), measured_s = 1.2 * step_s;
  const TempDirectory folder;
  const std::string file = (folder / "measured.yaml").string();
  std::ofstream(file) << "steps:\n- {run: llama3-8b-128-h100, cluster: hgx-h100, step_s: " << measured_s << "}\n";
  const json after = simulated(" --measured " + file);
  const double now_s = after.at("step_s");
  CHECK((now_s > step_s && now_s < measured_s));
  const auto width = [](const json& of) { return of.at("high_s").get<double>() / of.at("low_s").get<double>(); };
  CHECK(width(after) < width(before));
  const json& run = after.at("own_steps").at("runs").at(0);
  CHECK(run.at("measured_s") == Approx(measured_s));
  CHECK(run.at("before_s") == Approx(step_s));
  CHECK(run.at("after_s") == Approx(now_s));
  CHECK(after.at("own_steps").at("factors").at("products") > 1);
}

TEST_CASE("the report says what was measured, and bad files are refused") {
  const TempDirectory folder;
  const std::string file = (folder / "measured.yaml").string(),
                    command = "simulate llama3-8b-128-h100 --cluster hgx-h100 --measured " + file;
  std::ofstream(file)
      << "steps:\n- {run: llama3-8b-128-h100, cluster: hgx-h100, tokens_per_s_per_gpu: 6514, reserved: 60GiB}\n";
  const auto [status, text] = windtunnel(command);
  CHECK(status == 0);
  CHECK(text.find("Your measured steps") != std::string::npos);
  CHECK(text.find("1 measured step") != std::string::npos);
  CHECK(text.find("Measured peaks of memory") != std::string::npos);
  std::ofstream(file) << "steps: []\n";
  const auto [refused, said] = windtunnel(command);
  CHECK(refused == 2);
  CHECK(said.find("needs at least one") != std::string::npos);
}
