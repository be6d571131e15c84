// The constants behind times of collectives. Time = latency x steps + 2 sqrt(fill x steps x transfer) + transfer: what
// a pipeline takes whose chunks have the best size (each of `fill` seconds of start-up), transfer = bytes over a share
// of the nominal rate of the narrowest resource. Three constants, each a base times a factor for the kind of link and
// one for the fabric by name, both kept near 1 by a prior: a fabric never seen has its link's, a link never seen the
// base's.
#pragma once
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/cost/collectives/collective_question.hpp"

namespace wt {

/// A measured time as the fit sees it.
struct TimedLoad {
  LinkLoad load;
  bool many = false;
  std::string fabric;   ///< over several nodes, else empty
  bool python = false;  ///< timed from Python
  double seconds = 0;
};

/// Of collectives on one node, or of collectives over several. sim/fit makes them.
class LinkConstants {
 public:
  struct Constants {
    double latency_s = 0, fill_s = 0;  ///< of one step
    double share = 0;                  ///< of the nominal rate
  };

  using Logs = std::array<double, 3>;  ///< of latency, fill and share

  LinkConstants() = default;
  /// `base`: logarithms of the constants; `links`, `fabrics`: of factors on them, by name.
  LinkConstants(bool many, const Logs& base, std::map<std::string, Logs> links, std::map<std::string, Logs> fabrics,
                double python_s)
      : many_(many), base_(base), links_(std::move(links)), fabrics_(std::move(fabrics)), python_s_(python_s) {}

  bool knows_link(const std::string& link) const { return links_.count(link) > 0; }
  /// Of a link and fabric; the base where a name was not seen.
  Constants constants(const std::string& link, const std::string& fabric) const;
  double seconds(const LinkLoad& load, const Constants& constants, bool python = false) const;
  /// Factors on `constants` that these further times of one machine ask for.
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

/// Logarithm of predicted over measured, as fits count it: outliers weigh less.
double link_misfit(double predicted_s, double measured_s);
/// Seconds of a transfer with these constants; `many`: over several nodes.
double link_seconds(const LinkLoad& load, const LinkConstants::Constants& constants, bool many);

}  // namespace wt
