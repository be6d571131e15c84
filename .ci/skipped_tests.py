#!/usr/bin/env python3
"""How many tests of a JUnit file of ctest were skipped, and which: skipped_tests.py RESULTS ALLOWED. Exit status 1 where one is
not among those that ALLOWED names."""
import os
import sys
import xml.etree.ElementTree


def skipped_in(results):
    if os.path.getsize(results) == 0:
        return []  # ctest did not come to run
    cases = xml.etree.ElementTree.parse(results).getroot().iter("testcase")
    return [case.get("name") for case in cases if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled")]


def main():
    results, allowed = sys.argv[1:]
    reasons = dict(line.split(maxsplit=1) for line in open(allowed) if line.strip() and not line.startswith("#"))
    skipped = skipped_in(results)
    print(f"{len(skipped)} tests were skipped" + (": " + ", ".join(skipped) if skipped else ""))
    unknown = [name for name in skipped if name not in reasons]
    for name in unknown:
        print(f"{name}: found skipped, which only tests of {allowed} may be: install what it needs, or name it there with the reason")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
