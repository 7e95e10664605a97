#!/usr/bin/env python3
"""Builds the documentation site with mdBook, and checks its links.

    scripts/docs.py                  into target/book
    scripts/docs.py --pictures       only draws docs/pictures/speed.svg, from the table in docs/benchmarks.md

The pages lie where people on GitHub expect them, some of them outside of `docs`. mdBook wants one folder. So they are copied into `target/book-pages`, and links that
lead to a file that is no page lead to the repository instead.
"""

import html.parser
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = ROOT / "target" / "book-pages"
SITE = ROOT / "target" / "book"
REPOSITORY = "https://github.com/maskwright/maskwright/blob/main/"
# Pages that lie elsewhere, and what they are called on the site.
OUTSIDE = {name: name for name in ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md"]} | {"bench/README.md": "method.md"}


def stage():
    """Copies the pages, with their links turned."""
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = {path: PAGES / path.relative_to(DOCS) for path in DOCS.rglob("*") if path.is_file()}
    pages |= {ROOT / name: PAGES / page for name, page in OUTSIDE.items()}
    for source, target in pages.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".md":
            shutil.copy(source, target)
            continue
        target.write_text(turn_links(source, target, pages))


def turn_links(source, target, pages):
    def turned(match):
        before, link = match[1], match[2]
        if "://" in link or link.startswith(("#", "mailto:")):
            return match[0]
        name, mark, anchor = link.partition("#")
        leads = (source.parent / name).resolve()
        if leads in pages:
            link = os.path.relpath(pages[leads], target.parent)
        elif leads.exists():
            link = REPOSITORY + leads.relative_to(ROOT).as_posix()
        else:
            sys.exit(f"docs: {source.relative_to(ROOT)} links to {name}, which does not exist")
        return f"{before}({link}{mark}{anchor})"

    # Code is left alone: `[a](b)` may be an example there.
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", source.read_text(), flags=re.M | re.S)
    return "".join(part if part.startswith("`") else re.sub(r"(\])\(([^)\s]+)\)", turned, part) for part in parts)


class Anchors(html.parser.HTMLParser):
    """The links of a page, and the places in it that can be linked to."""

    def __init__(self, page):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def check_links():
    """Every link of the site that stays in it leads to a page, and to a heading of that page."""
    pages = {path: Anchors(path.read_text()) for path in SITE.rglob("*.html")}
    broken, count = [], 0
    for path, page in pages.items():
        # The page for what is not found has links from the root of the host.
        for link in page.links if path.name not in ("404.html", "toc.html") else ():
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            leads = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            leads = leads / "index.html" if leads.is_dir() else leads
            there = leads.exists() and (not parts.fragment or leads not in pages or urllib.parse.unquote(parts.fragment) in pages[leads].ids)
            if not there:
                broken.append(f"{path.relative_to(SITE)}: {link}")
    for line in sorted(set(broken)):
        print(f"docs: broken link: {line}", file=sys.stderr)
    if broken:
        sys.exit(1)
    return len(pages), count


def draw():
    """Bars on a logarithmic scale, a group for each row of the table with times in it."""
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in (DOCS / "benchmarks.md").read_text().splitlines() if line.startswith("|")]
    engines, groups = table[0][1:], []
    for name, *cells in table[2:]:
        if not name.startswith(("mask", "accept", "first")):
            continue
        # `mask p50 / p99` is a group for p50 and one for p99.
        kind, *points = re.split(r"[ ,]+(?=p\d|average)|\s*/\s*", name)
        values = [[float(value.replace(",", "")) for value in cell.split("/")] for cell in cells]
        groups += [(f"{kind} {point}", [row[at] for row in values]) for at, point in enumerate(points)]
    colours = ["#2563eb", "#f59e0b", "#6b7280"]
    bar, gap, left, width = 14, 12, 130, 470
    low, high = math.log10(0.1), math.log10(max(value for _, values in groups for value in values) * 2)
    x = lambda value: left + (math.log10(value) - low) / (high - low) * width
    y, parts = 34, []
    bottom = y + len(groups) * (bar * len(engines) + gap)
    for power in range(math.ceil(low), math.floor(high) + 1):
        label = {-1: "0.1 µs", 0: "1 µs", 1: "10 µs", 2: "100 µs", 3: "1 ms", 4: "10 ms", 5: "100 ms", 6: "1 s"}.get(power, f"1e{power} µs")
        parts.append(f'<path d="M{x(10**power):.0f} 28V{bottom}" stroke="#ddd"/><text x="{x(10**power):.0f}" y="{bottom + 16}" text-anchor="middle">{label}</text>')
    for at, engine in enumerate(engines):
        parts.append(f'<rect x="{left + at * 150}" y="8" width="11" height="11" fill="{colours[at]}"/><text x="{left + 16 + at * 150}" y="18">{engine}</text>')
    for name, values in groups:
        parts.append(f'<text x="{left - 8}" y="{y + bar * len(values) / 2 + 4:.0f}" text-anchor="end">{name}</text>')
        for at, value in enumerate(values):
            parts.append(f'<rect x="{left}" y="{y}" width="{x(value) - left:.1f}" height="{bar - 2}" fill="{colours[at]}"/><text x="{x(value) + 4:.0f}" y="{y + bar - 4}" font-size="10">{value:,g}</text>')
            y += bar
        y += gap
    (DOCS / "pictures" / "speed.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 60} {bottom + 28}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>' + "".join(parts) + "</svg>\n"
    )


def main():
    draw()
    if sys.argv[1:] == ["--pictures"]:
        return
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    done = subprocess.run(["mdbook", "build", str(ROOT)], capture_output=True, text=True)
    if done.returncode or "WARN" in done.stderr:
        sys.exit(f"docs: mdbook failed or warned:\n{done.stdout}{done.stderr}")
    pages, links = check_links()
    print(f"{pages} pages, {links} links, all of which lead somewhere: {SITE / 'index.html'}")


if __name__ == "__main__":
    main()
