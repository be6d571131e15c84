"""Draws what bench_simulator measured: CPU time of one simulated step against GPUs and against ops, as one SVG.

plot.py RESULT.json CHART.svg
"""
import json
import math
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 380, 280, 58, 44, 30


def points(rows, family, x, value):
    return sorted((x(r), value(r)) for r in rows if r["name"].startswith(family + "/") and r.get("run_type") != "aggregate")


def ticks(low, high):
    return [10.0**e for e in range(math.floor(low), math.ceil(high) + 1)]


def panel(at, title, x_label, series):
    """Lines over logarithmic axes: a straight line of slope one is a cost in proportion."""
    xs = [math.log10(x) for _, line in series for x, _ in line]
    ys = [math.log10(y) for _, line in series for _, y in line]
    x0, x1, y0, y1 = min(xs), max(xs), math.floor(min(ys)), math.ceil(max(ys))
    px = lambda x: at + LEFT + (math.log10(x) - x0) / (x1 - x0) * (WIDTH - LEFT - 16)
    py = lambda y: HEIGHT - BOTTOM - (math.log10(y) - y0) / (y1 - y0) * (HEIGHT - BOTTOM - TOP)
    text = lambda x, y, words, anchor: f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'
    out = [text(at + LEFT, 16, title, "start"), text(at + (WIDTH + LEFT) / 2, HEIGHT - 6, x_label, "middle")]
    for y in ticks(y0, y1):
        out.append(f'<path d="M{at + LEFT} {py(y):.1f}H{at + WIDTH - 16}" stroke="#ddd"/>' + text(at + LEFT - 6, py(y) + 4, f"{y:g} ms", "end"))
    for x in [x for x in ticks(x0, x1) if x0 <= math.log10(x) <= x1]:
        out.append(f'<path d="M{px(x):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>' + text(px(x), HEIGHT - BOTTOM + 16, f"{x:,.0f}", "middle"))
    for (name, line), colour in zip(series, ("#1f77b4", "#d62728", "#2ca02c")):
        path = "M" + "L".join(f"{px(x):.1f} {py(y):.1f}" for x, y in line)
        out.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3" fill="{colour}"/>' for x, y in line]
        out.append(f'<text x="{at + LEFT + 8}" y="{TOP + 14 + 15 * [n for n, _ in series].index(name)}" fill="{colour}">{name}</text>')
    return out


def main():
    rows = json.load(open(sys.argv[1]))["benchmarks"]
    gpus = lambda r: float(r["name"].split("gpus:")[1].split("/")[0])
    ms, ops = lambda r: 1e3 * r["cpu_s"], lambda r: r["ops"]
    drawn = panel(0, "One DBRX step, one microbatch, against GPUs", "GPUs", [
        ("twins simulated once", points(rows, "step_by_gpus", gpus, ms)), ("every GPU", points(rows, "step_unfolded", gpus, ms))])
    drawn += panel(WIDTH, "The same against simulated ops", "ops", [
        ("more microbatches, 3,072 GPUs", points(rows, "step_by_microbatches", ops, ms)),
        ("more layers, 3,072 GPUs", points(rows, "step_by_layers", ops, ms)), ("every GPU", points(rows, "step_unfolded", ops, ms))])
    with open(sys.argv[2], "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">\n'
                   f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(drawn) + "\n</svg>\n")


main()
