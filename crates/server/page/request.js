// The request for an answer: for the page itself, and as people take it home.

import { chatFields, choices, reading } from "./kinds.js";

/** The body of a chat request. `limited` is `{ kind, source }`, or nothing for an answer without a constraint. */
export function chatRequest({ model, prompt, temperature, maxTokens, seed, finish, mass, whitespace, keyOrder }, limited) {
  const request = { ...(model === null ? {} : { model }), messages: [{ role: "user", content: prompt }], temperature, max_tokens: maxTokens };
  if (seed !== null) request.seed = seed;
  if (!limited) return request;
  const own = { ...reading(limited.kind, { whitespace, keyOrder }), finish, ...(mass ? { mass } : {}) };
  return { ...request, ...chatFields(limited.kind, limited.source), maskwright: own };
}

/** A command for a shell. */
export function asCurl(origin, request) {
  const body = JSON.stringify(request, null, 2).replaceAll("'", "'\\''");
  return `curl ${origin}/v1/chat/completions -H 'Content-Type: application/json' -d '${body}'\n`;
}

// What the SDK has arguments for; the rest goes along as it is.
const KNOWN = new Set(["model", "messages", "temperature", "max_tokens", "seed"]);

/** A program for the SDK of OpenAI. */
export function asPython(origin, request) {
  const known = Object.entries({ model: "any", ...request }).filter(([name]) => KNOWN.has(name));
  const others = Object.entries(request).filter(([name]) => !KNOWN.has(name));
  const lines = known.map(([name, value]) => `    ${name}=${python(value, 4)},`);
  if (others.length > 0) lines.push(`    extra_body=${python(Object.fromEntries(others), 4)},`);
  return [
    "from openai import OpenAI", "", `client = OpenAI(base_url=${python(`${origin}/v1`, 0)}, api_key="none")`,
    "answer = client.chat.completions.create(", ...lines, ")", "print(answer.choices[0].message.content)", "",
  ].join("\n");
}

/** A program in Rust, for whoever wants the constraint and not the server. */
export function asRust({ kind, source, whitespace, keyOrder }) {
  const make = { json_schema: "json_schema", regex: "regex", ebnf: "ebnf", lark: "lark", gbnf: "gbnf", pcfg: "pcfg", structural_tag: "structural_tag" }[kind];
  const text = raw(source);
  const constraint = kind === "choice" ? `Constraint::choice([${choices(source).map(raw).join(", ")}])` : `Constraint::${make}(${text})`;
  const style = RUST_SPACE.get(whitespace);
  const isSchema = kind === "json_schema" || kind === "structural_tag";
  const settings = isSchema ? [
    ...(style ? [`    options.json_schema.whitespace = Whitespace::${style};`] : []),
    ...(keyOrder === "any" ? ["    options.json_schema.key_order = KeyOrder::Any;"] : []),
  ] : [];
  const names = [...(settings.some((line) => line.includes("KeyOrder::")) ? ["KeyOrder"] : []), ...(settings.some((line) => line.includes("Whitespace::")) ? ["Whitespace"] : [])];
  const uses = names.length > 0 ? [`    json_schema::${names.length > 1 ? `{${names.join(", ")}}` : names[0]},`] : [];
  return [
    "//! The masks of a constraint. Cargo.toml needs the crates maskwright and maskwright-tokenizers.", "",
    "use maskwright::{", "    Compiler, Constraint, Options,", ...uses, "    regex::Dialect,", "};", "",
    "fn main() -> Result<(), Box<dyn std::error::Error>> {",
    '    let tokenizer = maskwright_tokenizers::load("tokenizer.json")?;',
    "    let vocabulary = tokenizer.vocabulary().clone();",
    "    let mut mask = vec![0; vocabulary.size().div_ceil(32)];",
    `    let ${settings.length > 0 ? "mut " : ""}options = Options::default().with_dialect(Dialect::Ecma);`,
    ...settings,
    "    let compiler = Compiler::with_options(vocabulary, options);",
    `    let constraint = ${constraint};`,
    "    let mut matcher = compiler.compile(&constraint)?.matcher();",
    "    matcher.fill_mask(&mut mask)?; // one bit for each token that may come next",
    "    Ok(())", "}", "",
  ].join("\n");
}

const RUST_SPACE = new Map([["tidy", "Tidy"], ["compact", "Compact"], ["spaced", "Spaced"], ["natural", "Natural"], ["indent:2", "Indent(2)"]]);

/** A string that needs no escapes: with as many signs around it as it takes. */
function raw(text) {
  let signs = "";
  while (text.includes(`"${signs}`)) signs += "#";
  return `r${signs}"${text}"${signs}`;
}

/** A JSON value as Python writes it. */
function python(value, indent) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return typeof value === "string" ? quoted(value) : String(value);
  const inner = " ".repeat(indent + 4);
  const items = Array.isArray(value)
    ? value.map((item) => python(item, indent + 4))
    : Object.entries(value).map(([name, item]) => `${quoted(name)}: ${python(item, indent + 4)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return items.length === 0 ? open + close : `${open}\n${items.map((item) => `${inner}${item},\n`).join("")}${" ".repeat(indent)}${close}`;
}

/** JSON and Python have the same strings, but for halves of a character, which JSON may escape alone. */
function quoted(text) {
  return JSON.stringify(text);
}
