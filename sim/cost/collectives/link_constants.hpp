// Constants of collective times. Time = start + latency x steps + 2 sqrt(fill x steps x transfer) + transfer. This is
// the time of a pipeline with chunks of the best size, each with `fill` seconds of start-up. In an all-to-all over
// nodes the steps are the peers on other nodes, so that both latency and fill are costs of a message. transfer = bytes
// over a share of the nominal rate of the narrowest resource. Each of the three constants is a base times a factor for
// the kind of link and a factor for the fabric by name. A prior keeps the factors near 1: an unknown fabric has its
// link's constants, an unknown link the base's.
#pragma once
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/collectives/collective_question.hpp"

namespace wt {

/// A measured time as input of the fit.
struct TimedLoad {
  LinkLoad load;
  CollectiveForm form = CollectiveForm::gather;
  bool many = false;
  std::string fabric;   ///< empty on one node
  bool python = false;  ///< timed from Python
  double seconds = 0;
};

/// Constants of collectives on one node, or of collectives over several. sim/fit makes them.
class LinkConstants {
 public:
  struct Constants {
    double latency_s = 0, fill_s = 0;  ///< of each step
    double share = 0;                  ///< reached share of the nominal rate
  };

  using Logs = std::array<double, 3>;  ///< of latency, fill and share

  LinkConstants() = default;
  /// `base`: logarithms of the constants; `links`, `fabrics`: of factors on them, by name.
  LinkConstants(bool many, const Logs& base, std::map<std::string, Logs> links, std::map<std::string, Logs> fabrics,
                double python_s)
      : many_(many), base_(base), links_(std::move(links)), fabrics_(std::move(fabrics)), python_s_(python_s) {}

  bool knows_link(const std::string& link) const { return links_.count(link) > 0; }
  /// Constants of a link and fabric. An unknown name has factors of 1.
  Constants constants(const std::string& link, const std::string& fabric) const;
  double seconds(const LinkLoad& load, const Constants& constants, bool python = false) const;
  /// `constants`, with factors fitted to these times of one machine.
  Constants refined(const Constants& constants, const std::vector<TimedLoad>& times) const;
  double python_s() const { return python_s_; }
  bool many() const { return many_; }
  const Logs& base() const { return base_; }
  const std::map<std::string, Logs>& links() const { return links_; }
  const std::map<std::string, Logs>& fabrics() const { return fabrics_; }

 private:
  bool many_ = false;
  Logs base_{};
  std::map<std::string, Logs> links_, fabrics_;
  double python_s_ = 0;  ///< host time of a call from Python
};

/// Residual of a fit: logarithm of predicted over measured, with less weight for outliers.
double link_misfit(double predicted_s, double measured_s);
/// Seconds of a load with these constants.
double link_seconds(const LinkLoad& load, const LinkConstants::Constants& constants);

}  // namespace wt
