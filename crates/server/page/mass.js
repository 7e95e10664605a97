// The mass of masks as a line under the tokens: how much of the model's probability the constraint left at each token.

import { drawn, element } from "./dom.js";

const HEIGHT = 44;
// e^-7 is a thousandth; what is below lies on the ground.
const LEAST = -7;

/** Draws the line for tokens with `mass`, a logarithm; tokens without one are gaps. Nothing is drawn if none has one. */
export function massLine(root, tokens) {
  const masses = tokens.map((token) => token.mass);
  const known = masses.filter(Number.isFinite);
  if (known.length === 0) {
    root.replaceChildren();
    return;
  }
  const height = (mass) => (Math.max(mass, LEAST) / LEAST) * (HEIGHT - 4) + 2;
  const runs = [[]];
  masses.forEach((mass, index) => {
    if (Number.isFinite(mass)) runs.at(-1).push(`${index + 0.5},${height(mass).toFixed(2)}`);
    else if (runs.at(-1).length > 0) runs.push([]);
  });
  const lines = runs.filter((run) => run.length > 0).map((run) => drawn("polyline", { points: (run.length > 1 ? run : [run[0], run[0]]).join(" ") }));
  const sum = known.reduce((total, mass) => total + mass, 0);
  const worst = masses.reduce((at, mass, index) => (Number.isFinite(mass) && !(masses[at] <= mass) ? index : at), -1);
  const told = `The masks left ${share(sum)} of the model's probability; the least at token ${worst + 1}, ${share(masses[worst])}.`;
  root.replaceChildren(
    element("div", { class: "axis", "aria-hidden": "true" }, element("span", {}, "100 %"), element("span", {}, "0.1 %")),
    drawn("svg", { viewBox: `0 0 ${masses.length} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": told }, ...lines),
    element("p", { class: "quiet" }, told),
  );
}

/** A logarithm as a share: "12 %", "0.0034 %", "10⁻⁹". */
export function share(log) {
  const percent = 100 * Math.exp(log);
  if (percent >= 0.001) return `${Number(percent.toPrecision(2))}\u00a0%`;
  const raised = (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit] ?? "⁻";
  return `10${[...String(Math.round(log / Math.LN10))].map(raised).join("")}`;
}
