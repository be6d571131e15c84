"""Reads what Megatron-LM's command line and Megatron-Bridge's ConfigContainer have, out of their sources at one release.

Nothing is imported or executed: sources are parsed, from a bare or a normal git repository with the release's tag.
"""
import ast
import subprocess


class Release:
    """The files of a git repository at a tag."""

    def __init__(self, repository, tag):
        self.repository, self.tag = repository, tag
        self.trees, self.classes = {}, {}

    def git(self, *words):
        return subprocess.run(["git", "-C", self.repository, *words], capture_output=True, text=True, check=False).stdout

    def text(self, path):
        return self.git("show", f"{self.tag}:{path}")

    def tree(self, path):
        if path not in self.trees:
            self.trees[path] = ast.parse(self.text(path))
        return self.trees[path]

    def files(self, folder):
        return self.git("ls-tree", "-r", "--name-only", self.tag, folder).split()

    def class_(self, name, folders=("megatron/*.py", "src/*.py")):
        """The class of that name in the first file outside of legacy folders; None where no file has it."""
        if name not in self.classes:
            lines = self.git("grep", "-n", "-E", rf"^ *class {name}\b", self.tag, "--", *folders).splitlines()
            paths = [line.split(":")[1] for line in lines if "/legacy/" not in line]
            nodes = [n for path in paths for n in ast.walk(self.tree(path)) if isinstance(n, ast.ClassDef) and n.name == name]
            self.classes[name] = nodes[0] if nodes else None
        return self.classes[name]

    def fields(self, name):
        """Dataclass fields with those of the bases: {name: AnnAssign}. A class of another repository has none here."""
        out, node = {}, self.class_(name)
        for base in node.bases if node else []:
            out.update(self.fields(base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""))
        for line in node.body if node else []:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and "ClassVar" not in ast.unparse(line.annotation):
                out[line.target.id] = line
        return out


def literal(node):
    """Its value, or None."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, AttributeError):
        return None


def facts_of(keywords):
    """{"takes": ..., "choices": ..., "usual": ...} of add_argument's keywords, those that are literal."""
    out = {}
    action = literal(keywords["action"]) if "action" in keywords else None
    if action in ("store_true", "store_false"):
        return {"takes": "nothing"}
    choices = literal(keywords["choices"]) if "choices" in keywords else None
    if isinstance(choices, (list, tuple)) and all(isinstance(c, (str, int)) for c in choices):
        out["choices"] = list(choices)
    if "nargs" in keywords:
        out["takes"] = "words"
    usual = literal(keywords["default"]) if "default" in keywords else None
    if usual is not None:
        out["usual"] = usual
    return out


def calls(tree, name):
    """Calls of a function or method of that name, in their order."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and (getattr(n.func, "attr", None) == name or getattr(n.func, "id", None) == name)]
    return sorted(found, key=lambda call: call.lineno)


def field_facts(line):
    """(flags, facts) that ArgumentGroupFactory makes of a dataclass's field; None where it makes none."""
    name, usual, meta = line.target.id, line.value, {}
    if isinstance(usual, ast.Call):
        arguments = {k.arg: k.value for k in usual.keywords}
        if "init" in arguments and literal(arguments["init"]) is False:
            return None
        if "metadata" in arguments:
            for key, value in zip(arguments["metadata"].keys, arguments["metadata"].values):
                if literal(key) == "argparse_meta" and isinstance(value, ast.Dict):
                    meta = {literal(k): v for k, v in zip(value.keys, value.values)}
        usual = arguments.get("default")
    value, kind = (literal(usual) if usual is not None else None), ast.unparse(line.annotation)
    names = ["--" + name.replace("_", "-")]
    facts = {} if value is None else {"usual": value}
    if kind in ("bool", "Optional[bool]", "bool | None"):
        facts = {"takes": "nothing"}
        if value is not False:
            names = ["--no-" + name.replace("_", "-"), "--disable-" + name.replace("_", "-")]
    elif kind.startswith(("List", "list", "Optional[List", "Optional[list")):
        facts["takes"] = "words"
    literals = [n for n in ast.walk(line.annotation) if isinstance(n, ast.Subscript) and ast.unparse(n.value).endswith("Literal")]
    if literals:
        parts = literals[0].slice.elts if isinstance(literals[0].slice, ast.Tuple) else [literals[0].slice]
        facts["choices"] = [literal(part) for part in parts]
    if "arg_names" in meta:
        names = literal(meta["arg_names"])
    facts.update(facts_of({k: v for k, v in meta.items() if k in ("action", "choices", "nargs", "default")}))
    return names, facts


def flags(release, path="megatron/training/arguments.py"):
    """{flag without dashes: facts} of Megatron-LM's parser; "group" is the function or class that adds it."""
    out, tree = {}, release.tree(path)
    for function in [n for n in tree.body if isinstance(n, ast.FunctionDef)]:
        for call in calls(function, "add_argument"):
            names = [literal(a) for a in call.args]
            facts = facts_of({k.arg: k.value for k in call.keywords})
            for name in names:
                if isinstance(name, str) and name.startswith("--"):
                    out[name[2:]] = {**facts, "group": function.name}
        for call in calls(function, "ArgumentGroupFactory"):
            arguments = {k.arg: k.value for k in call.keywords}
            left_out = arguments.get("exclude")
            if isinstance(left_out, ast.Name):
                left_out = next((n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == left_out.id), None)
            left_out = set(literal(left_out) or []) if left_out is not None else set()
            owner = ast.unparse(call.args[0])
            for name, line in release.fields(owner).items():
                made = None if name in left_out else field_facts(line)
                for flag in made[0] if made else []:
                    out.setdefault(flag[2:], {**made[1], "group": owner})
    return out
