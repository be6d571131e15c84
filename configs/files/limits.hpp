// The largest sizes that files may contain. A larger value is a typing error, and would cost minutes and gigabytes
// before any error appears. Each limit is about ten times what has been trained.
#pragma once
#include <cstdint>

namespace wt::limits {

inline constexpr std::int64_t kLayers = 10'000;
inline constexpr std::int64_t kWidth = 1 << 24;    ///< of a hidden state, an FFN, a latent or a head
inline constexpr std::int64_t kHeads = 1 << 16;    ///< also of their groups
inline constexpr std::int64_t kExperts = 1 << 16;  ///< of a layer
inline constexpr std::int64_t kVocabulary = 1 << 28;
inline constexpr double kParameters = 1e16;             ///< of a model
inline constexpr std::int64_t kSequence = 1 << 28;      ///< tokens
inline constexpr double kTokens = 1e18;                 ///< of a run
inline constexpr std::int64_t kBatch = 1 << 24;         ///< sequences of a step
inline constexpr std::int64_t kMicrobatches = 1 << 16;  ///< of a rank and step
inline constexpr double kSteps = 1e12;                  ///< of a run
inline constexpr std::int64_t kGpus = 1 << 20;          ///< of a cluster or a layout
inline constexpr std::int64_t kGpusOfNode = 1 << 10;
inline constexpr double kSlowestLink_Bps = 0.5, kFastestLink_Bps = 1e15;

}  // namespace wt::limits
