// What a refusal says.
#pragma once
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "configs/spec/support/error.hpp"

namespace wt::test {

/// The text of the Error{usage} that `fails` throws; "no error" where it throws none.
inline std::string usage_error(const std::function<void()>& fails) {
  try {
    fails();
  } catch (const Error& e) {
    CHECK(e.code() == Code::usage);
    return e.what();
  }
  return "no error";
}

}  // namespace wt::test
