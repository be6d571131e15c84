"""Who may include whom (CONTRIBUTING.md, "Where things are"): every #include of the tree against the tables below, and the
tables against themselves: no two rows may include each other, be it by way of others.

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
    "configs/spec/support": [],
    "configs/spec": ["configs/spec/support"],
    "kernels": [],
    # the step program: what the simulator and the trainer share
    "sim/program": ["configs/spec"],
    "sim/program/build": ["configs/spec", "sim/program/*"],
    "sim/program/routing": ["configs/spec", "sim/program/*", "sim/program/build"],
    "sim/program/memory": ["configs/spec", "sim/program/*", "sim/program/build"],
    # the simulator
    "sim/measurements": ["configs/spec", "sim/program"],
    "sim/cost": ["configs/spec", "sim/program/*"],  # what a price is; the factory of prices is a row of its own
    "sim/cost/fit": ["configs/spec/support"],
    "sim/cost/host": ["configs/spec", "sim/cost/*", "sim/program/*"],
    "sim/cost/collectives": ["configs/spec", "sim/program", "sim/measurements", "sim/cost/*", "sim/cost/fit"],
    "sim/cost/kernels": ["configs/spec", "sim/program", "sim/measurements", "sim/cost/*", "sim/cost/fit", "sim/cost/collectives"],
    "sim/cost/calibrate": ["configs/spec", "sim/program", "sim/cost/*", "sim/cost/fit", "sim/cost/collectives",
                           "sim/cost/kernels"],
    "sim/cost/memory": ["configs/spec", "sim/program", "sim/measurements", "sim/cost/fit"],
    "sim/cost/stacks": ["configs/spec", "sim/program", "sim/measurements", "sim/cost/*", "sim/cost/fit", "sim/cost/host",
                        "sim/cost/collectives", "sim/cost/kernels"],
    "sim/cost/prices": ["configs/spec", "sim/measurements", "sim/cost/*", "sim/cost/fit", "sim/cost/calibrate",
                        "sim/cost/stacks"],
    "sim/cluster": ["configs/spec"],
    "sim/replay": ["configs/spec", "sim/program", "sim/cost/*", "sim/cost/collectives", "sim/cost/memory", "sim/cluster"],
    "sim/estimate": ["configs/spec", "sim/program", "sim/cost/*", "sim/replay"],
    "sim/months": ["configs/spec", "sim/cluster"],
    "sim/published": ["configs/spec", "sim/program", "sim/measurements", "sim/cost"],
    "sim/validate": ["configs/spec", "sim"],
    # the planner
    "planner/cadence": ["configs/spec", "sim"],
    "planner/placement": ["configs/spec", "sim"],
    "planner/search": ["configs/spec", "sim", "planner/placement"],
    "planner/regret": ["configs/spec", "sim", "planner/search"],
    "planner/money": ["configs/spec", "sim"],
    "planner/plan": ["configs/spec", "sim", "planner/search", "planner/regret", "planner/placement", "planner/cadence", "planner/money",
                     "bench/profile", "bench/suites/cases.hpp", "bench/suites/work_list.hpp"],
    "planner/offers": ["configs/spec", "sim", "planner/plan", "planner/money"],
    "planner/whatif": ["configs/spec", "sim", "planner/plan"],
    "planner/experiments": ["configs/spec", "sim", "planner/plan", "bench/profile", "bench/gate", "trainer/data",
                            "trainer/safetensors"],
    "planner/watch": ["configs/spec", "sim", "planner/plan", "bench/health", "trainer/safetensors"],
    "planner/validate": ["configs/spec", "sim", "planner/search"],  # a judge of plans: nothing that plans includes it
    "planner/recipes": ["configs/spec"],
    "planner/evaluate": ["configs/spec", "planner/watch/run_hook.hpp"],
    "planner/cli": ["configs/spec", "sim", "planner", "reports", "bench/profile", "bench/gate", "bench/health", "trainer/data",
                    "trainer/safetensors", "trainer/trackers"],
    # the trainer
    "trainer/data": ["configs/spec", "trainer/storage"],
    "trainer/safetensors": ["configs/spec"],
    "trainer/storage": ["configs/spec", "trainer/safetensors"],
    "trainer/trackers": ["configs/spec", "trainer/storage"],
    "trainer/faults": ["configs/spec"],
    "trainer/pch.hpp": [],
    "trainer/device": ["configs/spec/support", "bench/profile", "trainer/pch.hpp"],
    "trainer/communication": ["configs/spec/support", "sim/program", "trainer/pch.hpp", "trainer/faults", "trainer/device"],
    "trainer/parameters": ["configs/spec", "sim/program/build", "trainer/pch.hpp", "trainer/safetensors", "trainer/device",
                           "trainer/communication"],
    "trainer/model": ["configs/spec", "sim/program/build", "kernels", "trainer/pch.hpp", "trainer/data", "trainer/device",
                      "trainer/parameters"],
    "trainer/checkpoint": ["configs/spec", "trainer/pch.hpp", "trainer/data", "trainer/safetensors", "trainer/storage", "trainer/faults",
                           "trainer/device", "trainer/communication", "trainer/parameters"],
    "trainer/executor": ["configs/spec", "sim/program", "kernels", "bench/profile", "reports/render", "trainer/pch.hpp",
                         "trainer/data", "trainer/faults", "trainer/device", "trainer/communication", "trainer/parameters", "trainer/model",
                         "trainer/checkpoint", "trainer/trackers"],
    "trainer/launch": ["configs/spec", "sim/program", "reports/render", "trainer/pch.hpp", "trainer/data", "trainer/storage",
                       "trainer/faults",
                       "trainer/device", "trainer/communication", "trainer/parameters", "trainer/model", "trainer/checkpoint",
                       "trainer/executor", "trainer/trackers"],
    "trainer/main.cpp": ["configs/spec", "sim/program/build", "sim/program/memory", "bench/suites", "trainer/data",
                         "trainer/storage", "trainer/device", "trainer/parameters",
                         "trainer/checkpoint", "trainer/launch", "trainer/trackers"],
    # what is measured
    "bench/profile": ["configs/spec"],
    "bench/gate": ["configs/spec", "bench/profile"],
    "bench/health": ["configs/spec", "bench/profile", "bench/gate"],
    "bench/store": ["configs/spec", "trainer/safetensors", "trainer/storage"],
    "bench/suites": ["configs/spec", "bench/store", "sim/program", "kernels", "trainer/pch.hpp", "trainer/safetensors", "trainer/device",
                     "trainer/communication", "trainer/model", "trainer/launch", "bench/profile", "bench/health",
                     "reports/report.hpp", "reports/render"],
    "bench/studies": ["configs/spec", "sim", "kernels", "planner", "bench", "trainer/data"],
    # reports: the structs of a result at most
    "reports": ["configs/spec"],
    "reports/render": ["configs/spec", "reports/report.hpp", "sim/program"],
    "reports/build": ["configs/spec", "sim", "planner", "bench/profile", "bench/gate", "bench/health", "reports"],
}
# What may not be included by whom, although a row says so.
DENIED = {
    "sim/validate": ["planner/cadence", "planner/placement", "planner/search", "planner/money", "planner/plan",
                     "planner/offers", "planner/whatif", "planner/experiments", "planner/validate"],  # for the command line alone
    "planner/validate": ["planner/cadence", "planner/placement", "planner/search", "planner/money", "planner/plan",
                         "planner/offers", "planner/whatif", "planner/experiments"],
    "planner/cli": ["reports"],
    "bench/suites": ["reports"],
    # judges fit nothing: of sim/cost/fit they take the intervals from left-out errors (conformal.hpp)
    **{fits: ["sim/validate"] for fits in ("sim/cost/calibrate", "sim/cost/fit/fit.hpp", "sim/cost/fit/least_squares.hpp")},
}
# Libraries, and the only folders that know them.
LIBRARIES = {
    "LibTorch": (r"(ATen|c10|torch|caffe2)/", ["trainer", "bench/suites"]),
    "SimGrid": (r"(simgrid/|xbt/|xbt\.h)", ["sim/cluster"]),
    "CLI11": (r"CLI/", ["planner/cli", "trainer/main.cpp", "bench/suites", "configs/spec/support/command_line.cpp"]),
    "toml++": (r"toml\+\+/", ["planner/recipes/toml_text.cpp"]),
    "libcurl": (r"curl/", ["trainer/storage"]),
    "yaml-cpp": (r"yaml-cpp/", ["configs/spec/support", "configs/spec/study_yaml.cpp"]),
}
NO_LIBTORCH = ["trainer/data", "trainer/safetensors", "trainer/storage", "trainer/trackers"]  # read by the planner
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
SOURCES = {".cpp", ".hpp", ".h", ".cu", ".cuh"}
TOP = ["configs", "kernels", "sim", "planner", "trainer", "bench", "reports"]


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
            for library, (pattern, folders) in LIBRARIES.items():
                if re.match(pattern, included) and (not any(inside(name, f) for f in folders) or
                                                    library == "LibTorch" and any(inside(name, f) for f in NO_LIBTORCH)):
                    yield name, included, f"{library} is for {', '.join(folders)} alone"


def planted():
    """Includes that break one rule each."""
    return [
        ("configs/spec/support/a.hpp", '"configs/spec/model.hpp"'),
        ("configs/spec/a.hpp", '"sim/program/program.hpp"'),
        ("sim/program/a.cpp", '"sim/cost/op_cost.hpp"'),
        ("sim/program/a.cpp", '"sim/program/build/build.hpp"'),
        ("sim/replay/a.cpp", '"sim/validate/runs.hpp"'),
        ("sim/cost/kernels/a.cpp", '"sim/validate/runs.hpp"'),
        ("sim/estimate/a.cpp", '"planner/search/search.hpp"'),
        ("planner/plan/a.cpp", '"sim/validate/runs.hpp"'),
        ("sim/validate/a.cpp", '"sim/cost/fit/fit.hpp"'),
        ("sim/validate/a.cpp", '"sim/cost/calibrate/calibrate.hpp"'),
        ("sim/cost/op_cost.hpp", '"sim/cost/collectives/collective_algorithm.hpp"'),
        ("sim/cost/op_cost.hpp", '"sim/cost/prices.hpp"'),
        ("sim/cost/fit/a.cpp", '"sim/cost/kernels/machine_model.hpp"'),
        ("sim/cost/fit/a.cpp", '"sim/cost/op_cost.hpp"'),
        ("sim/cost/host/a.cpp", '"sim/cost/stacks/step_model.hpp"'),
        ("sim/cost/collectives/a.cpp", '"sim/cost/kernels/machine_model.hpp"'),
        ("sim/cost/kernels/a.cpp", '"sim/cost/calibrate/calibrate.hpp"'),
        ("sim/cost/stacks/a.cpp", '"sim/cost/prices.hpp"'),
        ("sim/cost/prices.cpp", '"sim/replay/replay.hpp"'),
        ("sim/replay/a.cpp", '"sim/cost/prices.hpp"'),
        ("planner/search/a.cpp", '"planner/cli/output.hpp"'),
        ("planner/experiments/a.cpp", '"trainer/executor/executor.hpp"'),
        ("planner/experiments/a.cpp", '"reports/build/demo_report.hpp"'),
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
        ("trainer/main.cpp", '"trainer/executor/executor.hpp"'),
        ("reports/render/a.cpp", '"planner/plan/plan.hpp"'),
        ("reports/build/a.cpp", '"planner/cli/output.hpp"'),
        ("kernels/a.cpp", '"configs/spec/model.hpp"'),
        ("sim/cost/a.cpp", "<torch/torch.h>"),
        ("trainer/data/a.cpp", "<ATen/ATen.h>"),
        ("trainer/executor/a.cpp", "<simgrid/s4u.hpp>"),
    ]


def planted_circles():
    """A row and a name that it must not have."""
    return [
        ("sim/cost/fit", "sim/cost/kernels"),
        ("sim/cost", "sim/cost/collectives"),
        ("sim/cost/kernels", "sim/cost"),  # stacks among others, where "sim/cost/*" is meant
        ("sim/cost/stacks", "sim/cost/prices.hpp"),
        ("configs/spec/support", "planner/plan/plan.hpp"),  # by way of several rows
        ("trainer/launch", "bench/suites/cases.hpp"),
    ]


def self_test():
    for name, included in planted():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / name
            file.parent.mkdir(parents=True)
            file.write_text(f"// planted\n  #  include {included}\n")
            if len(list(broken_rules(Path(folder)))) != 1:
                sys.exit(f"a planted violation was not found: {name} includes {included}; mend {__file__}")
    for row, name in planted_circles():
        found = circle({**MAY_INCLUDE, row: [*MAY_INCLUDE[row], name]})
        if not found or row not in found:
            sys.exit(f"a planted circle was not found: {row} may include {name}; mend {__file__}")


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
