// Models by the names of the Hugging Face Hub: shapes that ship with Windtunnel, and their counts against published
// ones.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "configs/files/hub_models.hpp"
#include "configs/files/model.hpp"
#include "configs/files/model_words.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using Catch::Contains;
using test::usage_error;

namespace {

struct Published {
  std::string repository, total, active, source;
};

std::vector<Published> published_counts() {
  std::ifstream file("tests/validation/model_shapes/published_counts.csv");
  std::vector<Published> out;
  std::string line;
  std::getline(file, line);  // names of the columns
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    Published row;
    for (std::string* cell : {&row.repository, &row.total, &row.active}) std::getline(cells, *cell, ',');
    std::getline(cells, row.source);
    out.push_back(row);
  }
  return out;
}

/// "14.7B" as a number, and how far from it a rounded count may be: a unit of its last digit, at least 1 %; nothing for
/// a number in full.
std::pair<double, double> figure(const std::string& text) {
  const double unit = text.ends_with('T') ? 1e12 : text.ends_with('B') ? 1e9 : text.ends_with('M') ? 1e6 : 1;
  const std::size_t point = text.find('.'), digits = point == text.npos ? 0 : text.size() - 2 - point;
  const double value = std::stod(text) * unit;
  return {value, unit == 1 ? 0 : std::max(0.01 * value, unit * std::pow(10.0, -static_cast<double>(digits)))};
}

}  // namespace

TEST_CASE("parameters of the shipped shapes are the published ones") {
  const std::vector<Published> all = published_counts();
  CHECK(all.size() >= 100);
  for (const Published& row : all) {
    INFO(row.repository << ": " << row.source);
    ModelSpec model = read_model(row.repository);
    model.mtp_layers = 0;  // cards count the model without these modules
    const auto [total, rounding] = figure(row.total);
    CHECK(std::abs(static_cast<double>(model.total_parameters()) - total) <= rounding);
    if (row.active.empty()) continue;
    // Some publishers leave out one or both embeddings.
    const auto [active, active_rounding] = figure(row.active);
    const double most = static_cast<double>(model.active_parameters()),
                 least = most - 2 * static_cast<double>(model.vocab * model.d_model);
    CHECK(active >= least - active_rounding);
    CHECK(active <= most + active_rounding);
  }
}

TEST_CASE("every shipped shape can be read, and its repository is found by its name") {
  CHECK(hub_repositories().size() >= 150);
  for (const std::string& repository : hub_repositories()) {
    INFO(repository);
    CHECK(read_model(repository).total_parameters() > 0);
  }
  CHECK(hub_repository("Qwen/Qwen3-8B-Base") == "Qwen/Qwen3-8B");
  CHECK(hub_repository("meta-llama/llama-3.1-8b-instruct") == "meta-llama/Llama-3.1-8B");
  CHECK(hub_repository("Qwen3-8B") == "Qwen/Qwen3-8B");
  CHECK(hub_repository("deepseek-ai/DeepSeek-R1") == "deepseek-ai/DeepSeek-V3");
  CHECK(hub_repository("someone-else/Qwen3-8B").empty());
  CHECK(repository_of("deepseek-v3") == "deepseek-ai/DeepSeek-V3");
  CHECK(read_model("Qwen/Qwen3-30B-A3B").name == "qwen3-30b-a3b");  // described by a preset
}

TEST_CASE("a shape names the copy with which it was compared, and a command says where none confirms it") {
  for (const std::string& repository : hub_repositories()) {
    INFO(repository);
    CHECK(!hub_source(hub_repository(repository)).empty());
  }
  CHECK_THAT(model_lines(read_model("swiss-ai/Apertus-70B-2509")),
             Contains("\napproximated: its shape is unconfirmed: "));
  CHECK(approximations_text(read_model("Qwen/Qwen3-8B")).empty());
}

TEST_CASE("a misspelt model gets the nearest preset or repository") {
  const auto said = [](const std::string& name) { return usage_error([&] { read_model(name); }); };
  CHECK_THAT(said("Qwen/Qwen3-8C"), Contains("did you mean 'Qwen/Qwen3-8B'?"));
  CHECK_THAT(said("mixtral-8x7"), Contains("did you mean 'mixtral-8x7b'?"));
  CHECK_THAT(said("Llama-3.2-1C"), Contains("did you mean 'Llama-3.2-1B'?"));
  CHECK_THAT(said("entirely/unlike-anything-known"), Contains("nor a repository") && !Contains("did you mean"));
}

TEST_CASE("a model in words has its parameters, and what its shape leaves out") {
  CHECK(model_lines(read_model("mixtral-8x7b")) == "mixtral-8x7b: 46.7B parameters, 12.88B active\n");
  CHECK(model_lines(read_model("Qwen/Qwen3-8B")) == "Qwen3-8B: 8.191B parameters\n");
  CHECK_THAT(model_lines(read_model("zai-org/GLM-5")), Contains("\napproximated: sparse attention is predicted as a"));
  CHECK(approximations_text(read_model("mixtral-8x7b")).empty());
}
