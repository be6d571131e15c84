// Tests change point detection on series with a known answer: published lists, and steps added to real noise.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/gate/level_shifts.hpp"
#include "bench/gate/selftest.hpp"

namespace wt {

/// Change points found, compared with the expected ones.
struct Agreement {
  std::size_t expected = 0, found = 0, matched = 0;
  double precision() const;  ///< matched / found; 1 where nothing was found
  double recall() const;     ///< matched / expected; 1 where nothing was expected
  void add(const Agreement& other);
};

/// Each expected point matches the nearest found one within `margin` that is not matched yet.
Agreement agreement(const std::vector<std::size_t>& expected, const std::vector<std::size_t>& found,
                    std::size_t margin);

struct HistorySelftestOptions {
  std::uint64_t seed = 1;
  std::size_t trials = 200;  ///< series per noise range and step size
  std::size_t length = 200;  ///< values of a series
  std::size_t block = 10;    ///< neighbours that are drawn together, which keeps their correlation
  std::size_t stretch = 50;  ///< minimum length of a range without change points from which noise is drawn
  std::size_t margin = 5;    ///< allowed error of a point in values, as in the Turing change point data set
  std::size_t least_gap = 15, largest_gap = 60;  ///< values between two steps
  std::vector<double> steps = {0.02, 0.03, 0.05, 0.10};
};

/// Noise without steps: values of a golden series between two of its change points, over their median.
struct NoiseStretch {
  std::string name;
  std::vector<double> values;
};

struct PlantedSteps {
  std::string noise;
  double step = 0;
  Agreement ours, library;
};

/// One step added to each recorded series of H100 timings. No option was tuned on these.
struct RecordedSteps {
  double step = 0;
  Agreement ours, library;              ///< over all series
  Agreement quiet_ours, quiet_library;  ///< over series whose scatter is at most 1 % of their median
};

/// `library` uses the defaults of DivisiveOptions, `ours` those of ShiftOptions.
struct HistorySelftest {
  HistorySelftestOptions options;
  std::size_t settings = 0, settings_met = 0;  ///< lists of Otava's tests; those change_points() reproduces exactly
  std::size_t counts = 0, counts_met = 0;      ///< likewise for MongoDB's numbers of points
  Agreement listed_ours, listed_library;       ///< Otava's list at p 0.001, with indices up to 2 values off
  std::vector<NoiseStretch> noise;
  std::vector<PlantedSteps> planted;                                ///< one per step size and noise range
  std::size_t quiet_values = 0, quiet_ours = 0, quiet_library = 0;  ///< points found in noise without a step
  std::vector<RecordedSteps> recorded_steps;
  std::size_t recorded = 0, recorded_ours = 0, recorded_library = 0;  ///< H100 series, and those reported as changed
};

/// tests/data/change_points/golden.json of the data that belongs to this program.
std::filesystem::path default_golden_series();
/// Deterministic for a seed, on every machine. Throws Error{usage} for a file without golden series.
HistorySelftest history_selftest(const std::filesystem::path& golden, const RecordedRuns& recorded,
                                 const HistorySelftestOptions& options = {});

}  // namespace wt
