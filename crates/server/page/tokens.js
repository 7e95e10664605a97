// A text as tokens: green as far as the constraint accepts it, the first bad one red, and beneath it how many tokens
// were allowed at each step.

import { counted, drawn, duration, element } from "./dom.js";
import { shownToken } from "./visible.js";

// More would not be looked at, and would slow the page down.
const MOST = 3000;

/** The class of a token: how it is coloured. */
export function classOf(token) {
  const names = ["token"];
  if (token.allowed === true) names.push("good");
  if (token.allowed === false) names.push("bad");
  if (token.allowed === null || token.allowed === undefined) names.push("behind");
  if (token.forced) names.push("forced");
  if (token.special) names.push("special");
  return names.join(" ");
}

/** One token as an element. */
export function tokenElement(token) {
  const node = element("span", { class: classOf(token), title: described(token) }, shownToken(token));
  // A line break in the text is one on the screen, too.
  return token.text.endsWith("\n") ? [node, element("br")] : [node];
}

/** A token in one line: "id 284 · 1 of 49,152 allowed · forced · 0.8 µs". */
export function described(token, vocabulary) {
  const parts = [`id ${token.id}`];
  if (Number.isFinite(token.mask_size)) {
    parts.push(`${counted(token.mask_size)}${vocabulary ? ` of ${counted(vocabulary)}` : ""} allowed`);
  }
  if (token.forced) parts.push("forced");
  if (token.allowed === false) parts.push("not allowed here");
  if (token.special) parts.push("special token");
  if (Number.isFinite(token.micros)) parts.push(`mask in ${duration(token.micros)}`);
  return parts.join(" · ");
}

/** Shows tokens in `root`, one of which is the current one; arrow keys and the mouse move it, and `moved(index)` is told. */
export function createTokens(root, moved) {
  let nodes = [];
  let current = -1;
  root.setAttribute("role", "group");
  root.tabIndex = 0;

  const select = (index, tell = true) => {
    nodes[current]?.classList.remove("current");
    current = index >= 0 && index < nodes.length ? index : -1;
    nodes[current]?.classList.add("current");
    if (tell) moved(current);
  };
  root.addEventListener("pointerover", (event) => {
    const index = nodes.indexOf(event.target.closest?.(".token"));
    if (index >= 0) select(index);
  });
  root.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || nodes.length === 0) return;
    event.preventDefault();
    select(Math.min(nodes.length - 1, Math.max(0, current + step)));
    nodes[current]?.scrollIntoView({ block: "nearest" });
  });

  return {
    show(tokens) {
      const made = tokens.slice(0, MOST).map(tokenElement);
      nodes = made.map(([node]) => node);
      current = -1;
      const more = tokens.length - nodes.length;
      root.replaceChildren(...made.flat(), ...(more > 0 ? [element("span", { class: "quiet" }, ` and ${counted(more)} more`)] : []));
    },
    select,
  };
}

const HEIGHT = 44;
const WIDEST = 14;

/**
 * A bar for each value, on a logarithmic scale from 1 to `top`. `values` are `{ value, class }`; `pointed(index)` is told where the
 * mouse is.
 */
export function sparkline(root, values, { top, unit, pointed, describe }) {
  const shownValues = values.slice(0, MOST);
  if (shownValues.length === 0) {
    root.replaceChildren(element("span", { class: "quiet" }, "nothing yet"));
    return;
  }
  const most = Math.max(2, top ?? Math.max(...shownValues.map(({ value }) => value)));
  const bars = shownValues.map(({ value, class: name }, index) => {
    const share = value <= 0 ? 0 : Math.max(0.06, Math.log(Math.max(1, value) + 1) / Math.log(most + 1));
    const height = Math.min(1, share) * HEIGHT;
    return drawn("rect", { x: index + 0.08, y: HEIGHT - height, width: 0.84, height, class: name ?? null });
  });
  const chart = drawn("svg", {
    viewBox: `0 0 ${shownValues.length} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": describe ?? unit,
  }, ...bars);
  chart.style.maxWidth = `${shownValues.length * WIDEST}px`;
  if (pointed) {
    chart.addEventListener("pointermove", (event) => {
      const box = chart.getBoundingClientRect();
      pointed(Math.min(shownValues.length - 1, Math.floor(((event.clientX - box.left) / box.width) * shownValues.length)));
    });
  }
  root.replaceChildren(
    element("div", { class: "axis", "aria-hidden": "true" }, element("span", {}, unit === "µs" ? duration(most) : counted(most)), element("span", {}, unit === "µs" ? "0" : "1")),
    chart,
  );
}
