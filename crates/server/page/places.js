// Where things stand in a source text.
//
// The server tells a place in one of three ways: bytes, line and column, or a JSON pointer. The editor needs indexes into
// a JavaScript string, in which `é` is one unit, `𝄞` two, and either is several bytes.

// The pointers of a thousand levels are a megabyte of slashes, and no server takes such a schema.
const DEEPEST = 500;

/** The range `{ start, end }` of a diagnostic in the text, or `null` if it tells no place. */
export function placeOf(diagnostic, text, pointers) {
  if (Number.isInteger(diagnostic.start)) {
    const start = indexOfByte(text, diagnostic.start);
    return { start, end: Math.max(start, indexOfByte(text, diagnostic.end ?? diagnostic.start)) };
  }
  if (Number.isInteger(diagnostic.line)) {
    const start = indexOfLine(text, diagnostic.line, diagnostic.column ?? 1);
    return { start, end: wordEnd(text, start) };
  }
  return typeof diagnostic.pointer === "string" ? placeOfPointer(diagnostic.pointer, pointers) : null;
}

/** The range of the key and the value at a JSON pointer; of the nearest place above it if it is not in the text. */
export function placeOfPointer(pointer, pointers) {
  let at = pointer.replace(/^#/, "");
  while (at !== "" && !pointers.has(at)) at = at.slice(0, Math.max(0, at.lastIndexOf("/")));
  return pointers.get(at) ?? null;
}

/** The index in the string of a byte of its UTF-8 form. */
export function indexOfByte(text, byte) {
  let bytes = 0;
  let index = 0;
  while (index < text.length && bytes < byte) {
    const code = text.codePointAt(index);
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    index += code < 0x10000 ? 1 : 2;
  }
  return index;
}

/** The index of a line and a column, both from 1; columns are characters. */
export function indexOfLine(text, line, column) {
  let index = 0;
  for (let at = 1; at < line; at += 1) {
    const next = text.indexOf("\n", index);
    if (next < 0) return text.length;
    index = next + 1;
  }
  for (let at = 1; at < column && index < text.length && text[index] !== "\n"; at += 1) {
    index += text.codePointAt(index) < 0x10000 ? 1 : 2;
  }
  return index;
}

/**
 * The place of every value in a JSON text by its pointer: the range of key and value, or of the key alone if the value
 * has several lines. As far as the text can be read: one that is being typed has places up to its first mistake, and one that is
 * absurdly deep up to there.
 *
 *     placesOfPointers('{"a": [1]}').get("/a/0") = { start: 7, end: 8 }
 */
export function placesOfPointers(text) {
  const places = new Map();
  const open = []; // The arrays and objects around the place, so that depth costs no stack.
  let pointer = "";
  let key = null;
  const token = /\s*(?:("(?:[^"\\]|\\.)*")|([{}[\],:])|([^\s{}[\],:"]+))/sy;

  const name = () => {
    const above = open.at(-1);
    if (!above) return "";
    return `${above.pointer}/${above.isObject ? escaped(above.key) : above.index}`;
  };
  const note = (start, end) => {
    const from = key ? key.start : start;
    const isLong = text.slice(from, end).includes("\n");
    if (!places.has(pointer)) places.set(pointer, isLong ? { start: from, end: key ? key.end : start + 1 } : { start: from, end });
    key = null;
  };

  for (let match = token.exec(text); match; match = token.exec(text)) {
    const [whole, string, sign, word] = match;
    const end = token.lastIndex;
    const start = end - (string ?? sign ?? word ?? whole).length;
    const above = open.at(-1);
    if (string !== undefined && above?.isObject && above.wantsKey) {
      above.key = unquoted(string);
      above.wantsKey = false;
      key = { start, end };
      continue;
    }
    if (sign === ":") continue;
    if (sign === ",") {
      if (!above) break;
      above.wantsKey = above.isObject;
      above.index += 1;
      continue;
    }
    if (sign === "}" || sign === "]") {
      if (!above) break;
      open.pop();
      pointer = above.pointer;
      key = above.entry;
      places.delete(pointer);
      note(above.start, end);
      continue;
    }
    pointer = name();
    if (sign === "{" || sign === "[") {
      if (open.length >= DEEPEST) break;
      // While it is open its key stands for it; where it closes, the whole of it, if that is one line.
      if (!places.has(pointer)) places.set(pointer, key ?? { start, end });
      open.push({ pointer, isObject: sign === "{", wantsKey: sign === "{", key: "", index: 0, start, entry: key });
      key = null;
    } else {
      note(start, end);
    }
  }
  return places;
}

function escaped(key) {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

function unquoted(string) {
  try {
    return JSON.parse(string);
  } catch {
    return string.slice(1, -1);
  }
}

function wordEnd(text, start) {
  const rest = /^(?:[\p{L}\p{N}_-]+|[^\n])/u.exec(text.slice(start, start + 200));
  return start + (rest ? rest[0].length : 0);
}
