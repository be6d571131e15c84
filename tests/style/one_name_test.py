"""Every type of ours has a name of its own: all libraries share the namespace wt, and two types of one name in one program are
silently taken for the same. Every type has one conversion to JSON, too: nlohmann's library calls it from a template, of which a
program has one for each type, so that of two conversions, even static ones, any may be taken.

one_name_test.py [ROOT] prints each name that two headers or sources give to a type outside unnamed namespaces, and each type that two
convert to JSON, and ends with status 1; without ROOT it also sees that planted ones are found.
"""
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

TOP = ["configs", "kernels", "sim", "planner", "trainer", "bench", "reports"]
NOT_CODE = re.compile(r'R"\w*\(.*?\)\w*"|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>")  # its head; a `class T` in there is no type
# A namespace, a type with a body, or any other brace. A specialization is named with its arguments.
TO_JSON = re.compile(r"\bWT_TO_JSON\((?!Type\b)(?P<by_members>[\w:]+)|\bvoid to_json\([^,()]*,\s*const (?P<by_hand>[\w:]+)&[^()]*\)\s*\{")
BRACE = re.compile(
    r"\bnamespace\s*(?P<namespace>[\w:]*)\s*\{"
    r"|\b(?:enum\s+class|enum|struct|class|union)(?:\s*(?:alignas\s*\((?:[^()]|\([^()]*\))*\)|\[\[.*?\]\]))*"
    r"\s+(?P<type>\w+(?:<[^;{}()=]*?>)?)[^;{}()=]*\{"
    r"|[{}]")


def types_of(text):
    """Qualified names of the types that a source defines for all to see."""
    scopes = []  # names of namespaces; "" of an unnamed one; None of any other brace
    for brace in BRACE.finditer(TEMPLATE.sub(" ", NOT_CODE.sub(" ", text))):
        if brace[0] == "}":
            scopes.pop()
        elif brace["namespace"] is not None:
            scopes.append(brace["namespace"])
        else:
            if brace["type"] and all(scopes):
                yield "::".join([*scopes, brace["type"]])
            scopes.append(None)


def names_twice(root):
    files = defaultdict(set)
    for file in sorted(path for top in TOP for path in (root / top).rglob("*") if path.suffix in {".cpp", ".hpp"}):
        text = file.read_text(encoding="utf-8")
        converted = (f"to_json of {match['by_members'] or match['by_hand']}" for match in TO_JSON.finditer(NOT_CODE.sub(" ", text)))
        for name in (*types_of(text), *converted):
            files[name].add(file.relative_to(root).as_posix())
    # A class nested in another of the header may be defined in the source of that header.
    return {name: sorted(found) for name, found in files.items() if len({Path(f).with_suffix("") for f in found}) > 1}


def self_test():
    options = "namespace wt {\nstruct Options { int a = 0; };\nWT_TO_JSON(Other, a)\n}\n"
    for other, found in ((options, True), ("namespace wt {\nnamespace {\nstruct Options {};\n}\n}\n", False),
                         ("namespace wt {\n// struct Options {}\nclass Options;\n}\n", False),
                         ("namespace wt {\nenum class Options { a };\n}\n", True),
                         ("namespace wt {\ntemplate <class T, class U = std::vector<T>>\nstruct Options {};\n}\n", True),
                         ("namespace wt {\ntemplate <class Options>\nstruct Other {};\n}\n", False),
                         ("namespace wt {\ntemplate <>\nstruct Options<int> : Other<int> {};\n}\n", False),
                         ("namespace wt {\nstruct alignas(alignof(int)) Options : Other {};\n}\n", True),
                         ("namespace wt {\nclass [[nodiscard]] Options final {};\n}\n", True),
                         ("WT_TO_JSON(Options, a)\n", False), ("static void to_json(json& out, const Other& o) { out = o.a; }\n", True),
                         ("void to_json(json& out, const Other& o);\n", False), ("WT_TO_JSON(Other, a, b)\n", True)):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("sim/a.hpp", options), ("bench/b.cpp", other)):
                file = Path(folder) / name
                file.parent.mkdir(parents=True)
                file.write_text(text)
            if bool(names_twice(Path(folder))) != found:
                sys.exit(f"{__file__}: {'not found' if found else 'found'}: {other}")


def main():
    if len(sys.argv) == 1:
        self_test()
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    twice = names_twice(root)
    for name, files in sorted(twice.items()):
        print(f"{name}: in {', '.join(files)}; rename one, put a type that a source alone uses into an unnamed namespace, make JSON in a function of another name")
    return bool(twice)


sys.exit(main())
