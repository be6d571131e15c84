// The trainer's routing.csv read exactly: rows from each source rank to each expert, and what each rank received.
#pragma once
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "configs/spec/run.hpp"
#include "sim/program/mesh.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt::test {

class RoutingRows : public std::map<std::array<std::int64_t, 4>, std::vector<double>> {
 public:
  /// Keys: step, microbatch, layer, source rank.
  RoutingRows(const std::filesystem::path& csv, const RunSpec& run) : layout_(run.layout), mesh_(run.layout) {
    std::ifstream in(csv);
    std::string line;
    for (std::getline(in, line); std::getline(in, line);) {
      std::stringstream cells(line);
      std::vector<double> row;
      for (std::string cell; std::getline(cells, cell, ',');) row.push_back(std::stod(cell));
      std::array<std::int64_t, 4> key{};
      for (std::size_t i = 0; i < 4; ++i) key[i] = static_cast<std::int64_t>(row.at(i));
      (*this)[key] = {row.begin() + 4, row.end()};
    }
  }
  double received(std::int64_t step, std::int64_t microbatch, std::int64_t layer, std::int64_t rank) const {
    std::vector<std::vector<double>> counts;
    for (const std::int64_t source : mesh_.members(Axis::expert, mesh_.group_index(Axis::expert, rank)))
      counts.push_back(at({step, microbatch, layer, source}));
    return rows_received(counts, layout_, layer)[static_cast<std::size_t>(mesh_.coordinate(Axis::expert, rank))];
  }

 private:
  Layout layout_;
  Mesh mesh_;
};

}  // namespace wt::test
