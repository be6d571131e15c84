"""Who may include whom (CONTRIBUTING.md, "Where things are"): every #include of the tree against the tables below and against the
order of the top-level folders. The tables are compared with themselves, too: no two rows may include each other, be it by way of others.

include_layers_test.py [ROOT] prints each include that breaks a rule, and each circle of rows, and ends with status 1; without
ROOT it also plants violations in an empty tree, one by one, and sees that each is found.
"""
import graphlib
import re
import sys
import tempfile
from pathlib import Path

# A folder (or file; without its suffix a header and its source) and what it may include of ours, apart from files of its own
# row; the longest name that fits a file is its row. On the right a name stands for everything inside it, "name/*" for the files
# of that row alone; but for what DENIED takes out.
MAY_INCLUDE = {
    "configs/base": [],
    "configs/files": ["configs/base"],
    "configs/machine": ["configs/base", "configs/files"],
    "kernels": [],
    # the step program: what the simulator and the trainer share
    "sim/program": ["configs"],
    "sim/program/compose": ["configs", "sim/program/*"],
    "sim/program/routing": ["configs", "sim/program/*", "sim/program/compose"],
    "sim/program/memory": ["configs", "sim/program/*", "sim/program/compose"],
    "sim/question": ["configs", "sim/program"],
    # the simulator
    "sim/statistics": ["configs/base"],
    "sim/cost/ops": ["configs", "sim/program/*"],  # what the time of an op is; who makes such times is the row sim/cost
    "sim/cost/host": ["configs", "sim/cost/ops", "sim/program/*"],
    "sim/cost/collectives": ["configs", "sim/program", "sim/statistics", "sim/cost/ops"],
    "sim/cost/kernels": ["configs", "sim/program", "sim/statistics", "sim/cost/ops", "sim/cost/collectives"],
    "sim/cost/calibrate": ["configs", "sim/program", "sim/statistics", "sim/cost/ops", "sim/cost/collectives", "sim/cost/kernels"],
    "sim/cost/memory": ["configs", "sim/program", "sim/statistics"],
    "sim/cost/power": ["configs"],
    "sim/cost/stacks": ["configs", "sim/program", "sim/statistics", "sim/cost/ops", "sim/cost/host", "sim/cost/collectives",
                        "sim/cost/kernels"],
    "sim/cost": ["configs", "sim/statistics", "sim/cost/ops", "sim/cost/collectives", "sim/cost/kernels", "sim/cost/memory",
                 "sim/cost/calibrate", "sim/cost/stacks"],
    # published tables, and the constants that are fitted to them offline
    "sim/measurements": ["configs", "sim/program", "sim/cost/collectives", "sim/cost/kernels", "sim/cost/memory", "sim/cost/power",
                         "sim/cost/stacks"],
    "sim/fit": ["configs", "sim/program", "sim/statistics", "sim/cost/ops", "sim/cost/host", "sim/cost/collectives",
                "sim/cost/kernels", "sim/cost/memory", "sim/cost/stacks", "sim/question", "sim/measurements"],
    "sim/cluster": ["configs"],
    "sim/replay": ["configs", "sim/program", "sim/question", "sim/cost/ops", "sim/cost/collectives", "sim/cost/power", "sim/cluster"],
    "sim/own_runs": ["configs", "sim/program", "sim/question", "sim/cost", "sim/replay"],
    "sim/bounds": ["configs", "sim/program", "sim/cost/ops", "sim/replay"],
    "sim/months": ["configs"],
    "sim/published": ["configs", "sim/program", "sim/measurements", "sim/fit", "sim/cost"],
    "sim/validate": ["configs", "sim"],
    # reports: what a report is, and its formats; the commands make them
    "reports/model": ["configs"],
    "reports/render": ["configs", "reports/model", "sim/program"],
    # the trainer
    "trainer/data": ["configs", "trainer/storage"],
    "trainer/safetensors": ["configs"],
    "trainer/storage": ["configs", "trainer/safetensors"],
    "trainer/trackers": ["configs", "trainer/storage", "trainer/run_folder/files"],
    "trainer/run_folder": ["configs", "sim/program"],
    "trainer/recovery": ["configs", "sim/program/compose"],
    "trainer/process": ["configs"],
    "trainer/faults": ["configs", "trainer/run_folder/files"],
    "trainer/pch.hpp": [],
    "trainer/device": ["configs", "trainer/pch.hpp"],
    "trainer/communication": ["configs", "sim/program", "trainer/pch.hpp", "trainer/faults", "trainer/device"],
    "trainer/parameters": ["configs", "sim/program/compose", "trainer/pch.hpp", "trainer/safetensors", "trainer/device",
                           "trainer/communication"],
    "trainer/model": ["configs", "sim/program/compose", "kernels", "trainer/pch.hpp", "trainer/data", "trainer/device",
                      "trainer/parameters"],
    "trainer/checkpoint": ["configs", "trainer/pch.hpp", "trainer/data", "trainer/safetensors", "trainer/storage", "trainer/run_folder",
                           "trainer/faults", "trainer/device", "trainer/communication", "trainer/parameters"],
    "trainer/executor": ["configs", "sim/program", "kernels", "reports/render", "trainer/pch.hpp", "trainer/data", "trainer/run_folder",
                         "trainer/faults", "trainer/device", "trainer/communication", "trainer/parameters", "trainer/model",
                         "trainer/checkpoint", "trainer/trackers"],
    "trainer/launch": ["configs", "sim/program", "reports/render", "trainer/pch.hpp", "trainer/data", "trainer/storage",
                       "trainer/run_folder", "trainer/recovery", "trainer/faults", "trainer/device", "trainer/communication",
                       "trainer/parameters", "trainer/model", "trainer/checkpoint", "trainer/executor", "trainer/trackers"],
    # what is measured
    "bench/formats": ["configs"],
    "bench/work": ["configs", "sim/program"],
    "bench/gate": ["configs", "bench/formats"],
    "bench/health": ["configs", "trainer/run_folder", "bench/formats", "bench/gate"],
    "bench/store": ["configs", "trainer/safetensors", "trainer/storage"],
    "bench/suites": ["configs", "sim/program", "kernels", "reports", "trainer/pch.hpp", "trainer/safetensors", "trainer/device",
                     "trainer/communication", "trainer/model", "trainer/launch", "bench/formats", "bench/work", "bench/store",
                     "bench/health"],
    "bench/main.cpp": ["configs", "bench/suites", "trainer/launch"],
    "bench/studies": ["configs", "sim", "kernels", "bench", "trainer/data"],
    # the planner
    "planner/cadence": ["configs", "sim"],
    "planner/placement": ["configs", "sim"],
    "planner/search": ["configs", "sim", "planner/placement"],
    "planner/regret": ["configs", "sim", "planner/search"],
    "planner/money": ["configs", "sim"],
    "planner/plan": ["configs", "sim", "planner/search", "planner/regret", "planner/placement", "planner/cadence", "planner/money",
                     "bench/formats", "bench/work"],
    "planner/offers": ["configs", "sim", "planner/plan", "planner/money"],
    "planner/whatif": ["configs", "sim", "planner/plan"],
    "planner/benchmarks": ["configs", "sim", "planner/search", "planner/plan"],
    "planner/simulate": ["configs", "sim"],
    "planner/job_logs": ["configs", "sim/measurements", "trainer/trackers/event_records"],
    "planner/explain": ["configs", "sim", "planner/simulate", "planner/job_logs"],
    # satellites: nothing of the rows above includes them
    "planner/experiments": ["configs", "sim", "planner/plan", "bench/gate", "trainer/data", "trainer/safetensors", "trainer/process",
                            "trainer/run_folder"],
    "planner/watch": ["configs", "sim", "planner/plan", "planner/job_logs", "bench/health", "trainer/safetensors", "trainer/run_folder"],
    "planner/validate": ["configs", "sim", "planner/search"],
    "planner/shell": ["configs/base"],
    "planner/recipes": ["configs", "planner/shell"],
    "planner/evaluate": ["configs"],
    "planner/cli": ["configs", "sim", "planner", "reports", "bench/formats", "bench/gate", "bench/health", "trainer/data",
                    "trainer/safetensors", "trainer/process", "trainer/run_folder", "trainer/trackers"],
}
# What may not be included by whom, although a row says so.
DENIED = {
    "sim/validate": ["planner/cadence", "planner/placement", "planner/search", "planner/money", "planner/plan",
                     "planner/offers", "planner/whatif", "planner/experiments", "planner/validate"],  # for the command line alone
    "planner/validate": ["planner/cadence", "planner/placement", "planner/search", "planner/money", "planner/plan",
                         "planner/offers", "planner/whatif", "planner/experiments"],
    # what plans and simulates takes constants as they are in configs/constants
    **{offline: ["planner/cadence", "planner/placement", "planner/search", "planner/money", "planner/plan", "planner/offers",
                 "planner/whatif", "planner/experiments"] for offline in ("sim/fit", "sim/measurements")},
    # judges fit nothing themselves: they ask sim/fit
    **{fits: ["sim/validate"] for fits in ("sim/cost/calibrate", "sim/statistics/non_negative_fit.hpp",
                                           "sim/statistics/least_squares.hpp")},
}
# Top-level folders in their order: each includes only what stands before it.
TOP = ["configs", "kernels", "sim", "reports", "trainer", "bench", "planner"]
# Libraries, and the only folders that know them.
LIBRARIES = {
    "LibTorch": (r"(ATen|c10|torch|caffe2)/", ["trainer", "bench/suites", "bench/main.cpp"]),
    "SimGrid": (r"(simgrid/|xbt/|xbt\.h)", ["sim/cluster"]),
    "CLI11": (r"CLI/", ["planner/cli", "trainer/launch/train_command", "bench/main.cpp", "bench/suites", "configs/base/command_line.cpp"]),
    "toml++": (r"toml\+\+/", ["planner/recipes/toml_text.cpp"]),
    "libcurl": (r"curl/", ["trainer/storage"]),
    "yaml-cpp": (r"yaml-cpp/", ["configs/base", "configs/files/study_yaml.cpp"]),
}
# Rooms of the trainer that the planner reads, too, or that a machine without LibTorch builds.
NO_LIBTORCH = ["trainer/data", "trainer/safetensors", "trainer/storage", "trainer/trackers", "trainer/run_folder", "trainer/recovery",
               "trainer/process", "trainer/faults"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
SOURCES = {".cpp", ".hpp", ".h", ".cu", ".cuh"}


def inside(path, name):
    return path == name or path.startswith((name + "/", name + "."))


def row_of(file):
    return max((name for name in MAY_INCLUDE if inside(file, name)), key=len, default=None)


def allowed(file, included):
    own = row_of(file)
    if own is None:
        return False
    if any(inside(included, name) and inside(file, by) for name, denied in DENIED.items() for by in denied):
        return False
    return row_of(included) == own or any(
        row_of(included) == name[:-2] if name.endswith("/*") else inside(included, name) for name in MAY_INCLUDE[own])


def stands_after(included, name):
    """Whether a file includes something of a top-level folder that stands after its own."""
    return TOP.index(included.split("/")[0]) > TOP.index(name.split("/")[0])


def rows_below(row, rows):
    """The other rows that a row may include something of."""
    for name in rows[row]:
        for other in rows:
            of_it = other == name[:-2] if name.endswith("/*") else inside(other, name) or other == row_of(name)
            denied = any(inside(other, what) and inside(row, by) for what, whom in DENIED.items() for by in whom)
            if of_it and other != row and not denied:
                yield other


def circle(rows):
    """Rows of which each may include the next and the last is the first; none = every row stands above what it includes."""
    try:
        graphlib.TopologicalSorter({row: set(rows_below(row, rows)) for row in rows}).prepare()
    except graphlib.CycleError as error:
        return error.args[1][::-1]
    return None


def broken_rules(root):
    """(file, included, what is wrong) of every include below `root` that breaks a rule."""
    for file in sorted(path for top in TOP for path in (root / top).rglob("*") if path.suffix in SOURCES):
        name = file.relative_to(root).as_posix()
        for quote, included in INCLUDE.findall(file.read_text(encoding="utf-8")):
            if quote == '"' and not allowed(name, included):
                yield name, included, "its folder may not include that"
            elif quote == '"' and stands_after(included, name):
                yield name, included, f"top-level folders stand in the order {', '.join(TOP)}"
            for library, (pattern, folders) in LIBRARIES.items():
                if re.match(pattern, included) and (not any(inside(name, f) for f in folders) or
                                                    library == "LibTorch" and any(inside(name, f) for f in NO_LIBTORCH)):
                    yield name, included, f"{library} is for {', '.join(folders)} alone"


def planted():
    """Includes that break one rule each."""
    return [
        ("configs/base/a.hpp", '"configs/files/model.hpp"'),
        ("configs/files/a.hpp", '"sim/program/program.hpp"'),
        ("sim/program/a.cpp", '"sim/cost/ops/op_cost.hpp"'),
        ("sim/program/a.cpp", '"sim/program/compose/compose.hpp"'),
        ("sim/replay/a.cpp", '"sim/validate/judge_runs.hpp"'),
        ("sim/cost/kernels/a.cpp", '"sim/validate/judge_runs.hpp"'),
        ("sim/bounds/a.cpp", '"planner/search/search.hpp"'),
        ("planner/plan/a.cpp", '"sim/validate/judge_runs.hpp"'),
        ("sim/validate/a.cpp", '"sim/statistics/non_negative_fit.hpp"'),
        ("sim/validate/a.cpp", '"sim/cost/calibrate/calibrate.hpp"'),
        ("sim/cost/ops/op_cost.hpp", '"sim/cost/collectives/collective_algorithm.hpp"'),
        ("sim/cost/ops/op_cost.hpp", '"sim/cost/op_times.hpp"'),
        ("sim/statistics/a.cpp", '"sim/cost/kernels/machine_model.hpp"'),
        ("sim/statistics/a.cpp", '"sim/cost/ops/op_cost.hpp"'),
        ("sim/cost/host/a.cpp", '"sim/cost/stacks/step_constants.hpp"'),
        ("sim/cost/collectives/a.cpp", '"sim/cost/kernels/machine_model.hpp"'),
        ("sim/cost/kernels/a.cpp", '"sim/cost/calibrate/calibrate.hpp"'),
        ("sim/cost/stacks/a.cpp", '"sim/cost/op_times.hpp"'),
        ("sim/cost/op_times.cpp", '"sim/replay/replay.hpp"'),
        ("sim/replay/a.cpp", '"sim/cost/op_times.hpp"'),
        ("planner/search/a.cpp", '"planner/cli/parts/output.hpp"'),
        ("planner/experiments/a.cpp", '"trainer/executor/executor.hpp"'),
        ("planner/experiments/a.cpp", '"planner/cli/demo/demo_report.hpp"'),
        ("trainer/launch/a.cpp", '"sim/replay/replay.hpp"'),
        ("trainer/launch/a.cpp", '"planner/plan/plan.hpp"'),
        ("trainer/faults/a.cpp", '"trainer/launch/agent.hpp"'),
        ("trainer/device/a.cpp", '"trainer/executor/executor.hpp"'),
        ("trainer/communication/a.cpp", '"trainer/launch/agent.hpp"'),
        ("trainer/parameters/a.cpp", '"trainer/model/segments.hpp"'),
        ("trainer/model/a.cpp", '"trainer/checkpoint/checkpoint.hpp"'),
        ("trainer/checkpoint/a.cpp", '"trainer/executor/executor.hpp"'),
        ("trainer/executor/a.cpp", '"trainer/launch/worker.hpp"'),
        ("bench/suites/a.cpp", '"trainer/executor/executor.hpp"'),
        ("bench/main.cpp", '"trainer/executor/executor.hpp"'),
        ("trainer/device/a.cpp", '"bench/formats/kineto.hpp"'),
        ("bench/studies/a.cpp", '"planner/search/search.hpp"'),
        ("reports/render/a.cpp", '"planner/plan/plan.hpp"'),
        ("reports/model/a.cpp", '"reports/render/render.hpp"'),
        ("planner/plan/a.cpp", '"planner/watch/rules.hpp"'),
        ("planner/plan/a.cpp", '"sim/fit/published_times.hpp"'),
        ("sim/cost/a.cpp", '"sim/fit/published_times.hpp"'),
        ("kernels/a.cpp", '"configs/files/model.hpp"'),
        ("sim/cost/a.cpp", "<torch/torch.h>"),
        ("trainer/data/a.cpp", "<ATen/ATen.h>"),
        ("trainer/executor/a.cpp", "<simgrid/s4u.hpp>"),
    ]


def planted_circles():
    """A row and a name that it must not have."""
    return [
        ("sim/statistics", "sim/cost/kernels"),
        ("sim/cost/ops", "sim/cost/collectives"),
        ("sim/cost/kernels", "sim/cost"),
        ("sim/cost/stacks", "sim/cost/op_times.hpp"),
        ("configs/base", "planner/plan/plan.hpp"),  # by way of several rows
    ]


def self_test():
    for name, included in planted():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.parent.mkdir(parents=True)
            file.write_text(f"// planted\n  #  include {included}\n")
            if len(list(broken_rules(Path(folder)))) != 1:
                sys.exit(f"a planted violation was not found: {name} includes {included}; fix {__file__}")
    for row, name in planted_circles():
        found = circle({**MAY_INCLUDE, row: [*MAY_INCLUDE[row], name]})
        if not found or row not in found:
            sys.exit(f"a planted circle was not found: {row} may include {name}; fix {__file__}")


def main():
    if len(sys.argv) == 1:
        self_test()
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = list(broken_rules(root))
    for file, included, wrong in found:
        print(f"{file}: includes {included}: {wrong}; move what is shared down, or say in CONTRIBUTING.md and here why it may")
    around = circle(MAY_INCLUDE)
    if around:
        print(f"rows of {__file__} include each other: {' -> '.join(around)}; take a name from one of them")
    return bool(found or around)


sys.exit(main())
