"""Forward products in bf16 of the shipped H200 profiles, as rows for `windtunnel validate kernels`: products.py >FILE."""

import csv
import json
import statistics
import sys
from pathlib import Path

PROFILES = Path(__file__).resolve().parents[3] / "configs" / "profiles"
rows = csv.writer(sys.stdout, lineterminator="\n")
rows.writerow("gpu,op,m,n,k,dtype,median_us,std_us,source".split(","))
for name in ("h200-dbrx", "h200-moe"):
    for m in json.loads((PROFILES / f"{name}.json").read_text())["measurements"]:
        if (m["kernel"], m["pass"], m["dtype"]) == ("gemm", "forward", "bf16"):
            shape, us = m["shape"], [1e6 * s for s in m["samples"]]
            rows.writerow(["H200-SXM-141GB", "gemm", shape["rows"], shape["n"], shape["k"], "bf16", f"{statistics.median(us):.2f}", f"{statistics.pstdev(us):.2f}", name])
