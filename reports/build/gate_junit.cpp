// JUnit XML as CI servers read it: one testsuite, one testcase a benchmark.
#include <fmt/core.h>

#include "reports/build/gate_format.hpp"
#include "reports/build/gate_report.hpp"

namespace wt {
namespace {

// Text for an attribute. Control characters are not allowed in XML 1.0, not even escaped.
std::string xml(const std::string& text) {
  std::string safe;
  for (char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return safe;
}

std::string details(const GateRow& row) {
  return fmt::format("{} to {}, {} {}, n {}, adjusted p {}: {}", gate_value(row.base_median, row.unit),
                     gate_value(row.current_median, row.unit), gate_change(row.ratio), gate_interval(row),
                     gate_samples(row), gate_p(row.p_adjusted), gate_reason(row));
}

std::string outcome(const GateRow& row, const GateOptions& options) {
  const auto element = [&](const char* tag, const char* type) {
    return fmt::format("    <{} type=\"{}\" message=\"{}\"/>\n", tag, type, xml(details(row)));
  };
  switch (row.verdict) {
    case Verdict::slower:
      return element("failure", "regression");
    case Verdict::failed:
      return element("error", "failed");
    case Verdict::missing:
      return options.allow_missing ? fmt::format("    <skipped message=\"missing, allowed\"/>\n")
                                   : element("failure", "missing");
    case Verdict::incomparable:
      return element("error", "incomparable");
    case Verdict::inconclusive:
      return fmt::format("    <skipped message=\"{}\"/>\n", xml("inconclusive: " + details(row)));
    default:
      return "";
  }
}

}  // namespace

std::string gate_junit(const GateResult& result) {
  const std::size_t missing = result.count(Verdict::missing);
  const std::size_t allowed = result.options.allow_missing ? missing : 0;
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuite name=\"windtunnel gate\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n  "
      "<properties>\n",
      result.rows.size(), result.count(Verdict::slower) + missing - allowed,
      result.count(Verdict::incomparable) + result.count(Verdict::failed),
      result.count(Verdict::inconclusive) + allowed);
  const auto property = [&](const std::string& name, const std::string& value) {
    text += fmt::format("    <property name=\"{}\" value=\"{}\"/>\n", xml(name), xml(value));
  };
  property("sentence", result.sentence());
  property("exit_status", std::to_string(result.exit_status()));
  for (const auto& [key, value] : result.current_fingerprint) property(key, value);
  text += "  </properties>\n";
  for (const GateRow& row : result.rows) {
    const std::string time =
        row.unit == "s" && row.current_median ? fmt::format(" time=\"{:.9f}\"", *row.current_median) : "";
    const std::string inner = outcome(row, result.options);
    text += fmt::format("  <testcase classname=\"gate\" name=\"{}\"{}", xml(row.name), time);
    text += inner.empty() ? "/>\n" : ">\n" + inner + "  </testcase>\n";
  }
  return text + "</testsuite>\n";
}

}  // namespace wt
