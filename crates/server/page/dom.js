// The only way in which this page makes elements. Children that are strings become text nodes, so that no text, wherever
// it comes from, is ever read as HTML.
//
//     element("p", { class: "quiet" }, "3 < 4", element("b", {}, "!"))

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Properties that begin with `on` are listeners; `true` sets an attribute without a value. */
export function element(name, properties = {}, ...children) {
  return dress(document.createElement(name), properties, children);
}

/** An element of a drawing. */
export function drawn(name, properties = {}, ...children) {
  return dress(document.createElementNS(SVG, name), properties, children);
}

/** The element with this id. It is in the page, or the page is broken. */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no element #${id}.`);
  return found;
}

/** Calls `action` when nobody has called for `wait` milliseconds. `now()` does not wait, `cancel()` forgets the call. */
export function debounced(wait, action) {
  let timer = 0;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(action, wait, ...given);
  };
  later.now = (...given) => {
    clearTimeout(timer);
    return action(...given);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** 49152 as "49,152". */
export function counted(number) {
  return Number(number).toLocaleString("en-US");
}

/** "1 token", "2 tokens". */
export function several(number, noun) {
  return `${counted(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Microseconds as a person reads them: "0.8 µs", "12 µs", "3.4 ms". */
export function duration(micros) {
  const [number, unit] = micros >= 1e6 ? [micros / 1e6, "s"] : micros >= 1e3 ? [micros / 1e3, "ms"] : [Number(micros), "µs"];
  // No line ends between a number and its unit.
  return `${number >= 10 ? Math.round(number) : number.toFixed(1)}\u00a0${unit}`;
}

function dress(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
