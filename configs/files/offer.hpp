// An offer of a cluster: what is to be had, until when, and what it costs. A study says what is to be trained on it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/study.hpp"

namespace wt {

struct OfferSpec {
  std::string name, file;
  ClusterSpec cluster;                      ///< with the offer's storage, where that differs
  std::int64_t gpus = 0;                    ///< to be had at most, spare nodes apart
  std::optional<std::int64_t> spare_nodes;  ///< beyond them; none = as many as a plan wants
  std::string failures;                     ///< a preset or file; "" = the study's
  std::optional<PriceSpec> prices;          ///< read_offers() lets none pass without a price of GPU-hours
  std::string valid_until;                  ///< "2026-06-30"; "" = not said
  Provenance source;                        ///< who offers it
};

/// A preset of configs/offers by name, or a file. Strict. Throws Error{usage} with file, line, found, allowed.
OfferSpec read_offer(const std::string& name_or_file);
/// All of them. Throws Error{usage}: two of one name, those without a price of GPU-hours (all are named), several
/// currencies.
std::vector<OfferSpec> read_offers(const std::vector<std::string>& names_or_files);

/// The study on the offer: its cluster, GPUs, spare nodes, failures and prices. Profiles stay where the GPU is the
/// same.
StudySpec study_on(const StudySpec& study, const OfferSpec& offer);

}  // namespace wt
