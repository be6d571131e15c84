#include "sim/fit/row_message_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace wt {
namespace {

double geometric_mean(const std::vector<double>& logs) {
  return std::exp(std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size()));
}

}  // namespace

RowMessages row_messages(const std::vector<RowExchangeRow>& rows) {
  using Logs = std::pair<std::vector<double>, std::vector<double>>;  // logarithms of seconds: normal kernels,
                                                                     // low-latency kernels
  std::map<std::pair<Dispatcher, std::string>, Logs> logs;
  for (const RowExchangeRow& row : rows) {
    const auto dispatcher = dispatcher_from_string(row.library);
    if (!row.unusable.empty() || !dispatcher || !(row.Bps > 0)) continue;
    for (const std::string& transport : {row.transport, std::string()}) {
      Logs& times = logs[{*dispatcher, transport}];
      (row.low_latency ? times.second : times.first).push_back(std::log(row.seconds_a_row()));
    }
  }
  RowMessages::Times out;
  for (const auto& [of, times] : logs) {
    if (times.first.empty() || times.second.empty()) continue;
    const double normal_s = geometric_mean(times.first), alone_s = geometric_mean(times.second);
    out[of.first][of.second] = {std::min(normal_s, alone_s), std::max(normal_s, alone_s)};
  }
  return RowMessages(std::move(out));
}

}  // namespace wt
