// What the server says about a constraint: its problems, what became of each keyword, its rules.

import { counted, element, several } from "./dom.js";
import { placeOf, placeOfPointer } from "./places.js";
import { prose, shown, shownSource } from "./visible.js";

const MOST_LINES = 500;
const ORDER = ["unenforced", "note", "annotation", "enforced"];
const MEANING = {
  enforced: "every text that is allowed satisfies it",
  annotation: "constrains nothing",
  unenforced: "not enforced",
  note: "worth knowing",
};

/** Shows problems in `root` as buttons that lead to their places; gives the ranges to underline. */
export function showProblems(root, diagnostics, text, pointers, goto) {
  const marks = [];
  const lines = diagnostics.slice(0, 50).map((diagnostic) => {
    const place = placeOf(diagnostic, text, pointers);
    const name = diagnostic.severity === "warning" ? "warning" : "error";
    if (place) marks.push({ ...place, class: name });
    return element("li", { class: name },
      element("button", { type: "button", disabled: !place, onclick: () => goto(place) },
        element("span", { class: "where" }, where(diagnostic, place, text)), " ",
        prose(diagnostic.message),
        diagnostic.help ? element("span", { class: "quiet" }, " – ", prose(diagnostic.help)) : null));
  });
  const more = diagnostics.length - lines.length;
  if (more > 0) lines.push(element("li", { class: "quiet" }, `and ${counted(more)} more`));
  root.replaceChildren(...lines);
  root.hidden = lines.length === 0;
  return marks;
}

/** Shows the coverage report as a table, the keywords that are not enforced first. */
export function showCoverage(root, report, pointers, goto) {
  if (!report) {
    root.replaceChildren(element("p", { class: "quiet" }, "Only JSON Schema has keywords. Every other constraint is enforced as a whole."));
    return;
  }
  const count = (coverage) => report.filter((entry) => entry.coverage === coverage).length;
  const chips = ORDER.toReversed().filter((coverage) => count(coverage) > 0).map((coverage) =>
    element("span", { class: `chip ${coverage}`, title: MEANING[coverage] }, `${counted(count(coverage))} ${coverage}`));
  const rows = [...report].sort((a, b) => ORDER.indexOf(a.coverage) - ORDER.indexOf(b.coverage));
  const lines = rows.slice(0, MOST_LINES).map(({ pointer, coverage, note }) => {
    const place = placeOfPointer(pointer, pointers);
    return element("tr", {},
      element("td", {}, element("span", { class: `chip ${coverage}` }, coverage)),
      element("td", { class: "mono" },
        element("button", { type: "button", class: "link", disabled: !place, onclick: () => goto(place) }, shown(pointer || "/"))),
      element("td", { class: "quiet" }, note ?? ""));
  });
  root.replaceChildren(
    element("p", { class: "chips" }, ...(chips.length ? chips : [element("span", { class: "quiet" }, "The schema says nothing.")])),
    element("table", {}, element("tbody", {}, lines)));
  if (rows.length > MOST_LINES) root.append(element("p", { class: "quiet" }, `and ${counted(rows.length - MOST_LINES)} more`));
}

/** Shows the rules of the compiled grammar, with those that a rule uses as links. */
export function showRules(root, rules, total) {
  if (rules.length === 0) {
    root.replaceChildren(element("p", { class: "quiet" }, "No rules to show."));
    return;
  }
  const ids = new Map(rules.map((rule, index) => [rule.name, `rule-${index}`]));
  const lines = rules.map((rule) => element("p", { class: "rule mono", id: ids.get(rule.name), tabindex: "-1" },
    element("b", {}, shown(rule.name)), " ::= ", linked(rule, ids)));
  root.replaceChildren(...lines);
  if (total > rules.length) root.append(element("p", { class: "quiet" }, `and ${several(total - rules.length, "rule")} more`));
}

/** Brings a rule of the listing into view. */
export function gotoRule(root, name, rules) {
  const line = root.children[rules.findIndex((rule) => rule.name === name)];
  line?.scrollIntoView({ block: "center" });
  line?.focus({ preventScroll: true });
}

/** The names of other rules in a rule's text, where they are not part of a literal or a class. */
export function usedBy(rule, names) {
  const used = new Set();
  for (const { text, isName } of cut(rule.text)) if (isName && names.has(text)) used.add(text);
  return used;
}

function linked(rule, ids) {
  return cut(rule.text).flatMap(({ text, isName }) => {
    if (!isName || !ids.has(text)) return shownSource(text);
    const follow = () => {
      const target = document.getElementById(ids.get(text));
      target?.scrollIntoView({ block: "center" });
      target?.focus({ preventScroll: true });
    };
    return [element("button", { type: "button", class: "link", onclick: follow }, shown(text))];
  });
}

/** A rule's text cut into literals, classes and other signs on one side, words on the other. */
function cut(text) {
  const pattern = /"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|([\p{L}\p{N}_][\p{L}\p{N}_.-]*)|[^"[\p{L}\p{N}_]+|./gsu;
  return Array.from(text.matchAll(pattern), (match) => ({ text: match[0], isName: match[1] !== undefined }));
}

function where(diagnostic, place, text) {
  if (diagnostic.pointer) return diagnostic.pointer;
  if (!place) return diagnostic.severity ?? "error";
  const before = text.slice(0, place.start).split("\n");
  return `${before.length}:${[...before.at(-1)].length + 1}`;
}
