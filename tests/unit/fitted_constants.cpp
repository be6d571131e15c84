// configs/constants: that its files are what the tables give today, and what a file that is missing or strange says.
#include "configs/files/fitted_constants.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "sim/cost/published_constants.hpp"
#include "tests/fixtures/published_reference.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using nlohmann::json;

namespace {

/// Where two documents differ: numbers by more than processors' logarithms and sums do (a fit ends within 1e-9).
std::string difference(const json& a, const json& b, const std::string& where) {
  if (a.is_number() && b.is_number()) {
    const double x = a.get<double>(), y = b.get<double>();
    return std::abs(x - y) <= 1e-6 * std::max({std::abs(x), std::abs(y), 1e-9}) ? "" : where;
  }
  if (a.type() != b.type() || a.size() != b.size()) return where;
  if (!a.is_structured()) return a == b ? "" : where;
  for (const auto& [key, value] : a.items()) {
    const std::string at = where + "." + key;
    if (a.is_object() && !b.contains(key)) return at;
    const json& other = a.is_object() ? b.at(key) : b.at(static_cast<std::size_t>(std::stoul(key)));
    if (std::string found = difference(value, other, at); !found.empty()) return found;
  }
  return "";
}

}  // namespace

TEST_CASE("the fitted constants in the tree are those of today's tables") {
  for (const auto& [name, fitted] : test::published().documents()) {
    INFO("configs/constants/" << name << ".json: windtunnel calibrate --published writes it anew");
    const json kept = json::parse(read_file(configs_folder() / "constants" / (name + ".json"), "constants"));
    CHECK(difference(fitted, kept, name) == "");
  }
}

TEST_CASE("a document that is not one of constants says so") {
  CHECK(test::usage_error([] { fitted_constants<StepModel>("none"); }).find("none.json") != std::string::npos);
  // Each is another's file.
  CHECK(test::usage_error([] { fitted_constants<StepModel>("memory"); }).find("calibrate --published") !=
        std::string::npos);
  CHECK(difference(json{{"a", {1, 2.0}}}, json{{"a", {1, 2.1}}}, "") == ".a.1");
  CHECK(difference(json{{"a", 1}}, json{{"b", 1}}, "") == ".a");
}
