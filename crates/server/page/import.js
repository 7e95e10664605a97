// Schemas out of other files: OpenAPI documents, what Pydantic writes, tools and formats of requests.
//
// A schema that refers to its neighbours takes them along under `$defs`, so that it stands alone.

/** The schemas in a text: `[{ name, source }]`. Throws an `Error` that says what is wrong. */
export function schemasIn(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}. A document in YAML has to be converted first.`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("A schema or a document is an object.");
  const found = [];
  const shared = value.components?.schemas ?? (value.swagger ? value.definitions : undefined);
  if (value.openapi !== undefined || value.swagger !== undefined) {
    for (const [name, schema] of Object.entries(shared ?? {})) found.push({ name, schema: alone(schema, shared) });
    for (const [path, methods] of Object.entries(value.paths ?? {})) {
      for (const [method, operation] of Object.entries(methods ?? {})) {
        const schema = operation?.requestBody?.content?.["application/json"]?.schema;
        if (schema && !schema.$ref) found.push({ name: `${method.toUpperCase()} ${path}`, schema: alone(schema, shared ?? {}) });
      }
    }
    if (found.length === 0) throw new Error("The document has no schemas: neither in components.schemas nor in bodies of requests.");
  } else if (value.function?.parameters ?? value.parameters) {
    found.push({ name: value.function?.name ?? value.name ?? "function", schema: value.function?.parameters ?? value.parameters });
  } else if (value.json_schema?.schema ?? value.schema) {
    found.push({ name: value.json_schema?.name ?? value.name ?? "schema", schema: value.json_schema?.schema ?? value.schema });
  } else {
    found.push({ name: value.title ?? "schema", schema: value });
    // A model of Pydantic has those that it contains beside it.
    for (const [name, schema] of Object.entries(value.$defs ?? {})) found.push({ name, schema: { ...schema, $defs: value.$defs } });
  }
  return found.map(({ name, schema }) => ({ name, source: JSON.stringify(schema, null, 2) }));
}

/** A schema with what it refers to, and with references that lead there. */
function alone(schema, shared) {
  const needed = {};
  const rewrite = (value) => {
    if (Array.isArray(value)) return value.map(rewrite);
    if (typeof value !== "object" || value === null) return value;
    const copy = {};
    for (const [key, inner] of Object.entries(value)) {
      const name = key === "$ref" && typeof inner === "string" ? /^#\/(?:components\/schemas|definitions)\/(.+)$/.exec(inner)?.[1] : undefined;
      if (name === undefined) copy[key] = rewrite(inner);
      else {
        copy.$ref = `#/$defs/${name}`;
        const plain = decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~");
        if (!Object.hasOwn(needed, plain) && Object.hasOwn(shared, plain)) {
          needed[plain] = true; // It may refer to itself.
          needed[plain] = rewrite(shared[plain]);
        }
      }
    }
    return copy;
  };
  const own = rewrite(schema);
  return Object.keys(needed).length > 0 ? { ...own, $defs: { ...own.$defs, ...needed } } : own;
}
