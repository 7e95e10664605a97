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
]);

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

/**
 * A constraint as every endpoint takes it, shaped like `response_format`. A schema goes as the text that was typed: read into an object and
 * written again, its keys could change their order and its numbers their digits, and errors would lose their places.
 */
export function constraint(kind, source) {
  switch (kind) {
    case "json_schema":
      return { type: kind, schema: source };
    case "regex":
      return { type: kind, pattern: source };
    case "choice":
      return { type: kind, choices: choices(source) };
    case "structural_tag":
      return tag(source);
    default:
      return { type: kind, grammar: source };
  }
}

/** A list of choices: a JSON array, or one a line. */
export function choices(source) {
  if (source.trimStart().startsWith("[")) {
    const list = JSON.parse(source);
    if (list.every((choice) => typeof choice === "string")) return list;
    throw new Error("Each choice must be a string.");
  }
  return source.split("\n").filter((line) => line !== "");
}

function tag(source) {
  const value = JSON.parse(source);
  if (value?.type === "structural_tag") return value;
  throw new Error('A structural tag is an object whose "type" is "structural_tag".');
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
