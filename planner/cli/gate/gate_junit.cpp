// JUnit XML for CI servers: one testsuite, one testcase per benchmark.
#include <fmt/core.h>

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

#include "planner/cli/gate/gate_format.hpp"
#include "planner/cli/gate/gate_report.hpp"

namespace wt {
namespace {

/// XML 1.0 forbids other control characters, even escaped.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20; }, '?');
  return text;
}

pugi::xml_node add(pugi::xml_node parent, const char* tag,
                   const std::vector<std::pair<const char*, std::string>>& attributes) {
  pugi::xml_node node = parent.append_child(tag);
  for (const auto& [name, value] : attributes) node.append_attribute(name) = printable(value).c_str();
  return node;
}

std::string details(const GateRow& row) {
  return fmt::format("{} to {}, {} {}, n {}, adjusted p {}: {}", gate_value(row.base_median, row.unit),
                     gate_value(row.current_median, row.unit), gate_change(row.ratio), gate_interval(row),
                     gate_samples(row), gate_p(row.p_adjusted), gate_reason(row));
}

void add_outcome(pugi::xml_node testcase, const GateRow& row, const GateOptions& options) {
  const auto failed = [&](const char* tag, const char* type) {
    add(testcase, tag, {{"type", type}, {"message", details(row)}});
  };
  if (row.verdict == Verdict::slower) failed("failure", "regression");
  if (row.verdict == Verdict::failed && row.failed_before)
    add(testcase, "skipped", {{"message", "failed " + row.reason}});
  else if (row.verdict == Verdict::failed)
    failed("error", "failed");
  if (row.verdict == Verdict::incomparable) failed("error", "incomparable");
  if (row.verdict == Verdict::missing && !options.allow_missing) failed("failure", "missing");
  if (row.verdict == Verdict::missing && options.allow_missing)
    add(testcase, "skipped", {{"message", "missing, allowed"}});
  if (row.verdict == Verdict::inconclusive) add(testcase, "skipped", {{"message", "inconclusive: " + details(row)}});
}

}  // namespace

std::string gate_junit(const GateResult& result) {
  const std::size_t missing = result.count(Verdict::missing);
  const std::size_t allowed = result.options.allow_missing ? missing : 0;
  const auto failed_before = static_cast<std::size_t>(
      std::ranges::count_if(result.rows, [](const GateRow& row) { return row.failed_before; }));
  pugi::xml_document document;
  const pugi::xml_node suite = add(
      document, "testsuite",
      {{"name", "windtunnel gate"},
       {"tests", std::to_string(result.rows.size())},
       {"failures", std::to_string(result.count(Verdict::slower) + missing - allowed)},
       {"errors", std::to_string(result.count(Verdict::incomparable) + result.count(Verdict::failed) - failed_before)},
       {"skipped", std::to_string(result.count(Verdict::inconclusive) + allowed + failed_before)}});
  const pugi::xml_node properties = add(suite, "properties", {});
  add(properties, "property", {{"name", "sentence"}, {"value", result.sentence()}});
  add(properties, "property", {{"name", "exit_status"}, {"value", std::to_string(result.exit_status())}});
  for (const auto& [key, value] : result.current_fingerprint)
    add(properties, "property", {{"name", key}, {"value", value}});
  for (const GateRow& row : result.rows) {
    pugi::xml_node testcase = add(suite, "testcase", {{"classname", "gate"}, {"name", row.name}});
    if (row.unit == "s" && row.current_median)
      testcase.append_attribute("time") = fmt::format("{:.9f}", *row.current_median).c_str();
    add_outcome(testcase, row, result.options);
  }
  std::ostringstream text;
  document.save(text, "  ", pugi::format_default, pugi::encoding_utf8);
  return text.str();
}

}  // namespace wt
