#!/usr/bin/env python3
"""Prints which parts of a crate use which others, and finds circles.

    scripts/map.py                    all crates, one line each
    scripts/map.py crates/engine      the arrows between the folders of one crate
    scripts/map.py --files crates/engine
                                      the arrows between files, folder by folder

A part of a crate is a folder or a file below `src`. A circle between the folders of a crate, or between the files of a folder, is an error (exit
status 1). `mod.rs` and `lib.rs` belong to their folder: a parent may use its children, and a child may use what its parent defines itself.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Circles that are known and about to go. One that is not there any more is an error, so that this list stays true; it should be empty.
EXPECTED = set()


def source_without_tests(path):
    """The text of a file without comments, strings and test modules."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r'b?r(#*)".*?"\1', '""', text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', text, flags=re.S)
    return re.sub(r"#\[cfg\(test\)\]\s*mod \w+ \{.*\n\}\n", "", text, flags=re.S)


def module_of(path, source):
    """The path of a module: `matcher/mask.rs` is `matcher::mask`, `matcher/mod.rs` is `matcher`."""
    parts = list(path.relative_to(source).with_suffix("").parts)
    if parts[-1] in ("mod", "lib", "main"):
        parts.pop()
    return tuple(parts)


def expand(tree):
    """The paths of a `use` declaration: `a::{b, c::d}` is `a::b` and `a::c::d`."""
    tree = tree.strip()
    opened = tree.find("{")
    if opened < 0:
        return [tree.split(" as ")[0].strip()]
    prefix, inside = tree[:opened], tree[opened + 1 : tree.rindex("}")]
    depth, start, parts = 0, 0, []
    for at, char in enumerate(inside):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append(inside[start:at])
            start = at + 1
    parts.append(inside[start:])
    return [prefix + path for part in parts if part.strip() for path in expand(part)]


def resolve(path, module, modules):
    """The module that a path of names leads to, and the name in it; `None` for other crates."""
    names = [name for name in path.replace(" ", "").split("::") if name]
    if not names:
        return None
    if names[0] == "crate":
        at, names = (), names[1:]
    elif names[0] in ("self", "super"):
        at = module
        while names and names[0] in ("self", "super"):
            if names[0] == "super":
                at = at[:-1]
            names = names[1:]
    elif module + (names[0],) in modules:
        at = module
    else:
        return None
    while names and at + (names[0],) in modules:
        at, names = at + (names[0],), names[1:]
    return at, (names[0] if names else None)


class Crate:
    def __init__(self, folder):
        self.name = folder.name
        self.source = folder / "src"
        self.files = {module_of(path, self.source): path for path in sorted(self.source.rglob("*.rs"))}
        self.texts = {module: source_without_tests(path) for module, path in self.files.items()}
        self.reexports = {}
        for module, text in self.texts.items():
            for tree in re.findall(r"pub(?:\([^)]*\))?\s+use\s+([^;]+);", text):
                for path in expand(tree):
                    found = resolve(path, module, self.files)
                    if found and found[0] != module:
                        self.reexports[module, path.split("::")[-1].strip()] = found
        self.arrows = {}
        for module, text in self.texts.items():
            targets = set()
            used = [p for tree in re.findall(r"(?<!\w)use\s+([^;]+);", text) for p in expand(tree)]
            used += re.findall(r"(?<![\w:])((?:crate|super|self)(?:::\w+)+)", text)
            for path in used:
                found = resolve(path, module, self.files)
                # A name that a folder hands on belongs to the file that defines it.
                seen = set()
                while found and found in self.reexports and found not in seen:
                    seen.add(found)
                    found = self.reexports[found]
                if found and found[0] != module:
                    targets.add(found[0])
            self.arrows[module] = targets

    def label(self, module):
        return "::".join(module) or self.name

    def between(self, parent):
        """The arrows between the parts directly below a module; the module itself is a part, without arrows to its children."""
        depth = len(parent)
        arrows = {}
        for module, targets in self.arrows.items():
            if module[:depth] != parent or len(module) == depth:
                continue
            part = module[: depth + 1]
            for target in targets:
                if target[:depth] == parent and len(target) > depth and target[: depth + 1] != part:
                    arrows.setdefault(part, {}).setdefault(target[: depth + 1], set()).add((module, target))
            arrows.setdefault(part, {})
        return arrows

    def parents(self):
        return sorted({module[:-1] for module in self.files if module})


def circles(arrows):
    """The strongly connected sets of more than one part, by Tarjan's algorithm."""
    index, low, stack, found = {}, {}, [], []

    def visit(part):
        index[part] = low[part] = len(index)
        stack.append(part)
        for target in arrows.get(part, {}):
            if target not in index:
                visit(target)
                low[part] = min(low[part], low[target])
            elif target in stack:
                low[part] = min(low[part], index[target])
        if low[part] == index[part]:
            at = stack.index(part)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for part in arrows:
        if part not in index:
            visit(part)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crate", nargs="*", help="a crate's folder; all of them if none is given")
    parser.add_argument("--files", action="store_true", help="also print the arrows inside folders")
    options = parser.parse_args()
    folders = [pathlib.Path(crate) for crate in options.crate] or sorted(
        path.parent for path in [*ROOT.glob("crates/*/Cargo.toml"), *ROOT.glob("bench/Cargo.toml")]
    )
    problems = 0
    gone = {name for name in EXPECTED if not options.crate or name.split(":")[0] in {folder.name for folder in folders}}
    for folder in folders:
        crate = Crate(folder)
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in crate.files.values())
        print(f"{crate.name}: {len(crate.files)} files, {lines} lines")
        for parent in crate.parents():
            arrows = crate.between(parent)
            if options.crate and (not parent or options.files):
                print(f"  {crate.label(parent)}")
                for part, targets in sorted(arrows.items()):
                    names = ", ".join(target[-1] for target in sorted(targets))
                    print(f"    {part[-1]:<14} {'-> ' + names if names else ''}")
            for circle in circles(arrows):
                name = f"{crate.label(parent)}: {' <-> '.join(part[-1] for part in circle)}"
                if f"{crate.name}: {name}" in EXPECTED:
                    gone.discard(f"{crate.name}: {name}")
                    print(f"  expected circle in {name}")
                    continue
                problems += 1
                print(f"  circle in {name}")
                for part in circle:
                    for target in sorted(set(arrows[part]) & set(circle)):
                        uses = sorted(arrows[part][target])
                        shown = ", ".join(f"{crate.label(a)} uses {crate.label(b)}" for a, b in uses[:4])
                        more = f" and {len(uses) - 4} more" if len(uses) > 4 else ""
                        print(f"    {part[-1]} -> {target[-1]}: {shown}{more}")
    if problems:
        print(f"{problems} circles", file=sys.stderr)
    for name in sorted(gone):
        print(f"the circle '{name}' is gone; take it out of EXPECTED in scripts/map.py", file=sys.stderr)
    return 1 if problems or gone else 0


if __name__ == "__main__":
    sys.exit(main())
