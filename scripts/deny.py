#!/usr/bin/env python3
"""Checks the dependencies against deny.toml without a network and without cargo-deny: licences, duplicates, wildcards and sources.

    scripts/deny.py                       all of them
    scripts/deny.py licenses bans         only these

It reads `cargo metadata`, and of deny.toml what it needs; `make deny` takes cargo-deny instead where it is installed, which also knows advisories.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def main():
    rules = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    checks = {"licenses": licences, "bans": bans, "sources": sources}
    wanted = sys.argv[1:] or list(checks)
    if unknown := [name for name in wanted if name not in checks]:
        sys.exit(f"deny: {unknown[0]!r} needs cargo-deny; without it there are {', '.join(checks)}")
    graph = metadata()
    packages = sorted(graph["packages"], key=lambda package: (package["name"], package["version"]))
    problems = [problem for name in wanted for problem in checks[name](packages, rules)]
    for problem in problems:
        print(f"deny: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"deny: {len(packages)} packages; {', '.join(wanted)} are as deny.toml wants them")


def metadata():
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version=1", "--locked", "--all-features"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        lines = found.stderr.strip().splitlines()
        sys.exit(f"deny: 'cargo metadata' failed: {lines[-1] if lines else 'no message'}")
    return json.loads(found.stdout)


def named(package):
    return f"{package['name']} {package['version']}"


def licences(packages, rules):
    allowed = set(rules["licenses"]["allow"])
    for package in packages:
        licence = package["license"]
        if not licence:
            yield f"{named(package)} names no licence"
        elif not is_allowed(licence, allowed):
            yield f"{named(package)} has the licence {licence!r}, which deny.toml does not allow"


def is_allowed(licence, allowed):
    """Whether an SPDX expression can be satisfied by the allowed licences. `A/B` is how old manifests write `A OR B`."""
    words = re.findall(r"\(|\)|[^\s()]+", licence.replace("/", " OR "))
    place = 0

    def peek():
        return words[place] if place < len(words) else None

    def take():
        nonlocal place
        place += 1
        return words[place - 1]

    def either():
        found = both()
        while peek() == "OR":
            take()
            found = both() or found
        return found

    def both():
        found = one()
        while peek() == "AND":
            take()
            found = one() and found
        return found

    def one():
        if peek() is None:
            raise ValueError(licence)
        word = take()
        if word == "(":
            found = either()
            if peek() != ")":
                raise ValueError(licence)
            take()
            return found
        if peek() == "WITH":
            take()
            word = f"{word} WITH {take()}"
        return word in allowed

    try:
        found = either()
    except (ValueError, IndexError):
        return False
    return found and place == len(words)


def bans(packages, rules):
    skipped = rules["bans"]["skip"]
    of_name = {}
    for package in packages:
        of_name.setdefault(package["name"], []).append(package["version"])
        for dependency in package["dependencies"] if package["source"] is None else ():
            if dependency["req"] == "*" and not dependency.get("path"):
                yield f"{named(package)} takes any version of {dependency['name']}"
    used = set()
    for name, versions in of_name.items():
        left = []
        for version in versions:
            skips = [place for place, skip in enumerate(skipped) if skip["name"] == name and (version + ".").startswith(skip["version"] + ".")]
            used.update(skips)
            if not skips:
                left.append(version)
        if len(left) > 1:
            yield f"there are {len(versions)} versions of {name}: {', '.join(versions)}"
    for place, skip in enumerate(skipped):
        if place not in used:
            yield f"deny.toml makes an exception for {skip['name']} {skip['version']}, which is not there any more"


def sources(packages, _rules):
    for package in packages:
        if package["source"] not in (None, REGISTRY):
            yield f"{named(package)} comes from {package['source']}"


if __name__ == "__main__":
    main()
