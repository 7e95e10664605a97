// Pictures of a constraint: the network of its rules, or its automaton.
//
// Both are graphs that are read from their start, so one layout serves: a node's column is its distance from the start,
// and within a column nodes stand near the average of what leads to them. Edges that go back are drawn in an arc below.

import { drawn, element, several } from "./dom.js";

const MOST_NODES = 60;
const MOST_EDGES = 240;
const ROW = 40;

/**
 * Draws `{ nodes: [{ name, isEnd }], edges: [{ from, to, label }] }`, where node 0 is the start. `chosen(name)` is told which node
 * was clicked, if nodes can be.
 */
export function draw(root, graph, { round, describe, chosen }) {
  if (graph.nodes.length === 0) {
    root.replaceChildren(element("p", { class: "quiet" }, "There is nothing to draw."));
    return;
  }
  const { columns, edges, left } = layered(graph);
  const places = placed(columns, graph, round);
  const height = Math.max(...[...places.values()].map(({ y }) => y)) + ROW;
  const width = Math.max(...[...places.values()].map(({ x, width: half }) => x + half / 2)) + 14;
  const backs = edges.filter((edge) => isBack(edge, places));
  // Loops stand above their nodes, with their labels; arcs that go back, below.
  const above = edges.some(({ from, to }) => from === to) ? 20 : 0;
  const below = backs.length > 0 ? 26 : 0;
  const picture = drawn("svg", {
    viewBox: `0 ${-above} ${width} ${above + height + below}`, role: "img", "aria-label": describe, class: "network",
  },
  drawn("defs", {}, drawn("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" },
    drawn("path", { d: "M0 0L8 4L0 8z" }))),
  ...merged(edges).map((edge) => edgeOf(edge, places, height)),
  ...columns.flat().map((index) => nodeOf(graph.nodes[index], places.get(index), round, index === 0, chosen)));
  picture.style.width = `${width}px`;
  root.replaceChildren(picture);
  // It fits; whoever wants to read a large one sees it whole.
  const toggle = element("button", { type: "button", class: "size", "aria-pressed": "false", onclick: () => {
    const isFull = picture.classList.toggle("full");
    toggle.setAttribute("aria-pressed", String(isFull));
    toggle.textContent = isFull ? "Fit" : "Full size";
  } }, "Full size");
  if (width > root.clientWidth || height > root.clientHeight) root.prepend(toggle);
  if (left > 0) root.append(element("p", { class: "quiet" }, `${several(left, "node")} more, further from the start`));
}

/** Nodes by distance from node 0, as many as can be looked at, and the edges among them. */
function layered({ nodes, edges }) {
  const out = nodes.map(() => []);
  for (const edge of edges) out[edge.from]?.push(edge.to);
  const seen = new Set([0]);
  const columns = [[0]];
  for (;;) {
    const next = [];
    for (const index of columns.at(-1)) {
      for (const to of out[index]) {
        if (seen.has(to) || seen.size >= MOST_NODES) continue;
        seen.add(to);
        next.push(to);
      }
    }
    if (next.length === 0) break;
    columns.push(next);
  }
  const among = edges.filter(({ from, to }) => seen.has(from) && seen.has(to));
  return { columns: settled(columns, among), edges: among.slice(0, MOST_EDGES), left: nodes.length - seen.size };
}

/** Orders each column by the average row of what leads into it, so that edges cross less. */
function settled(columns, edges) {
  const row = new Map();
  return columns.map((column, depth) => {
    const weight = (index) => {
      const from = edges.filter((edge) => edge.to === index && row.has(edge.from)).map((edge) => row.get(edge.from));
      return from.length === 0 ? 0 : from.reduce((sum, at) => sum + at, 0) / from.length;
    };
    const sorted = depth === 0 ? column : [...column].sort((a, b) => weight(a) - weight(b));
    sorted.forEach((index, at) => row.set(index, at - (sorted.length - 1) / 2));
    return sorted;
  });
}

function placed(columns, { nodes }, round) {
  const tallest = Math.max(...columns.map((column) => column.length));
  const places = new Map();
  let x = 18;
  for (const column of columns) {
    const widths = column.map((index) => (round ? 26 : Math.min(150, 18 + shortened(nodes[index].name).length * 7.3)));
    const widest = Math.max(...widths);
    column.forEach((index, at) => {
      const y = 24 + ((tallest - column.length) / 2 + at) * ROW;
      places.set(index, { x: x + (round ? widest / 2 : widths[at] / 2), y, width: widths[at], depth: x });
    });
    x += widest + (round ? 66 : 46);
  }
  return places;
}

function nodeOf(node, { x, y, width }, round, isStart, chosen) {
  const shape = round
    ? [drawn("circle", { cx: x, cy: y, r: 13 }), ...(node.isEnd ? [drawn("circle", { cx: x, cy: y, r: 10, class: "end" })] : [])]
    : [drawn("rect", { x: x - width / 2, y: y - 12, width, height: 24, rx: 6 })];
  const name = drawn("text", { x, y: y + 4, "text-anchor": "middle" }, shortened(node.name));
  const canChoose = chosen ? { tabindex: 0, role: "button", "aria-label": `rule ${node.name}` } : {};
  return drawn("g", {
    class: `node${isStart ? " start" : ""}${chosen ? " choosable" : ""}`, ...canChoose,
    onclick: () => chosen?.(node.name),
    onkeydown: (event) => {
      if (event.key === "Enter" || event.key === " ") chosen?.(node.name);
    },
  }, drawn("title", {}, node.name), ...shape, name);
}

function edgeOf({ from, to, label }, places, height) {
  const [a, b] = [places.get(from), places.get(to)];
  const [start, end] = [a.x + a.width / 2, b.x - b.width / 2];
  let path;
  let at;
  if (from === to) {
    path = `M${a.x - 6} ${a.y - 12}C${a.x - 18} ${a.y - 36} ${a.x + 18} ${a.y - 36} ${a.x + 6} ${a.y - 13}`;
    at = { x: a.x, y: a.y - 28 };
  } else if (a.depth < b.depth) {
    const middle = (start + end) / 2;
    path = `M${start} ${a.y}C${middle} ${a.y} ${middle} ${b.y} ${end - 1} ${b.y}`;
    at = { x: middle, y: (a.y + b.y) / 2 - 4 };
  } else {
    const low = a.depth === b.depth ? Math.max(a.y, b.y) + 20 : Math.min(height + 18, Math.max(a.y, b.y) + 34);
    path = `M${a.x} ${a.y + 13}C${a.x} ${low} ${b.x} ${low} ${b.x} ${b.y + 14}`;
    at = { x: (a.x + b.x) / 2, y: low - 6 };
  }
  const name = label ? [drawn("text", { ...at, "text-anchor": "middle", class: "label" }, drawn("title", {}, label), shortened(label, 12))] : [];
  return drawn("g", { class: "edge" }, drawn("path", { d: path, "marker-end": "url(#arrow)" }), ...name);
}

/** Edges between the same two nodes are one, with both labels. */
function merged(edges) {
  const found = new Map();
  for (const edge of edges) {
    const key = `${edge.from}>${edge.to}`;
    const before = found.get(key);
    if (!before) found.set(key, { ...edge });
    else if (edge.label) before.label = `${before.label}, ${edge.label}`;
  }
  return [...found.values()];
}

function isBack({ from, to }, places) {
  return from !== to && places.get(from).depth >= places.get(to).depth;
}

function shortened(text, most = 18) {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}
