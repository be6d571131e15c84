"""A test that CI skips is named, and fails the run unless .ci/skipped says why: .ci/skipped_tests.py on results made here."""
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / ".ci/skipped_tests.py"
RESULTS = """<testsuite>
<testcase name="unit_ran" status="run"/>
<testcase name="e2e_failed" status="fail"><failure message=""/></testcase>
<testcase name="e2e_page" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
</testsuite>"""


def said(folder, results, allowed):
    (folder / "results").write_text(results)
    (folder / "allowed").write_text("# a comment\n" + allowed)
    run = subprocess.run([sys.executable, SCRIPT, folder / "results", folder / "allowed"], capture_output=True, text=True)
    return run.returncode, run.stdout


with tempfile.TemporaryDirectory() as name:
    for allowed, status in {"": 1, "unit_ran  another one\n": 1, "e2e_page  no browser\n": 0}.items():
        found, text = said(Path(name), RESULTS, allowed)
        assert found == status, (allowed, found, text)
        assert "1 tests were skipped: e2e_page" in text, text
        assert ("e2e_page: found skipped" in text) == (status == 1), text
    assert said(Path(name), RESULTS.replace("e2e_page", "e2e_other"), "e2e_page  no browser\n")[0] == 1
    assert said(Path(name), "<testsuite><testcase name='unit_ran' status='run'/></testsuite>", "") == (0, "0 tests were skipped\n")
