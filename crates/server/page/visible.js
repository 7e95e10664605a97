// Characters that cannot be seen, made visible.
//
// Text of models and of strangers holds line breaks, NULs, characters that turn the direction of writing, and marks that
// cling to whatever stands before them. Shown as they are, they hide, or make other text look like what it is not. So a text is cut into
// *runs* first: what is shown as it is, and what is shown by a sign or by its number.
//
//     runs("a\u0000b c") = [plain "a", code "U+0000", plain "b", sign "·", plain "c"]

import { element } from "./dom.js";

const SIGNS = new Map([["\n", "⏎"], ["\t", "⇥"], [" ", "·"]]);

// Controls, formats (all bidi characters are among them), lone surrogates, private use, unassigned, separators, and what is drawn
// as nothing.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/u;
const CLINGS = /^\p{M}/u;
const BLANKS = new Set([" ", "\n", "\t", "\r"]);

/** The text as runs `{ kind, text, name }`: `plain`, `sign` (one character of another shape) or `code` (its number). */
export function runs(text) {
  const found = [];
  let plain = "";
  const flush = () => {
    if (plain) found.push({ kind: "plain", text: plain });
    plain = "";
  };
  for (const character of text) {
    const sign = SIGNS.get(character);
    if (sign) {
      flush();
      found.push({ kind: "sign", text: sign, name: codeOf(character) });
    } else if (UNSEEN.test(character)) {
      flush();
      found.push({ kind: "code", text: codeOf(character), name: codeOf(character) });
    } else {
      plain += character;
    }
  }
  flush();
  return found;
}

/** The nodes that show a text. */
export function shown(text) {
  return runs(text).map((run) => {
    if (run.kind !== "plain") return element("span", { class: run.kind, title: run.name }, run.text);
    // A mark at the beginning would cling to something that is not part of this text.
    return document.createTextNode(CLINGS.test(run.text) ? `◌${run.text}` : run.text);
  });
}

/** The nodes that show a sentence: blanks are blanks, and what stands in backticks is code. */
export function prose(text) {
  const parts = text.split(/`(`|[^`]+)`/);
  return parts.flatMap((part, index) => (index % 2 === 1 ? [element("code", {}, shown(part))] : shown(part).map(plainBlank)));
}

/** The nodes that show a source: its blanks are blanks. */
export function shownSource(text) {
  return shown(text).map(plainBlank);
}

/** The nodes that show a token: its text, or its bytes where these are only a part of a character. */
export function shownToken(token) {
  if (isPartOfCharacter(token)) {
    const bytes = token.bytes.match(/../g) ?? [];
    return [element("span", { class: "code", title: "bytes that are no whole character" }, bytes.join(" ").toUpperCase())];
  }
  return token.text === "" ? [element("span", { class: "code" }, "empty")] : shown(token.text);
}

/** Whether a token has bytes that are no text by themselves. */
export function isPartOfCharacter(token) {
  return token.text.includes("\ufffd") && typeof token.bytes === "string" && !token.bytes.toLowerCase().includes("efbfbd");
}

/** One line about what in a text cannot be seen: "U+202E at 5, U+0000 at 9"; empty if there is nothing. */
export function unseen(text, atMost = 4) {
  const found = [];
  let place = 0;
  let more = 0;
  for (const character of text) {
    place += 1;
    if (BLANKS.has(character) || !UNSEEN.test(character)) continue;
    if (found.length < atMost) found.push(`${codeOf(character)} at ${place}`);
    else more += 1;
  }
  if (more > 0) found.push(`and ${more} more`);
  return found.join(", ");
}

function plainBlank(node) {
  return node.nodeType === Node.ELEMENT_NODE && node.textContent === "·" ? document.createTextNode(" ") : node;
}

function codeOf(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
