// The constants behind predictions of collectives, and what a row needs to be priced by them.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "sim/measurements/collective_rows.hpp"

namespace wt {

/// A row as the model sees it.
struct CollectiveSample {
  const CollectiveRow* row = nullptr;
  std::string kind;    ///< "all-reduce", "gather" (and reduce-scatter, broadcast, sendrecv: the same ring), "exchange"
                       ///< (all-to-all)
  std::string link;    ///< kind of link: "NVLink4 ring", "NVLink4 SHARP", "IB", "EFA"
  std::string fabric;  ///< over several nodes the text of the file, else empty
  std::string transport;  ///< over several nodes, with its version
  std::string group;      ///< source, GPU, nodes, GPUs, fabric
  std::string reason;     ///< why nothing can be said of it; empty = it can be used
  double steps =
      1;  ///< that latency grows with: log2 of the nodes for an all-reduce (tree), nodes - 1 else (ring; 1 of a send)
  double transfer_s = 0;  ///< at the nominal rate of the narrowest resource
  bool python = false;    ///< timed from Python

  bool send() const { return row->collective == "sendrecv"; }  ///< of each rank to the next one
  bool many() const { return row->nodes > 1; }
  std::string problem() const { return kind + (many() ? ", many nodes" : ", one node"); }  ///< fitted together
};

CollectiveSample collective_sample(const CollectiveRow& row);

/// Constants of one kind of collective on one node or on many.
class CollectiveFit {
 public:
  /// Throws Error{usage} without samples. All of one problem().
  explicit CollectiveFit(const std::vector<const CollectiveSample*>& samples);

  double seconds(const CollectiveSample& sample) const;
  bool knows_link(const std::string& link) const { return links_.count(link) > 0; }

  struct Constants {
    double latency_s = 0, fill_s = 0;  ///< of one step
    double share = 0;                  ///< of the nominal rate
  };
  /// Of a link and fabric; the base where a name was not seen.
  Constants constants(const std::string& link, const std::string& fabric) const;
  double python_s() const { return python_s_; }

 private:
  using Logs = std::array<double, 3>;
  Logs base_{};
  std::map<std::string, Logs> links_, fabrics_;  ///< logarithms of factors on the base
  double python_s_ = 0;                          ///< host time of a call from Python
};

}  // namespace wt
