// Change points tried on series where the answer is known: lists that others published, and steps put into real noise.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/gate/level_shifts.hpp"
#include "bench/gate/selftest.hpp"

namespace wt {

/// Points found beside points that are there.
struct Agreement {
  std::size_t there = 0, found = 0, right = 0;
  double precision() const;  ///< right / found; 1 where nothing was found
  double recall() const;     ///< right / there; 1 where nothing is there
  void add(const Agreement& other);
};

/// Each point that is there takes the nearest found one that is at most `margin` away and not taken yet.
Agreement agreement(const std::vector<std::size_t>& there, const std::vector<std::size_t>& found, std::size_t margin);

struct HistorySelftestOptions {
  std::uint64_t seed = 1;
  std::size_t trials = 200;  ///< series a stretch and step size
  std::size_t length = 200;  ///< values a series
  std::size_t block = 10;    ///< neighbours that stay together when noise is drawn, for what they have in common
  std::size_t stretch = 50;  ///< values, at least, of a stretch without change points that noise is drawn from
  std::size_t margin = 5;    ///< values by which a point may be off, as in the Turing change point data set
  std::size_t least_gap = 15, largest_gap = 60;  ///< values between two steps
  std::vector<double> steps = {0.02, 0.03, 0.05, 0.10};
};

/// Noise without steps: values of a golden series between two of its points, over their median.
struct NoiseStretch {
  std::string name;
  std::vector<double> values;
};

struct PlantedSteps {
  std::string noise;
  double step = 0;
  Agreement ours, library;
};

/// A step in each recorded series of H100 timings, which no option was chosen on.
struct RecordedSteps {
  double step = 0;
  Agreement ours, library;              ///< of all series
  Agreement quiet_ours, quiet_library;  ///< of those whose scatter is at most 1 % of their median
};

/// The library's defaults are DivisiveOptions'; ours are ShiftOptions'.
struct HistorySelftest {
  HistorySelftestOptions options;
  std::size_t settings = 0, settings_met = 0;  ///< lists of Otava's tests, and those that change_points() gives exactly
  std::size_t counts = 0, counts_met = 0;      ///< the same of MongoDB's numbers of points
  Agreement listed_ours, listed_library;       ///< Otava's list at p 0.001, index by index up to 2 values off
  std::vector<NoiseStretch> noise;
  std::vector<PlantedSteps> planted;                                ///< a step size and a stretch each
  std::size_t quiet_values = 0, quiet_ours = 0, quiet_library = 0;  ///< points found where no step was put
  std::vector<RecordedSteps> recorded_steps;
  std::size_t recorded = 0, recorded_ours = 0, recorded_library = 0;  ///< H100 series, and those said to have changed
};

/// tests/data/change_points/golden.json of the tree that the program was built from.
std::filesystem::path default_golden_series();
/// The same for the same seed on every machine. Throws Error{usage} for a file that is none of golden series.
HistorySelftest history_selftest(const std::filesystem::path& golden, const RecordedRuns& recorded,
                                 const HistorySelftestOptions& options = {});

}  // namespace wt
