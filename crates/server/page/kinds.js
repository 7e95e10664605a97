// The languages of constraints: what they are called, how they are coloured, and how a request carries them.

const STRING = /"(?:[^"\\\n]|\\.)*"?/y;

/** Each kind: its label, and its words `[class, pattern]`, of which the first that matches at a place colours it. */
export const KINDS = new Map([
  ["json_schema", { label: "JSON Schema", words: json() }],
  ["regex", { label: "Regex", words: regex() }],
  ["choice", { label: "Choice", words: json() }],
  ["ebnf", { label: "EBNF", words: rules() }],
  ["lark", { label: "Lark", words: lark() }],
  ["gbnf", { label: "GBNF", words: rules() }],
  ["structural_tag", { label: "Structural tag", words: json() }],
  ["pcfg", { label: "Weighted", words: weighted() }],
]);

/** The styles of white space between the parts of JSON, and what people call them. */
export const WHITESPACE = new Map([
  ["tidy", "tidy"], ["compact", "none"], ["spaced", "one line"], ["indent:2", "indented"], ["natural", "of one style"], ["flexible", "any"],
]);

/** Whether a kind has schemas in it, so that there is white space and an order of keys to speak of. */
export function hasSchemas(kind) {
  return kind === "json_schema" || kind === "structural_tag";
}

/** How a constraint is read, as the field `maskwright` of a request. */
export function reading(kind, { whitespace, keyOrder }) {
  return hasSchemas(kind) ? { whitespace, key_order: keyOrder, objects: "standard" } : {};
}

// Colouring a long source at each key press would be felt.
const LONGEST_COLOURED = 60_000;

/** The coloured words of a source: `{ start, end, class }`, in order. */
export function words(kind, source) {
  if (source.length > LONGEST_COLOURED) return [];
  const patterns = KINDS.get(kind)?.words ?? [];
  const found = [];
  let at = 0;
  while (at < source.length) {
    const length = wordAt(patterns, source, at, found);
    at += Math.max(1, length);
  }
  return found;
}

/** A constraint as the checking endpoints take it: the text as it was typed, so that mistakes have a place in it. */
export function constraint(kind, source) {
  return { kind, source: kind === "choice" ? listed(source) : source };
}

/**
 * The fields of a chat request that carry a constraint. JSON goes as text as well: read into an object and written again, its keys could
 * change their order and its numbers their digits.
 */
export function chatFields(kind, source) {
  switch (kind) {
    case "json_schema":
      return { response_format: { type: kind, schema: source } };
    case "regex":
      return { response_format: { type: kind, pattern: source } };
    case "choice":
      return { response_format: { type: kind, choices: choices(source) } };
    case "structural_tag":
      return { structured_outputs: { structural_tag: source } };
    default:
      return { response_format: { type: kind, grammar: source } };
  }
}

/** The choices of a source. */
export function choices(source) {
  return JSON.parse(listed(source));
}

/** Choices are typed as a JSON array, or one a line. */
function listed(source) {
  if (source.trimStart().startsWith("[")) return source;
  return JSON.stringify(source.split("\n").filter((line) => line !== ""));
}

function wordAt(patterns, source, at, found) {
  for (const [name, pattern] of patterns) {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (!match || match[0] === "") continue;
    if (name) found.push({ start: at, end: at + match[0].length, class: name });
    return match[0].length;
  }
  return 1;
}

function json() {
  return [
    ["w-key", /"(?:[^"\\\n]|\\.)*"(?=\s*:)/y],
    ["w-string", STRING],
    ["w-number", /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y],
    ["w-word", /\b(?:true|false|null)\b/y],
    ["", /\s+/y],
  ];
}

function regex() {
  return [
    ["w-escape", /\\(?:[pP]\{[^}\n]*\}|u\{[^}\n]*\}|.)/sy],
    ["w-string", /\[(?:[^\]\\]|\\.)*\]?/sy],
    ["w-number", /\{\d+(?:,\d*)?\}/y],
    ["w-word", /[()|*+?^$]/y],
    ["", /[\p{L}\p{N}\s]+/uy],
  ];
}

function rules() {
  return [
    ["w-comment", /#[^\n]*/y],
    ["w-key", /[\p{L}\p{N}_.-]+(?=\s*::=)/uy],
    ["w-string", STRING],
    ["w-string", /'(?:[^'\\\n]|\\.)*'?/y],
    ["w-escape", /\[(?:[^\]\\\n]|\\.)*\]?/y],
    ["w-number", /\{\d+(?:,\d*)?\}/y],
    ["w-word", /::=|[|*+?()]/y],
    ["", /[\p{L}\p{N}_-]+|\s+/uy],
  ];
}

function weighted() {
  return [
    ["w-comment", /#[^\n]*/y],
    ["w-key", /[\p{L}\p{N}_'-]+(?=\s*(?:->|→|::=))/uy],
    ["w-string", STRING],
    ["w-string", /'(?:[^'\\\n]|\\.)*'?/y],
    ["w-escape", /\/(?:[^/\\\n]|\\.)+\/?/y],
    ["w-number", /\[[\d./eE+\s-]*\]?/y],
    ["w-word", /->|→|::=|[|ε]/y],
    ["", /[\p{L}\p{N}_]+|\s+/uy],
  ];
}

function lark() {
  return [
    ["w-comment", /(?:#|\/\/)[^\n]*/y],
    ["w-word", /%[a-z]+/y],
    ["w-key", /[?!]?[\p{L}\p{N}_-]+(?:\[[^\]\n]*\])?(?=\s*:)/uy],
    ["w-string", /"(?:[^"\\\n]|\\.)*"?i?/y],
    ["w-escape", /\/(?:[^/\\\n]|\\.)+\/[imsux]*/y],
    ["w-number", /~\d+(?:\.\.\d+)?|\{\d*(?:,\d*)?\}/y],
    ["w-word", /[|*+?()&~:]/y],
    ["", /[\p{L}\p{N}_-]+|\s+/uy],
  ];
}
