// windtunnel bench --for: finds what a study lacks, estimates the time, and passes the list to windtunnel-train.
#include <sys/mman.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "configs/base/error.hpp"
#include "configs/base/output_place.hpp"
#include "configs/base/quantity.hpp"
#include "configs/files/model_words.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/plan/bench_shapes.hpp"
#include "planner/plan/plan.hpp"

namespace wt {
namespace {

struct Options {
  std::string suite, study, device = "cpu", output, worth;
  int samples = kBenchSamples;
  std::uint64_t seed = 17;
  bool dry_run = false, json = false, quick = false;
};

Options parse(std::vector<std::string> arguments) {
  Options o;
  CLI::App app("windtunnel bench --for");
  app.add_option("SUITE", o.suite)->check(CLI::IsMember({"kernels"}));
  app.add_option("--for", o.study)->required();
  app.add_option("--worth", o.worth);
  app.add_option("--device", o.device)->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--samples", o.samples)->check(CLI::Range(3, 1000));
  app.add_option("--seed", o.seed);
  app.add_option("-o,--output", o.output)->check(writable(Output::file));
  app.add_flag("--dry-run", o.dry_run);
  app.add_flag("--quick", o.quick);
  app.add_flag("--json", o.json);
  std::ranges::reverse(arguments);  // CLI11's order
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& e) {
    throw_usage(
        "bench --for: {}; allowed beside it are --worth, --device, --samples, --seed, --quick, --dry-run, --output and "
        "--json",
        e.what());
  }
  return o;
}

void check_device(const Options& o, const ClusterSpec& cluster) {
  const bool cuda = o.device == "cuda";
  if (cluster.shared_cores() && cuda)
    throw_usage("{}: found --device cuda, the study's ranks share the cores of a host; leave --device out", o.study);
  if (!cluster.shared_cores() && !cuda)
    throw_usage(
        "{}: found --device cpu, but its shapes are wanted of {}, and a CPU's times say nothing of it; use --device "
        "cuda on a machine with one, or --dry-run to see the list",
        o.study, cluster.gpu_name);
}

std::string duration(const StudyShapes& shapes, int samples) {
  double seconds = 0;
  for (const MissingShape& shape : shapes.missing) seconds += estimated_s(shape, !shapes.gpu.empty(), samples);
  return format_seconds(seconds);
}

void list(const StudyShapes& shapes, int samples) {
  for (const MissingShape& shape : shapes.missing) {
    std::string name = fmt::format("{}/{}/{}", to_string(shape.item.kernel), to_string(shape.item.pass),
                                   to_string(shape.item.precision)),
                sizes;
    for (const auto& [key, value] : shape.item.shape(0))
      sizes += fmt::format("{}{}={}", sizes.empty() ? "" : ",", key, value);
    fmt::print("{:<72}  {:>9}\n", name + "/" + sizes, format_seconds(estimated_s(shape, !shapes.gpu.empty(), samples)));
  }
}

/// The seconds of --worth; none: everything is measured.
std::optional<double> worth_seconds(const Options& o) {
  if (o.worth.empty()) return std::nullopt;
  const double seconds = parse_seconds(o.worth, "--worth");
  if (!(seconds > 0)) throw_usage("--worth: found {}, needs a time above 0, as 10m", o.worth);
  return seconds;
}

/// Keeps the shapes that are most valuable for the study's plan, and reports these and the rest.
void keep_the_best(const Options& o, const PlanInputs& inputs, double seconds, StudyShapes& shapes) {
  const MeasureNext next = measure_next(inputs, make_plan(inputs), o.samples);
  const WorthMinutes best = worth_minutes(next, seconds, !shapes.gpu.empty(), o.samples);
  const char* narrowed = next.unit == "days" ? "finish" : "energy";
  fmt::print(stderr, "windtunnel bench: {}.\n", next.sentence);
  if (best.taken.empty() && !best.left_out.empty()) {
    double least = std::numeric_limits<double>::infinity();
    for (const Worth& row : best.left_out)
      for (const MissingShape& shape : row.shapes)
        least = std::min(least, estimated_s(shape, !shapes.gpu.empty(), o.samples));
    throw_usage("--worth: found {}, needs at least {}, which one shape takes", o.worth, format_seconds(least));
  }
  shapes.missing.clear();
  if (best.taken.empty())
    fmt::print(stderr, "  no kernel without its own measurement is known to decide anything of the plan\n");
  for (const WorthMinutes::Part& part : best.taken) {
    fmt::print(stderr, "  measures {}: {} of {} shapes; saves {}, narrows the {} by {:.2g}\n", part.row.what,
               part.shapes.size(), part.row.shapes.size(), amount_text(part.row.saves, next.unit), narrowed,
               part.row.width);
    shapes.missing.insert(shapes.missing.end(), part.shapes.begin(), part.shapes.end());
  }
  for (const Worth& row : best.left_out)
    fmt::print(stderr, "  leaves out {}: {:.2g} min; saves {}, narrows the {} by {:.2g}\n", row.what, *row.minutes,
               amount_text(row.saves, next.unit), narrowed, row.width);
  for (const Worth& row : next.rows)
    if (row.shapes.empty() && row.saves > 0)
      fmt::print(stderr, "  not of these kernels: {} saves {}; measured by {}\n", row.what,
                 amount_text(row.saves, next.unit), row.how);
}

/// An in-memory file for this process and the program that it executes next.
std::string memory_file(const std::string& name, const std::string& text) {
  const int descriptor = memfd_create(name.c_str(), 0);
  if (descriptor < 0 || write(descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw_runtime("bench --for: a list of {} bytes could not be handed over (memfd_create); free some memory",
                  text.size());
  return fmt::format("/proc/self/fd/{}", descriptor);
}

}  // namespace

bool asks_for_study(const std::vector<std::string>& arguments) {
  const bool help = std::ranges::find(arguments, "--help") != arguments.end();
  return !help && std::ranges::any_of(arguments, [](const std::string& a) {
    return a == "--for" || a.starts_with("--for=") || a == "--dry-run" || a == "--worth" || a.starts_with("--worth=");
  });
}

std::vector<std::string> bench_for(const std::vector<std::string>& arguments) {
  const Options o = parse(arguments);
  const std::optional<double> worth_s = worth_seconds(o);
  const StudySpec study = read_study(o.study);
  if (!o.dry_run) check_device(o, study.cluster);
  const PlanInputs inputs = read_plan_inputs(study, true);
  fmt::print(stderr, "{}", model_lines(study.model));
  StudyShapes shapes = study_shapes(inputs);
  fmt::print(stderr,
             "windtunnel bench: {} layouts of {} need {} kernel shapes, {} of them are measured exactly; the other {} "
             "take about {}\n",
             shapes.layouts, inputs.study.name, shapes.known + static_cast<std::int64_t>(shapes.missing.size()),
             shapes.known, shapes.missing.size(), duration(shapes, o.samples));
  if (worth_s && !shapes.missing.empty()) {
    keep_the_best(o, inputs, *worth_s, shapes);
    fmt::print(stderr, "windtunnel bench: {} shapes take about {} of the {} asked for\n", shapes.missing.size(),
               duration(shapes, o.samples), format_seconds(*worth_s));
  }
  if (o.dry_run) {
    list(shapes, o.samples);
    return {};
  }
  if (shapes.missing.empty()) return {};
  WorkList work{inputs.study.name, shapes.gpu, {}};
  for (const MissingShape& shape : shapes.missing) work.items.push_back(shape.item);
  std::vector<std::string> out{"kernels",
                               "--run",
                               memory_file("run", run_to_yaml(shapes.run)),
                               "--items",
                               memory_file("items", to_json(work).dump()),
                               "--device",
                               o.device,
                               "--samples",
                               std::to_string(o.samples),
                               "--seed",
                               std::to_string(o.seed)};
  if (o.quick) out.push_back("--quick");
  if (o.json) out.push_back("--json");
  if (!o.output.empty()) out.insert(out.end(), {"-o", o.output});
  return out;
}

}  // namespace wt
