#!/usr/bin/env python3
"""What each mechanism of step prediction buys: it is taken out of the tables or of the stack files, everything is fitted
again, and the same rows are predicted with their sources left out.

ablation.py -o FOLDER [--windtunnel BINARY] [MECHANISM ...]    all by default; one to five minutes each

A row counts where its prediction moves by more than 2 %. Errors are medians of |predicted / measured - 1|. FOLDER/ablation.csv
has the printed table, and as the mechanism `nothing` all rows of each family, predicted with every mechanism.
"""
import argparse
import csv
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
FAMILIES = ["MoE, FSDP", "MoE, data parallel", "MoE, tensor and pipeline", "MoE",
            "dense, FSDP", "dense, data parallel", "dense, tensor and pipeline", "dense"]
NOTHING = "nothing"
MOVED = 0.02


def rows(change, architectures=None):
    """Edits the rows of runs, of these architectures alone: `change` gives the new values of some columns."""
    def edit(configs):
        for path in sorted((configs / "measurements").glob("*runs*.csv")):
            with open(path, newline="") as file:
                table = list(csv.DictReader(file))
            for row in table:
                if architectures is None or row.get("arch_type") in architectures:
                    row.update({key: value for key, value in change(row).items() if key in row})
            with open(path, "w", newline="") as file:
                writer = csv.DictWriter(file, table[0].keys(), lineterminator="\n")
                writer.writeheader()
                writer.writerows(table)
    return edit


def moe_rows(change):
    return rows(change, ("moe", "hybrid_moe"))


def stacks(pattern, replacement):
    """Edits a line of every stack file that has it."""
    def edit(configs):
        for path in sorted((configs / "stacks").glob("*.yaml")):
            path.write_text(re.sub(pattern, replacement, path.read_text(), flags=re.MULTILINE))
    return edit


def added_by_products(configs):
    """Takes the kernel that adds gradients out of every stack file: products add them, as in Megatron."""
    for path in sorted((configs / "stacks").glob("*.yaml")):
        text = path.read_text()
        if "weight_gradients" in text:
            continue
        if "\nmemory:" not in text:
            text = re.sub(r"^source:", "memory:\nsource:", text, flags=re.MULTILINE)
        path.write_text(re.sub(r"^memory:.*$", r"\g<0>\n  weight_gradients: in_place", text, flags=re.MULTILINE))


MECHANISMS = {
    "dispatchers": moe_rows(lambda row: {"dispatcher": "alltoall"}),
    "overlap": moe_rows(lambda row: {"ep_overlap": "0"}),
    "whole experts": moe_rows(lambda row: {"etp": row.get("tp") or row.get("etp")}),
    "loads": moe_rows(lambda row: {"moe_routing": "forced_balance"}),
    "formats": rows(lambda row: {"precision": "bf16", "precision_family": "bf16"}),
    "collective copies": stacks(r"^  collective_copies: \w+$", "  collective_copies: none"),
    "gradient kernel": added_by_products,
    "attention kernels": stacks(r"^attention: (?!unfused)\w+", "attention: unnamed"),
    "fused routing": stacks(r"^fused_routing: .*$", "# rows are routed by many small kernels"),
    "gathers between layers": stacks(r"^  gathers_overlap: .*$", "  gathers_overlap: true"),
    "grouped libraries": stacks(r"^grouped_products: .*$", "# no library of grouped products"),
}


def predicted(binary, folder, name, edit):
    """Rows of `validate runs` under edited configs, by line, name and measurement."""
    configs = folder / name.replace(" ", "-")
    shutil.rmtree(configs, ignore_errors=True)
    shutil.copytree(ROOT / "configs", configs)
    edit(configs)
    out = subprocess.run([binary, "validate", "runs", "--json"], stdout=subprocess.PIPE, check=True, cwd=ROOT,
                         env={**os.environ, "WINDTUNNEL_CONFIGS": str(configs)}).stdout
    return {(row["line"], row["name"], row["measured_s"]): row
            for row in json.loads(out)["rows"] if row["predicted_s"]}


def error(found, keys):
    """Median error in percent, as the table has it."""
    return f"{100 * statistics.median(abs(found[key]['predicted_s'] / found[key]['measured_s'] - 1) for key in keys):.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True, type=pathlib.Path)
    parser.add_argument("--windtunnel", default=str(ROOT / "build/bin/windtunnel"))
    parser.add_argument("mechanisms", nargs="*", metavar="MECHANISM", help=", ".join(MECHANISMS))
    args = parser.parse_args()
    unknown = [name for name in args.mechanisms if name not in MECHANISMS]
    if unknown:
        parser.error(f"found {unknown[0]}, needs one of {', '.join(MECHANISMS)}")
    args.output.mkdir(parents=True, exist_ok=True)
    folder = args.output.resolve()
    whole = predicted(args.windtunnel, folder, "whole", lambda configs: None)
    found = [[NOTHING, family, len(keys), error(whole, keys), ""]
             for family in FAMILIES if (keys := [key for key in whole if whole[key]["regime"].startswith(family)])]
    print("| without | family | rows | with | without |\n|---|---|---|---|---|", flush=True)
    for name in args.mechanisms or MECHANISMS:
        less = predicted(args.windtunnel, folder, name, MECHANISMS[name])
        for family in FAMILIES:
            keys = [key for key, row in whole.items() if row["regime"].startswith(family) and key in less
                    and abs(less[key]["predicted_s"] / row["predicted_s"] - 1) > MOVED]
            if keys:
                found.append([name, family, len(keys), error(whole, keys), error(less, keys)])
                print(f"| {name} | {family} | {len(keys)} | {found[-1][3]} % | {found[-1][4]} % |", flush=True)
    with open(folder / "ablation.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["day", "without", "family", "rows", "error_with_percent", "error_without_percent"])
        writer.writerows([datetime.date.today(), *row] for row in found)


if __name__ == "__main__":
    main()
