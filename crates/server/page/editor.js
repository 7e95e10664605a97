// A text area with colours, line numbers and underlines.
//
// The text area itself is transparent but for its caret; the same text stands behind it, in the same font, cut into
// coloured pieces. So typing, selecting, undo and screen readers are the browser's own.

import { element } from "./dom.js";

const MOST_LINES = 20_000;

/** Fills `root` with an editor. `words(text)` gives what to colour, `changed(text)` is called when somebody types. */
export function createEditor(root, { id, label, words, changed }) {
  const area = element("textarea", {
    id, "aria-label": label, class: "mono", spellcheck: "false", wrap: "off",
    autocomplete: "off", autocapitalize: "off", autocorrect: "off",
  });
  const paint = element("pre", { class: "paint mono", "aria-hidden": "true" });
  const gutter = element("pre", { class: "gutter mono", "aria-hidden": "true" });
  root.append(gutter, element("div", { class: "sheet" }, paint, area));

  let marks = [];
  let lines = 0;

  const draw = () => {
    paint.replaceChildren(...pieces(area.value, words(area.value), marks));
    const count = Math.min(MOST_LINES, area.value.split("\n").length);
    const bad = new Set(marks.filter((mark) => mark.class === "error").map((mark) => lineOf(area.value, mark.start)));
    if (count === lines && bad.size === 0 && !gutter.querySelector(".error")) return;
    lines = count;
    gutter.replaceChildren(...numbers(count, bad));
  };
  const follow = () => {
    paint.scrollTop = area.scrollTop;
    paint.scrollLeft = area.scrollLeft;
    gutter.scrollTop = area.scrollTop;
  };
  area.addEventListener("scroll", follow);
  area.addEventListener("input", () => {
    marks = []; // They were about the text of before.
    draw();
    follow();
    changed(area.value);
  });

  return {
    get value() {
      return area.value;
    },
    /** Replaces the text. */
    set(text) {
      area.value = text;
      area.scrollTop = 0;
      marks = [];
      draw();
      follow();
    },
    /** Underlines ranges `{ start, end, class, title }`. */
    mark(ranges) {
      marks = ranges;
      draw();
      follow();
    },
    /** Colours anew, after the language changed. */
    draw,
    /** Selects a range and brings it into view. */
    select({ start, end }) {
      area.focus();
      area.setSelectionRange(start, Math.max(start, end));
      const height = parseFloat(getComputedStyle(area).lineHeight) || 20;
      area.scrollTop = Math.max(0, lineOf(area.value, start) * height - area.clientHeight / 3);
      follow();
    },
  };
}

/** Line numbers, as few nodes as possible: only those of bad lines are elements. */
function numbers(count, bad) {
  const made = [];
  let plain = "";
  for (let line = 0; line < count; line += 1) {
    if (!bad.has(line)) {
      plain += `${line + 1}\n`;
      continue;
    }
    made.push(plain, element("span", { class: "error" }, `${line + 1}\n`));
    plain = "";
  }
  return [...made, plain];
}

/** The text cut at the borders of words and marks. */
function pieces(text, words, marks) {
  const borders = new Set([0, text.length]);
  for (const { start, end } of [...words, ...marks]) borders.add(start).add(end);
  const cuts = [...borders].filter((at) => at >= 0 && at <= text.length).sort((a, b) => a - b);
  const made = [];
  let word = 0;
  for (let n = 0; n < cuts.length; n += 1) {
    const [start, end] = [cuts[n], cuts[n + 1] ?? cuts[n]];
    const here = marks.filter((mark) => mark.start === start && (mark.end === start || text[start] === "\n" || start === text.length));
    // There is nothing to underline at the end of a line: a blank is put there, which moves nothing.
    if (here.length > 0) made.push(element("span", { class: here[0].class }, "\u00a0"));
    if (start === end) continue;
    while (word < words.length && words[word].end <= start) word += 1;
    const names = marks.filter((mark) => mark.start <= start && mark.end >= end).map((mark) => mark.class);
    if (word < words.length && words[word].start <= start) names.push(words[word].class);
    const piece = text.slice(start, end);
    made.push(names.length > 0 ? element("span", { class: names.join(" ") }, piece) : piece);
  }
  // The last line is lost if nothing stands on it.
  return [...made, "\n"];
}

function lineOf(text, index) {
  let line = 0;
  for (let at = text.indexOf("\n"); at >= 0 && at < index; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}
