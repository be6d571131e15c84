"""What commands answer: the JSON document as it was printed, its main figures by name, and its report."""
import html
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from .program import run

REPORT = "windtunnel.report/"


@dataclass(frozen=True)
class Interval:
    """A figure with the ends of its range, as the document gives them."""
    p50: float
    low: float
    high: float


@dataclass(frozen=True)
class Result:
    """`document` is what --json printed. `report` is the whole report, `windtunnel.report/1`; {} where the command prints none."""
    document: dict = field(repr=False)
    report: dict = field(default_factory=dict, repr=False)
    answer: str = field(init=False)  # one sentence

    def __post_init__(self):
        if str(self._top("schema")).startswith(REPORT):  # the report is the document, and holds the result as its payload
            self._set(report=self.document)
        self._set(answer=self.report.get("answer", self._top("answer") or ""))

    @property
    def payload(self):
        """The result for machines: the document, or the payload of a report."""
        return self.document["payload"] if self.report is self.document else self.document

    def frames(self):
        """The tables of the report as pandas DataFrames by title: a column of numbers has None where a cell
        has a word instead, as "-"; other columns have the text."""
        import pandas  # only here: the package works without it

        out = {}
        for section in self.report.get("sections", []):
            for item in section["items"]:
                if item["type"] == "table" and item["columns"]:
                    names = [f"{c['name']} [{c['unit']}]" if c["unit"] else c["name"] for c in item["columns"]]
                    numeric = [any("number" in row[i] for row in item["rows"]) for i in range(len(names))]
                    rows = [[cell.get("number") if of else cell["text"] for cell, of in zip(row, numeric)] for row in item["rows"]]
                    out[item["title"] or section["title"]] = pandas.DataFrame(rows, columns=names)
        return out

    def html(self):
        """The report as one page that opens offline."""
        if not self.report:
            raise ValueError(f"{self._top('schema')}: found a document without a report; use .document")
        with tempfile.TemporaryDirectory() as folder:
            twin, page = Path(folder) / "report.json", Path(folder) / "report.html"
            twin.write_text(json.dumps(self.report), encoding="utf-8")
            run("report", twin, output=page)
            return page.read_text(encoding="utf-8")

    def _repr_html_(self):
        if not self.report:
            return f"<pre>{html.escape(json.dumps(self.document, indent=1)[:4000])}</pre>"
        return f'<iframe srcdoc="{html.escape(self.html())}" style="width:100%;height:48rem;border:0"></iframe>'

    def _top(self, key):
        return self.document.get(key) if isinstance(self.document, dict) else None

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Plan(Result):
    days: Interval = field(init=False)
    step_s: Interval = field(init=False)  # its ends: 80 %
    layout_words: str = field(init=False)
    memory_bytes: Interval = field(init=False)  # of a process, at the fullest rank; its ends: 80 %
    gpu_hours: Interval = field(init=False)  # P50, P5, P95
    fits: bool = field(init=False)

    def __post_init__(self):
        super().__post_init__()
        d = self.document
        finish, step, process, hours = d["finish"], d["step"], d["memory"]["process_bytes"], d["cost"]["gpu_hours"]
        self._set(days=Interval(finish["days_p50"], finish["days_low"], finish["days_high"]),
                  step_s=Interval(step["step_s"], step["low_s"], step["high_s"]), layout_words=d["layout_words"],
                  memory_bytes=Interval(process["value"], process["low"], process["high"]),
                  gpu_hours=Interval(hours["p50"], hours["p05"], hours["p95"]),
                  fits=d["memory"]["out_of_memory"] <= d["memory"]["accepted_out_of_memory"])


@dataclass(frozen=True)
class Decision(Result):
    """One of several options; `chosen` is None where none is done in time and within the budget."""
    options: list = field(init=False)
    chosen: dict = field(init=False)

    def __post_init__(self):
        super().__post_init__()
        options, at = self.document["options"], self.document["chosen"]
        self._set(options=options, chosen=None if at is None else options[at])


@dataclass(frozen=True)
class Simulation(Result):
    step_s: Interval = field(init=False)  # its ends: 80 %
    tokens_per_s_per_gpu: float = field(init=False)
    mfu: float = field(init=False)  # None where the GPU's peak is not known
    memory_bytes: Interval = field(init=False)  # of a process, at the fullest rank

    def __post_init__(self):
        super().__post_init__()
        p = self.payload
        process = p["process_bytes"]
        self._set(step_s=Interval(p["step_s"], p["low_s"], p["high_s"]), tokens_per_s_per_gpu=p["tokens_per_s_per_gpu"],
                  mfu=p["mfu"], memory_bytes=Interval(process["value"], process["low"], process["high"]))


@dataclass(frozen=True)
class Explanation(Result):
    measured_step_s: float = field(init=False)
    predicted_step_s: Interval = field(init=False)  # its ends: 80 %
    changes: list = field(init=False)  # what would make the step shorter, the most first

    def __post_init__(self):
        super().__post_init__()
        p = self.payload
        predicted = p["predicted_step_s"]
        self._set(measured_step_s=p["measured"]["step_s"], changes=p["changes"],
                  predicted_step_s=Interval(predicted["value"], predicted["low"], predicted["high"]))
