#!/usr/bin/env python3
"""Checks what the crates say about themselves, before anybody publishes them. It builds nothing and takes a second or two.

    scripts/package_check.py             metadata, versions, licences, files
    scripts/package_check.py --order     the public crates, in the order in which they are published

A crate is public unless it says `publish = false`. Whether the packages also compile is what `make package-check` finds out.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")


def cargo(*arguments):
    done = subprocess.run([CARGO, *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"package_check: 'cargo {' '.join(arguments)}' failed:\n{done.stderr}")
    return done.stdout


def version(text):
    numbers = [int(number) for number in re.findall(r"\d+", text)[:3]]
    return tuple(numbers + [0] * (3 - len(numbers)))


def is_public(package):
    return package["publish"] is None


def order(public):
    """Dependencies first. Those of tests count too, if they have a version, because Cargo keeps them."""
    names = {package["name"] for package in public}
    left, done = {package["name"]: package for package in public}, []
    while left:
        for name, package in sorted(left.items()):
            needed = {d["name"] for d in package["dependencies"] if d["name"] in names and d["req"] != "*"} - {name}
            if needed <= set(done):
                done.append(name)
                del left[name]
                break
        else:
            sys.exit(f"package_check: these crates depend on each other in a circle: {', '.join(sorted(left))}")
    return done


def problems_of(package, ours):
    """Everything that would be refused by the registry, or that its readers would miss."""
    for field in ("description", "license", "repository", "rust_version"):
        if not package[field]:
            yield f"has no {field}"
    if not 1 <= len(package["keywords"]) <= 5:
        yield f"has {len(package['keywords'])} keywords, and 1 to 5 are wanted"
    for keyword in package["keywords"]:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_+-]{0,19}", keyword):
            yield f"has the keyword {keyword!r}, which the registry refuses"
    if not package["categories"]:
        yield "has no categories"
    if package["readme"] != "README.md":
        yield "has no README.md of its own"
    for dependency in package["dependencies"]:
        other = ours.get(dependency["name"])
        is_for_tests = dependency["kind"] == "dev"
        if other is None:
            if dependency["req"] == "*":
                yield f"depends on any version of {dependency['name']}"
            continue
        if dependency["req"] == "*":
            if not is_for_tests:
                yield f"depends on {other['name']} by path alone; give it a version"
        elif not is_public(other):
            yield f"depends on {other['name']}, which is not published"
        elif dependency["req"] != f"^{other['version']}":
            yield f"asks for {other['name']} {dependency['req']}, which is at {other['version']}"
    files = set(cargo("package", "--list", "--allow-dirty", "-p", package["name"]).split())
    for file in ("README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.toml"):
        if file not in files:
            yield f"packs no {file}"
    if not any(file.startswith("src/") for file in files):
        yield "packs no source"
    # A path that leaves the crate is a file that the package does not have.
    folder = pathlib.Path(package["manifest_path"]).parent
    for file in sorted(file for file in files if file.endswith(".rs")):
        path = folder / file
        for name in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', path.read_text() if path.exists() else ""):
            if not (path.parent / name).resolve().is_relative_to(folder.resolve()):
                yield f"includes {name} in {file}, which is outside of the crate"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--order", action="store_true", help="print the public crates in the order of publishing")
    options = parser.parse_args()
    metadata = json.loads(cargo("metadata", "--format-version", "1", "--locked"))
    members = set(metadata["workspace_members"])
    ours = {package["name"]: package for package in metadata["packages"] if package["id"] in members}
    public = [package for package in ours.values() if is_public(package)]
    names = order(public)
    if options.order:
        print("\n".join(names))
        return
    problems = [f"{name} {problem}" for name in names for problem in problems_of(ours[name], ours)]
    readmes = {}
    for name in names:
        path = pathlib.Path(ours[name]["manifest_path"]).parent / "README.md"
        if path.exists():
            readmes.setdefault(path.read_bytes(), []).append(name)
    problems += [f"{' and '.join(same)} have the same README.md" for same in readmes.values() if len(same) > 1]
    # What the compiler that we promise could not build.
    promised = version(min(package["rust_version"] or "0" for package in public))
    for package in metadata["packages"]:
        if package["id"] not in members and package["rust_version"] and version(package["rust_version"]) > promised:
            problems.append(f"{package['name']} {package['version']} needs Rust {package['rust_version']}")
    for problem in problems:
        print(f"package_check: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    kept = sorted(set(ours) - set(names))
    print(f"{len(names)} public crates, in order: {', '.join(names)}; not published: {', '.join(kept)}")


if __name__ == "__main__":
    main()
