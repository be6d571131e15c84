// Lists, texts and sums that are made of each element of another list, in one expression.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace wt {

/// What `make` makes of each element, in their order. It may be a member; left out: copies.
template <typename Range, typename Make = std::identity>
auto mapped(Range&& range, const Make& make = {}) {
  std::vector<std::decay_t<std::invoke_result_t<const Make&, decltype(*std::begin(range))>>> out;
  if constexpr (requires { std::size(range); }) out.reserve(std::size(range));
  for (auto&& each : range) out.push_back(std::invoke(make, each));
  return out;
}

/// What `make` makes of each element, with the separator between them.
template <typename Range, typename Make = std::identity>
std::string joined(Range&& range, std::string_view separator, const Make& make = {}) {
  return fmt::format("{}", fmt::join(mapped(range, make), separator));
}

/// Summed in the order of the elements.
template <typename Range, typename Term = std::identity>
auto sum_of(Range&& range, const Term& term = {}) {
  std::decay_t<std::invoke_result_t<const Term&, decltype(*std::begin(range))>> sum{};
  for (auto&& each : range) sum += std::invoke(term, each);
  return sum;
}

}  // namespace wt
