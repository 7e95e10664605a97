// A rejection in the terms of the document: where in the schema it happened, what is expected there, and what came instead.
//
//     told(schema, '{"age": ', '"old"}') = "/properties/age: an integer is expected, not a string"
//
// Only what the schema says plainly at that place is told. Where combinators decide, or the place is inside a string or a
// number, there is no sentence, and the reason of the engine stands alone.

const A = { object: "an object", array: "an array", string: "a string", number: "a number", integer: "an integer", boolean: "a boolean", null: "null" };
const DEEPEST = 100;

/** What is wrong, in one sentence, or `null`. `accepted` is the text as far as it fits, `rest` what follows it. */
export function told(source, accepted, rest) {
  let schema;
  try {
    schema = JSON.parse(source);
  } catch {
    return null;
  }
  const place = placeIn(accepted);
  if (!place) return null;
  const found = schemaAt(schema, place.path);
  if (!found) return null;
  const at = found.pointer || "/";
  if (place.expects === "value") return wrongValue(found.schema, at, rest.trimStart());
  if (place.expects === "number") {
    const isFraction = typesOf(found.schema)?.join() === "integer" && /^[.eE]/.test(rest);
    return isFraction ? `${at}: an integer is expected, not a number with a fraction` : null;
  }
  if (place.expects === "key") return wrongKey(found.schema, at, (place.begun ?? "") + (place.begun === null ? rest.trimStart() : rest), place.keys);
  return null;
}

function wrongValue(schema, at, rest) {
  const kind = kindOf(rest);
  const types = typesOf(schema);
  if (!kind || !types) return null;
  const fits = types.some((type) => type === kind || (type === "integer" && kind === "number"));
  if (fits) return null;
  return `${at}: ${types.map((type) => A[type]).join(" or ")} is expected, not ${A[kind]}`;
}

function wrongKey(schema, at, rest, keys) {
  if (typeof schema.properties !== "object" || schema.properties === null) return null;
  if (rest.startsWith("}")) {
    const missing = (Array.isArray(schema.required) ? schema.required : []).filter((name) => !keys.includes(name));
    return missing.length > 0 ? `${at}: ${missing.map((name) => JSON.stringify(name)).join(", ")} must still come` : null;
  }
  const key = /^"(?:[^"\\]|\\.)*"/s.exec(rest)?.[0];
  if (!key) return null;
  const name = parsed(key);
  if (name === undefined) return null;
  if (keys.includes(name)) return `${at}: ${key} stands there already`;
  const isClosed = schema.additionalProperties === false && schema.patternProperties === undefined;
  if (Object.hasOwn(schema.properties, name)) return `${at}: ${key} may not come here, because keys come in the order of the schema`;
  return isClosed ? `${at}: ${key} is not one of its properties` : null;
}

/** Where a beginning of a document ends: the path, and what is expected there; `null` if that cannot be told. */
function placeIn(text) {
  const stack = [];
  let at = 0;
  let expects = "value";
  const path = () => stack.map((level) => (level.isArray ? level.index : level.key));
  while (at < text.length) {
    const rest = text.slice(at);
    const space = /^\s+/.exec(rest);
    if (space) {
      at += space[0].length;
      continue;
    }
    const level = stack.at(-1);
    const sign = rest[0];
    if (expects === "value") {
      if (sign === "{") {
        if (stack.length >= DEEPEST) return null;
        stack.push({ isArray: false, keys: [], key: null });
        expects = "key";
        at += 1;
      } else if (sign === "[") {
        if (stack.length >= DEEPEST) return null;
        stack.push({ isArray: true, index: 0 });
        at += 1;
      } else if (sign === "]" && level?.isArray) {
        stack.pop();
        expects = "next";
        at += 1;
      } else {
        const value = /^(?:"(?:[^"\\]|\\.)*"|true|false|null|-?[0-9.eE+-]+)/s.exec(rest)?.[0];
        if (!value) return null;
        // A number may go on.
        if (/^[-0-9]/.test(value) && at + value.length === text.length) return { path: path(), expects: "number" };
        expects = "next";
        at += value.length;
      }
    } else if (expects === "key") {
      if (sign === "}" && level.keys.length === 0) {
        stack.pop();
        expects = "next";
        at += 1;
        continue;
      }
      const key = /^"(?:[^"\\]|\\.)*"/s.exec(rest)?.[0];
      if (!key) return sign === '"' ? { path: path().slice(0, -1), expects: "key", keys: level.keys, begun: rest } : null;
      level.key = parsed(key);
      level.keys.push(level.key);
      at += key.length;
      expects = "colon";
    } else if (expects === "colon") {
      if (sign !== ":") return null;
      expects = "value";
      at += 1;
    } else {
      if (!level) return null;
      if (sign === ",") {
        if (level.isArray) level.index += 1;
        expects = level.isArray ? "value" : "key";
      } else if (sign === (level.isArray ? "]" : "}")) {
        stack.pop();
      } else return null;
      at += 1;
    }
  }
  const level = stack.at(-1);
  if (expects === "key") return { path: path().slice(0, -1), expects, keys: level.keys, begun: null };
  // Behind a value an object may go on or end.
  if (expects === "next" && level && !level.isArray) return { path: path().slice(0, -1), expects: "key", keys: level.keys, begun: null };
  return expects === "value" ? { path: path(), expects } : null;
}

/** The schema of a place, with its pointer; `null` where it is not plain which it is. */
function schemaAt(root, path) {
  let [schema, pointer] = [root, ""];
  const follow = () => {
    for (let steps = 0; typeof schema?.$ref === "string"; steps += 1) {
      if (steps > 20 || !schema.$ref.startsWith("#")) return false;
      pointer = decodeURIComponent(schema.$ref.slice(1));
      schema = pointer.split("/").slice(1).reduce((value, part) => value?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], root);
    }
    return typeof schema === "object" && schema !== null;
  };
  if (!follow()) return null;
  for (const step of path) {
    if (["anyOf", "oneOf", "allOf", "if"].some((word) => word in schema)) return null;
    if (typeof step === "string" && Object.hasOwn(schema.properties ?? {}, step)) {
      schema = schema.properties[step];
      pointer += `/properties/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    } else if (typeof step === "string" && typeof schema.additionalProperties === "object" && schema.patternProperties === undefined) {
      schema = schema.additionalProperties;
      pointer += "/additionalProperties";
    } else if (typeof step === "number" && Array.isArray(schema.prefixItems) && step < schema.prefixItems.length) {
      schema = schema.prefixItems[step];
      pointer += `/prefixItems/${step}`;
    } else if (typeof step === "number" && typeof schema.items === "object" && !Array.isArray(schema.items)) {
      schema = schema.items;
      pointer += "/items";
    } else return null;
    if (!follow()) return null;
  }
  return { schema, pointer };
}

function typesOf(schema) {
  const types = typeof schema.type === "string" ? [schema.type] : schema.type;
  return Array.isArray(types) && types.length > 0 && types.every((type) => Object.hasOwn(A, type)) ? types : null;
}

function kindOf(text) {
  const kinds = [[/^"/, "string"], [/^\{/, "object"], [/^\[/, "array"], [/^-?[0-9]/, "number"], [/^(?:true|false)/, "boolean"], [/^null/, "null"]];
  return kinds.find(([pattern]) => pattern.test(text))?.[1] ?? null;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
