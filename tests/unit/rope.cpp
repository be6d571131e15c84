// Scaled rotary positions against values worked out by hand, and which values are refused. That whole models agree with
// transformers is tests/python/hugging_face_test.py.
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

#include "configs/base/error.hpp"
#include "configs/files/model.hpp"

using namespace wt;
using Catch::Contains;

namespace {

using Kind = RopeScaling::Kind;

const RopeScaling kDeepSeekV3{
    .kind = Kind::yarn, .factor = 40, .original_max_position_embeddings = 4096, .mscale = 1, .mscale_all_dim = 1};
const RopeScaling kLlama31{.kind = Kind::llama3,
                           .factor = 8,
                           .original_max_position_embeddings = 8192,
                           .low_freq_factor = 1,
                           .high_freq_factor = 4};

double plain(double theta, double dim, std::size_t pair) {
  return std::pow(theta, -2.0 * static_cast<double>(pair) / dim);
}

std::string refused(const RopeScaling& scaling) {
  try {
    scaling.check("model.yaml");
  } catch (const Error& e) {
    CHECK(e.code() == Code::usage);
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("plain and linear frequencies") {
  const std::vector<double> one = rope_frequencies({}, 10000, 8),
                            fourth = rope_frequencies({.kind = Kind::linear, .factor = 4}, 10000, 8);
  REQUIRE(one.size() == 4);
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i] == Approx(std::pow(10.0, -static_cast<double>(i))));  // 10000^(-2i/8)
    CHECK(fourth[i] == Approx(one[i] / 4));
  }
  CHECK(rope_amplitude({.kind = Kind::linear, .factor = 4}) == 1);
}

TEST_CASE("Llama 3.1 keeps wavelengths below 2,048 tokens and divides those above 8,192 by eight") {
  const std::vector<double> found = rope_frequencies(kLlama31, 500000, 128);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double before = plain(500000, 128, i), wavelength = 2 * std::numbers::pi / before;
    if (wavelength < 2048)
      CHECK(found[i] == Approx(before));
    else if (wavelength > 8192)
      CHECK(found[i] == Approx(before / 8));
    else
      CHECK((found[i] < before && found[i] > before / 8));
  }
  // Pair 0 turns one radian a position: 16 tokens are 16 / 2 pi rotations, here half way between the two factors.
  const double rotations = 16 / (2 * std::numbers::pi);
  const RopeScaling middle{.kind = Kind::llama3,
                           .factor = 8,
                           .original_max_position_embeddings = 16,
                           .low_freq_factor = rotations - 1,
                           .high_freq_factor = rotations + 1};
  CHECK(rope_frequencies(middle, 10000, 2)[0] == Approx(0.5 / 8 + 0.5));
  CHECK(rope_amplitude(kLlama31) == 1);
}

TEST_CASE("DeepSeek-V3's yarn keeps pairs up to 10 and divides from 23 on, with a ramp between") {
  // 64 ln(4096 / (2 pi b)) / (2 ln 10000) is 10.47 for b = 32 rotations and 22.51 for 1; rounded outwards.
  const std::vector<double> found = rope_frequencies(kDeepSeekV3, 10000, 64);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double before = plain(10000, 64, i);
    const double divided = i <= 10 ? 0 : i >= 23 ? 1 : (static_cast<double>(i) - 10) / 13;
    CHECK(found[i] == Approx(before * (1 - divided) + before / 40 * divided));
  }
  RopeScaling exact = kDeepSeekV3;
  exact.truncate = false;
  const double divided = (11 - 10.47224081) / (22.51344064 - 10.47224081), before = plain(10000, 64, 11);
  CHECK(rope_frequencies(exact, 10000, 64)[11] == Approx(before * (1 - divided) + before / 40 * divided));
}

TEST_CASE("yarn's amplitude, and what it does to latent attention") {
  const double m = 1 + 0.1 * std::log(40.0);  // 1.3689
  CHECK(m == Approx(1.368888));
  CHECK(rope_amplitude(kDeepSeekV3) == 1);
  CHECK(latent_softmax_factor(kDeepSeekV3) == Approx(m * m));
  RopeScaling scaling = kDeepSeekV3;
  scaling.mscale = 0.707;
  CHECK(rope_amplitude(scaling) == Approx((1 + 0.0707 * std::log(40.0)) / m));
  scaling.mscale_all_dim = 0;
  CHECK(rope_amplitude(scaling) == Approx(m));
  CHECK(latent_softmax_factor(scaling) == 1);
  scaling.attention_factor = 1.5;
  CHECK(rope_amplitude(scaling) == 1.5);
  CHECK(rope_amplitude({.kind = Kind::yarn, .factor = 4, .original_max_position_embeddings = 32768}) ==
        Approx(1.138629));

  ModelSpec model;
  model.head_dim = 64, model.attention.rope_scaling = kDeepSeekV3;
  CHECK(model.softmax_scale() == 0.125);  // latent attention alone
  model.attention.mla = {512, 0, 32, 32, 128};
  CHECK(model.softmax_scale() == Approx(0.125 * m * m));
}

TEST_CASE("values that no formula takes are refused by their key") {
  const auto with = [](RopeScaling scaling, auto member, auto value) {
    scaling.*member = value;
    return refused(scaling);
  };
  CHECK(refused({}) == "no error");
  CHECK(refused(kLlama31) == "no error");
  CHECK(refused(kDeepSeekV3) == "no error");
  CHECK_THAT(with(kDeepSeekV3, &RopeScaling::factor, 0.5),
             Contains("rope_scaling.factor: found 0.5, yarn needs a number >= 1"));
  CHECK_THAT(with(kDeepSeekV3, &RopeScaling::original_max_position_embeddings, 0),
             Contains("original_max_position_embeddings: found 0"));
  CHECK_THAT(with(kDeepSeekV3, &RopeScaling::beta_fast, 0.5),
             Contains("beta_fast: found 0.5, yarn needs at least beta_slow"));
  CHECK_THAT(with(kDeepSeekV3, &RopeScaling::beta_slow, 0.0), Contains("beta_slow: found 0"));
  CHECK_THAT(with(kDeepSeekV3, &RopeScaling::mscale, -1.0), Contains("mscale: found -1"));
  CHECK_THAT(with(kDeepSeekV3, &RopeScaling::attention_factor, -1.0), Contains("attention_factor: found -1"));
  CHECK_THAT(with(kLlama31, &RopeScaling::high_freq_factor, 0.5),
             Contains("high_freq_factor: found 0.5, llama3 needs at least low_freq_factor"));
  CHECK(with(kLlama31, &RopeScaling::high_freq_factor, 1.0) == "no error");
  CHECK_THAT(with(kLlama31, &RopeScaling::low_freq_factor, 0.0), Contains("low_freq_factor: found 0"));
}
