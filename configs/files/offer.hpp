// An offer of a cluster: its size, its price, and how long it is valid. A study defines what is trained on it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/study.hpp"

namespace wt {

struct OfferSpec {
  std::string name, file;
  ClusterSpec cluster;                      ///< with the offer's storage, if it gives one
  std::int64_t gpus = 0;                    ///< the most that can be rented, without spare nodes
  std::optional<std::int64_t> spare_nodes;  ///< available in addition; none = as many as a plan wants
  std::string failures;                     ///< a preset or file; "" = the study's
  std::optional<PriceSpec> prices;          ///< read_offers() requires a price of GPU-hours
  std::string valid_until;                  ///< "2026-06-30"; "" = not given
  Provenance source;                        ///< who offers it
};

/// A preset of configs/offers by name, or a file. Strict. Throws Error{usage} with file, line, found, allowed.
OfferSpec read_offer(const std::string& name_or_file);
/// Reads all of them. Throws Error{usage}: a name twice, offers without a price of GPU-hours (it lists them), several
/// currencies.
std::vector<OfferSpec> read_offers(const std::vector<std::string>& names_or_files);

/// The study with the offer's cluster, GPUs, spare nodes, failures and prices. It keeps its profiles if the GPU is the
/// same.
StudySpec study_on(const StudySpec& study, const OfferSpec& offer);

}  // namespace wt
