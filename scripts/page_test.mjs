#!/usr/bin/env node
// The page in a real browser, against a running server.
//
//     make test-page                                           # starts a server, too
//     npm install --prefix target/page-test playwright-core    # once; a Chromium of the system is used
//     node scripts/page_test.mjs http://127.0.0.1:8000 target/page-test
//
// The first argument is the server, the second the folder for screenshots. `CHROMIUM` names the browser if it is not
// /usr/bin/chromium. It ends with "N passed, N failed", and with 1 if anything failed.

import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const base = (process.argv[2] ?? "http://127.0.0.1:8000").replace(/\/$/, "");
const folder = resolve(process.argv[3] ?? "target/page-test");
const HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>\u0000\u202Eabc\u200B\u0301';
const SCHEMA = '{\n  "type": "object",\n  "properties": { "age": { "type": "integer" } },\n  "required": ["age"],\n  "additionalProperties": false\n}';

const checks = {
  "Characters that cannot be seen are shown": async ({ page }) => {
    const [shown, hidden] = await page.evaluate(async () => {
      const { runs, unseen } = await import("/static/visible.js");
      return [runs("a\u0000b\u202Ec \n").map((run) => run.text), unseen("ab\u202E\n\u0007")];
    });
    equal(shown.join("|"), "a|U+0000|b|U+202E|c|·|⏎");
    equal(hidden, "U+202E at 3, U+0007 at 5");
  },

  "Places: bytes, lines and pointers": async ({ page }) => {
    const found = await page.evaluate(async () => {
      const { indexOfByte, indexOfLine, placesOfPointers, placeOfPointer } = await import("/static/places.js");
      const text = '{"é𝄞": 1,\n "a/b": {"x": [true, {"y~": "]}"}]}, "open": [1, 2';
      const places = placesOfPointers(text);
      const at = (pointer) => {
        const place = placeOfPointer(pointer, places);
        return place && text.slice(place.start, place.end);
      };
      const deep = placesOfPointers("[".repeat(200_000));
      return [indexOfByte("é𝄞x", 6), indexOfLine("ab\né𝄞x", 2, 3), at("/é𝄞"), at("/a~1b/x/0"), at("/a~1b/x/1/y~0"), at("/open/1"), at("/a~1b/no/where"), deep.size <= 500];
    });
    equal(JSON.stringify(found), JSON.stringify([3, 6, '"é𝄞": 1', "true", '"y~": "]}"', "2", '"a/b": {"x": [true, {"y~": "]}"}]}', true]));
  },

  "Links carry the state, and bad ones do no harm": async ({ page }) => {
    const found = await page.evaluate(async () => {
      const { pack, unpack } = await import("/static/share.js");
      const state = { kind: "regex", source: "é\u0000\u202E", text: "x".repeat(5000), temperature: 0.5, seed: null };
      const same = JSON.stringify(await unpack(`#${await pack(state)}`)) === JSON.stringify(state);
      const bomb = await pack({ kind: "regex", source: "x".repeat(4 << 20) });
      const wrong = await unpack(await pack({ kind: "__proto__", source: 3, temperature: 99, tab: "check" }));
      return [same, await unpack(bomb), await unpack("#1.!!!"), await unpack("#top"), await unpack(await pack([])), wrong];
    });
    equal(JSON.stringify(found), JSON.stringify([true, null, null, null, {}, { tab: "check" }]));
  },

  "Events, however the stream is cut": async ({ page }) => {
    const found = await page.evaluate(async () => {
      const { events } = await import("/static/api.js");
      const text = ": hello\r\n\r\ndata: {\"a\": \"é\"}\r\n\r\ndata:x\ndata: y\n\nevent: z\r\rdata: last";
      const bytes = new TextEncoder().encode(text);
      const answers = new Set();
      for (let cut = 1; cut < bytes.length; cut += 1) {
        const stream = new ReadableStream({
          start(controller) {
            controller.enqueue(bytes.slice(0, cut));
            controller.enqueue(bytes.slice(cut));
            controller.close();
          },
        });
        const found = [];
        for await (const data of events(stream)) found.push(data);
        answers.add(JSON.stringify(found));
      }
      return [...answers];
    });
    equal(found.join(), JSON.stringify(['{"a": "é"}', "x\ny", "last"]));
  },

  "Every example compiles and is judged as it says": async ({ page }) => {
    const examples = await (await fetch(`${base}/static/examples.json`)).json();
    for (const [index, example] of examples.entries()) {
      await page.selectOption("#example", String(index));
      await settled(page);
      const problems = await page.locator("#problems:not([hidden]) li.error").allTextContents();
      if (problems.some((problem) => problem.includes("not available yet"))) {
        console.log(`  skipped: "${example.name}": ${problems[0]}`);
        continue;
      }
      equal(problems.join(), "", example.name);
      equal(await verdictOf(page), example.verdict, example.name);
    }
  },

  "A mistake in a schema is underlined at its place": async ({ page }) => {
    await write(page, "json_schema", '{\n  "type": "object",\n  "minProperties": -1\n}');
    await page.waitForSelector("#problems li.error");
    equal(await page.locator(".paint .error").first().textContent(), '"minProperties"');
    equal(await page.locator(".gutter .error").textContent(), "3\n");
    await page.locator("#problems button").first().click();
    const selected = await page.evaluate(() => {
      const area = document.getElementById("source");
      return area.value.slice(area.selectionStart, area.selectionEnd);
    });
    contains(selected, '"minProperties"');
    await shot(page, "mistake");
    await write(page, "ebnf", 'root ::= "a" b\nb ::= "x');
    await page.waitForSelector("#problems li.error");
    equal(await page.locator(".gutter .error").first().textContent(), "2\n");
    await write(page, "json_schema", SCHEMA);
    equal(await page.locator("#problems li").count(), 0);
  },

  "Each language has a draft of its own": async ({ page }) => {
    await write(page, "json_schema", SCHEMA);
    // Nothing was typed in this one: it begins with an example.
    await page.selectOption("#kind", "gbnf");
    await settled(page);
    equal(await page.locator("#problems li.error").count(), 0);
    if ((await page.inputValue("#source")) === "") throw new Error("There is no draft.");
    await write(page, "ebnf", 'root ::= "mine"');
    await page.selectOption("#kind", "json_schema");
    equal(await page.inputValue("#source"), SCHEMA);
    equal(await page.locator("#reading").isVisible(), true);
    await page.selectOption("#kind", "ebnf");
    equal(await page.inputValue("#source"), 'root ::= "mine"');
    equal(await page.locator("#reading").isVisible(), false);
  },

  "White space and the order of keys can be chosen": async ({ page }) => {
    await write(page, "json_schema", '{"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"], "additionalProperties": false}');
    const fits = async (text) => {
      await page.fill("#text", text);
      await settled(page);
      return (await page.locator("#judgement").textContent()).includes("Complete");
    };
    equal(await fits('{"a": 1, "b": 2}'), true);
    equal(await fits('{"b": 2, "a": 1}'), false);
    await page.selectOption("#key-order", "any");
    await settled(page);
    equal(await fits('{"b": 2, "a": 1}'), true);
    await page.selectOption("#whitespace", "compact");
    await settled(page);
    equal(await fits('{"b": 2, "a": 1}'), false);
    equal(await fits('{"b":2,"a":1}'), true);
    await page.selectOption("#whitespace", "tidy");
    await page.selectOption("#key-order", "schema");
    await settled(page);
  },

  "A request can be taken home": async ({ page }) => {
    const [curl, python] = await page.evaluate(async () => {
      const { asCurl, asPython, chatRequest } = await import("/static/request.js");
      const settings = { model: "m", prompt: "it's \"x\"", temperature: 0, maxTokens: 9, seed: null, finish: true, whitespace: "tidy", keyOrder: "any" };
      const request = chatRequest(settings, { kind: "json_schema", source: '{"type": "boolean"}' });
      return [asCurl("http://h", request), asPython("http://h", request)];
    });
    contains(curl, "curl http://h/v1/chat/completions");
    contains(curl, "it'\\''s");
    contains(python, 'base_url="http://h/v1"');
    contains(python, '"finish": True');
    contains(python, "max_tokens=9");
    // The program in Rust is one that is compiled with the tests.
    const rust = await page.evaluate(async () => {
      const { asRust } = await import("/static/request.js");
      return asRust({ kind: "json_schema", source: '{"type": "boolean"}', whitespace: "tidy", keyOrder: "any" });
    });
    equal(rust, await readFile("crates/server/examples/exported.rs", "utf8"));
    const choice = await page.evaluate(async () => (await import("/static/request.js")).asRust({ kind: "choice", source: 'a "#"\nb' }));
    contains(choice, 'Constraint::choice([r##"a "#""##, r"b"])');
  },

  "The first bad token is red, with a reason": async ({ page }) => {
    await write(page, "json_schema", SCHEMA);
    await page.fill("#text", '{"age": x}');
    await settled(page);
    contains(await page.locator("#tokens .bad").textContent(), "x");
    equal(await page.locator("#tokens .bad").count(), 1);
    contains(await page.locator("#judgement").textContent(), "✗ Token");
    if ((await page.locator("#tokens .good").count()) < 2) throw new Error("What stands before it is not green.");
    await shot(page, "bad-token");
    await page.fill("#text", '{"age": 7}');
    await page.waitForFunction(() => document.getElementById("judgement").textContent.includes("Complete"));
    equal(await page.locator("#tokens .bad").count(), 0);
  },

  "A rejection is told in the terms of the document": async ({ page }) => {
    const found = await page.evaluate(async () => {
      const { told } = await import("/static/document.js");
      const schema = JSON.stringify({
        type: "object", required: ["age"], additionalProperties: false,
        properties: { age: { type: "integer" }, tags: { type: "array", items: { $ref: "#/$defs/tag" } }, any: { anyOf: [{ type: "null" }] } },
        $defs: { tag: { type: ["string", "null"] } },
      });
      return [
        told(schema, '{"age": ', '"old"}'), told(schema, '{"age": 1', ".5}"), told(schema, '{"age": 1, "tags": ["a", ', "7]"), told(schema, "{", "}"),
        told(schema, '{"age": 1, "', 'agf": 2}'), told(schema, '{"age": 1, "a', 'ge": 2}'), told(schema, '{"any": ', "1"), told("[", "{", "1"), told(schema, "", "[1]"),
      ];
    });
    const expected = [
      "/properties/age: an integer is expected, not a string", "/properties/age: an integer is expected, not a number with a fraction",
      "/$defs/tag: a string or null is expected, not a number", '/: "age" must still come', '/: "agf" is not one of its properties',
      '/: "age" stands there already', null, null, "/: an object is expected, not an array",
    ];
    equal(JSON.stringify(found), JSON.stringify(expected));
    await write(page, "json_schema", SCHEMA);
    await page.fill("#text", '{"age": "old"}');
    await settled(page);
    contains(await page.locator("#judgement").textContent(), "/properties/age: an integer is expected, not a string.");
  },

  "Why not? On any token": async ({ page }) => {
    await write(page, "regex", "(yes|no) [0-9]");
    await page.fill("#text", "no ");
    await settled(page);
    await page.fill("#next-query", "x");
    await page.waitForSelector("#why:not([hidden])");
    contains(await page.locator("#why").textContent(), "Why not x?");
    await page.fill("#next-query", "7");
    await page.waitForSelector("#why[hidden]", { state: "attached" });
    await page.fill("#next-query", "");
  },

  "Schemas are imported": async ({ page }) => {
    const openapi = { openapi: "3.1.0", components: { schemas: { Cat: { type: "object", properties: { owner: { $ref: "#/components/schemas/Person" } } }, Person: { type: "string" } } } };
    await page.click("#import");
    await page.fill("#import-text", "openapi: 3.1.0");
    contains(await page.locator("#import-wrong").textContent(), "not JSON");
    await page.fill("#import-text", JSON.stringify(openapi));
    await page.selectOption("#import-name", { label: "Cat" });
    await page.click("#import-form button[type=submit]");
    await settled(page);
    equal(JSON.stringify(JSON.parse(await page.inputValue("#source"))), '{"type":"object","properties":{"owner":{"$ref":"#/$defs/Person"}},"$defs":{"Person":{"type":"string"}}}');
    equal(await page.locator("#problems li.error").count(), 0);
    const names = await page.evaluate(async () => {
      const { schemasIn } = await import("/static/import.js");
      const pydantic = { title: "Cat", type: "object", properties: { owner: { $ref: "#/$defs/Person" } }, $defs: { Person: { type: "string" } } };
      const all = [pydantic, { type: "function", function: { name: "f", parameters: { type: "object" } } }, { type: "json_schema", json_schema: { name: "n", schema: true } }];
      return all.map((one) => schemasIn(JSON.stringify(one)).map(({ name }) => name).join("+")).join();
    });
    equal(names, "Cat+Person,f,n");
  },

  "White space is one entry, and pictures fit": async ({ page }) => {
    await write(page, "json_schema", '{"type": "object"}');
    await page.selectOption("#whitespace", "flexible");
    await page.fill("#text", "{");
    await settled(page);
    contains(await page.locator("#next .blanks summary").textContent(), "of white space");
    equal(await page.locator("#next .blanks .option").first().isVisible(), false);
    await page.click("#next .blanks summary");
    equal(await page.locator("#next .blanks .option").first().isVisible(), true);
    await page.selectOption("#whitespace", "tidy");
    await write(page, "regex", "(alpha|beta|gamma|delta) [0-9]{1,12}");
    await page.click("#tab-network");
    const [wide, tall] = await page.evaluate(() => {
      const root = document.getElementById("network");
      return [root.scrollWidth - root.clientWidth, root.scrollHeight - root.clientHeight];
    });
    if (wide > 1 || tall > 1) throw new Error(`The picture sticks out by ${wide} and ${tall} pixels.`);
    await page.click("#tab-coverage");
  },

  "What may come next can be searched and put into the text": async ({ page }) => {
    await write(page, "regex", "(yes|no) [0-9]");
    await page.fill("#text", "no ");
    await settled(page);
    await page.fill("#next-query", "7");
    await page.waitForFunction(() => document.querySelectorAll("#next .option").length === 1);
    await page.press("#next-query", "ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.getElementById("judgement").textContent.includes("Complete"));
    equal(await page.inputValue("#text"), "no 7");
    // What was rejected makes room.
    await write(page, "regex", "[0-9]{2}");
    await page.fill("#text", "1x");
    await settled(page);
    await page.fill("#next-query", "3");
    await page.waitForFunction(() => [...document.querySelectorAll("#next .option")].every((option) => option.textContent === "3"));
    await page.press("#next-query", "Enter");
    await page.waitForFunction(() => document.getElementById("judgement").textContent.includes("Complete"));
    equal(await page.inputValue("#text"), "13");
  },

  "Hostile text is text": async ({ page }) => {
    await write(page, "regex", "(?s).*");
    await page.fill("#text", HOSTILE);
    await settled(page);
    await write(page, "regex", HOSTILE);
    equal(await page.evaluate(() => [window.broken, document.images.length, document.querySelectorAll("body script").length].join()), ",0,0");
    await write(page, "regex", "(?s).*");
    contains(await page.locator("#hidden-characters").textContent(), "U+202E");
    const shown = await page.locator("#tokens").textContent();
    contains(shown, "U+0000");
    // A tokenizer may know the characters, or cut them into bytes.
    for (const sign of ["U+202E", "U+200B"]) if (!shown.includes(sign)) contains(shown, "E2 80");
  },

  "Rules are listed and drawn": async ({ page }) => {
    await write(page, "ebnf", 'root ::= expr\nexpr ::= "x" | "(" expr ")" tail\ntail ::= "." expr | ""');
    await page.click("#tab-rules");
    contains(await page.locator("#rules").textContent(), "expr");
    await page.click("#tab-network");
    if ((await page.locator("#network svg .node").count()) < 2) throw new Error("The network has no nodes.");
    await shot(page, "network");
    const fits = await page.evaluate(() => {
      const svg = document.querySelector("#network svg");
      const [box, view] = [svg.getBBox(), svg.viewBox.baseVal];
      return box.x >= view.x && box.y >= view.y && box.x + box.width <= view.x + view.width && box.y + box.height <= view.y + view.height;
    });
    if (!fits) throw new Error("Something of the network is cut off.");
    await page.click("#tab-coverage");
  },

  "A shared link shows the same page": async ({ page, browser }) => {
    await write(page, "regex", "[a-z]{3}-é");
    await page.fill("#text", "abc-");
    await page.click("#tab-generate");
    await page.fill("#prompt", "Say something.");
    await page.click("#share");
    await page.waitForFunction(() => location.hash.length > 3);
    const other = await open(browser, { url: page.url() });
    equal(await other.page.inputValue("#source"), "[a-z]{3}-é");
    equal(await other.page.inputValue("#text"), "abc-");
    equal(await other.page.inputValue("#prompt"), "Say something.");
    equal(await other.page.inputValue("#kind"), "regex");
    equal(await other.page.getAttribute("#tab-generate", "aria-selected"), "true");
    await page.click("#tab-check");
    await other.context.close();
  },

  "The model writes under the constraint, and beside it without": async ({ page }) => {
    await page.selectOption("#example", "0");
    await settled(page);
    await page.click("#tab-generate");
    await page.check("#compare");
    await page.fill("#max-tokens", "60");
    await page.fill("#seed", "7");
    await page.press("#prompt", "Control+Enter");
    await page.waitForSelector("#stop:not([hidden])");
    await page.waitForSelector("#go:not([hidden])", { timeout: 240_000 });
    equal(await page.locator(".answer").count(), 2);
    const states = await page.locator(".answer .chip").allTextContents();
    if (!["fits the constraint", "cut off at the token limit"].includes(states[0])) throw new Error(`The first answer: ${states[0]}`);
    equal(await page.locator(".answer").first().locator(".bad").count(), 0);
    contains(await page.locator(".answer .numbers").first().textContent(), "tokens/s");
    // Tokens without a choice are marked, and counted.
    const forced = await page.locator(".answer").first().locator(".output .token.forced").count();
    if (forced === 0) throw new Error("No token is marked as forced.");
    contains(await page.locator(".answer .numbers").first().textContent(), `${forced} forced`);
    // A small model without a constraint writes no JSON: its first bad token is marked, with the reason.
    const free = page.locator(".answer").nth(1);
    equal(await free.locator(".chip").textContent(), "breaks the constraint");
    equal(await free.locator(".output .bad").count(), 1);
    contains(await free.locator(".reason").textContent(), "Token ");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.locator(".answer").first().getByRole("button", { name: "Copy", exact: true }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    if (!copied.startsWith("{")) throw new Error(`What was copied is ${JSON.stringify(copied)}.`);
    await shot(page, "generate");
  },

  "An answer is finished in time, or cut off": async ({ page }) => {
    await page.selectOption("#example", "0");
    await settled(page);
    await page.click("#tab-generate");
    await page.uncheck("#compare");
    await page.fill("#seed", "7");
    // Twelve tokens are too few for any answer, and would be refused where it has to be finished.
    for (const [isFinished, tokens, states] of [[false, "12", ["cut off at the token limit"]], [true, "60", ["fits, squeezed into the tokens", "fits the constraint"]]]) {
      await page.fill("#max-tokens", tokens);
      await page.setChecked("#finish", isFinished);
      await page.click("#go");
      await page.waitForFunction(() => !["", "waiting", "writing"].includes(document.querySelector(".answer .chip")?.textContent ?? ""), null, { timeout: 240_000 });
      await page.waitForSelector("#go:not([hidden])", { timeout: 30_000 });
      const state = await page.locator(".answer .chip").first().textContent();
      if (!states.includes(state)) throw new Error(`With finish ${isFinished}: ${state}`);
    }
  },

  "The mass of masks is a line under the tokens": async ({ page }) => {
    const examples = await (await fetch(`${base}/static/examples.json`)).json();
    await page.selectOption("#example", String(examples.findIndex(({ kind }) => kind === "pcfg")));
    await settled(page);
    equal(await page.inputValue("#kind"), "pcfg");
    await page.click("#tab-generate");
    await page.uncheck("#compare");
    await page.check("#mass");
    await page.fill("#max-tokens", "40");
    await page.fill("#seed", "3");
    await page.click("#go");
    await page.waitForSelector("#stop:not([hidden])");
    await page.waitForSelector("#go:not([hidden])", { timeout: 240_000 });
    contains(await page.locator(".answer .chip").first().textContent(), "fits");
    const size = page.viewportSize();
    for (const [name, width, height] of [["mass", size.width, size.height], ["mass-phone", 390, 844]]) {
      await page.setViewportSize({ width, height });
      const line = page.locator(".answer .mass");
      contains(await line.locator("p").textContent(), "The masks left");
      const [points, tokens] = await page.evaluate(() => [
        [...document.querySelectorAll(".answer .mass polyline")].flatMap((line) => line.getAttribute("points").split(" ")).length,
        document.querySelectorAll(".answer .output .token").length,
      ]);
      if (points < tokens) throw new Error(`${name}: ${points} points for ${tokens} tokens.`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (wide > 0) throw new Error(`${name}: ${wide} pixels too wide.`);
      await line.scrollIntoViewIfNeeded();
      await shot(page, name);
    }
    await page.setViewportSize(size);
    await page.uncheck("#mass");
  },

  "Stop stops": async ({ page }) => {
    await page.fill("#max-tokens", "2000");
    await page.uncheck("#compare");
    await page.fill("#prompt", "Write a long story.");
    await write(page, "regex", "[\\s\\S]{1000,}");
    await page.click("#go");
    await page.waitForSelector(".answer .output .token", { timeout: 120_000 });
    await page.click("#stop");
    await page.waitForSelector("#go:not([hidden])", { timeout: 30_000 });
    equal(await page.locator(".answer .chip").first().textContent(), "not finished");
    await page.click("#go");
    await page.waitForSelector(".answer .output .token", { timeout: 120_000 });
    await page.keyboard.press("Escape");
    await page.waitForSelector("#go:not([hidden])", { timeout: 30_000 });
  },

  "Nothing sticks out, in both themes, wide and narrow": async ({ browser }) => {
    for (const [name, width, height, colorScheme] of [["light", 1280, 800, "light"], ["dark", 1280, 800, "dark"], ["phone", 390, 844, "dark"], ["small-phone", 320, 640, "light"]]) {
      const { page, context, complaints } = await open(browser, { viewport: { width, height }, colorScheme });
      for (const tab of ["generate", "check"]) {
        await page.click(`#tab-${tab}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        if (wide > 0) throw new Error(`${name}: ${wide} pixels too wide on the tab ${tab}.`);
      }
      await page.screenshot({ path: `${folder}/${name}.png`, fullPage: width < 900 });
      equal(complaints.join("\n"), "", name);
      await context.close();
    }
  },

  "Fingers have room": async ({ browser }) => {
    const { page, context } = await open(browser, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    const small = await page.evaluate(() => [...document.querySelectorAll("button, select, input:not([type=checkbox]), summary")]
      .filter((node) => node.checkVisibility() && node.getBoundingClientRect().height < 39.5)
      .map((node) => `${node.id || node.textContent}: ${node.getBoundingClientRect().height}`));
    equal(small.join(), "");
    await context.close();
  },

  "Labels and line numbers can be read": async ({ browser }) => {
    for (const colorScheme of ["light", "dark"]) {
      const { page, context } = await open(browser, { colorScheme });
      const faint = await page.evaluate(() => {
        const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
        const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const back = (node) => {
          for (let at = node; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] > 0.99) return colour;
          }
          return [255, 255, 255];
        };
        return [".gutter", "label", ".quiet", ".tabs button", ".chip", ".token.good", ".problems .where", "h2"].flatMap((selector) => [...document.querySelectorAll(selector)].slice(0, 5)
          .filter((node) => node.checkVisibility() && node.textContent.trim() !== "")
          .map((node) => [selector, light(parse(getComputedStyle(node).color)), light(back(node))])
          .map(([name, a, b]) => [name, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)])
          .filter(([, ratio]) => ratio < 4.5).map(([name, ratio]) => `${name} ${ratio.toFixed(2)}`));
      });
      equal(faint.join(), "", colorScheme);
      await context.close();
    }
  },

  "The theme can be chosen, and stays": async ({ browser }) => {
    const { page, context } = await open(browser, { colorScheme: "light" });
    await page.click("#theme");
    await page.click("#theme");
    const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await colour();
    await page.reload();
    equal(await colour(), dark);
    await page.click("#theme");
    if ((await colour()) === dark) throw new Error("Dark and light look the same.");
    await context.close();
  },

  "Every control has a name, and tabs move by arrow keys": async ({ page }) => {
    const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea")]
      .filter((node) => !node.getAttribute("aria-label") && !node.labels?.length && !node.textContent.trim())
      .map((node) => node.id || node.className));
    equal(nameless.join(), "");
    await page.focus("#tab-coverage");
    await page.keyboard.press("ArrowRight");
    equal(await page.getAttribute("#tab-rules", "aria-selected"), "true");
    equal(await page.evaluate(() => document.activeElement.id), "tab-rules");
    await page.keyboard.press("ArrowLeft");
  },

  "A server that wants a key is given one": async ({ browser }) => {
    const context = await browser.newContext();
    const keys = new Set();
    await context.route(/\/v1\//, (route) => {
      const key = route.request().headers().authorization;
      keys.add(key);
      return key === "Bearer open sesame" ? route.continue() : route.fulfill({ status: 401, json: { error: { message: "a key is needed" } } });
    });
    const page = await context.newPage();
    await page.goto(`${base}/`);
    await page.waitForSelector("#key-dialog[open]");
    await page.fill("#key", "a wrong one");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#key-wrong:not([hidden])");
    await page.fill("#key", "open sesame");
    await page.keyboard.press("Enter");
    await settled(page);
    await page.waitForSelector("#tokens .token");
    if ((await page.locator("#model").textContent()).includes("key")) throw new Error("The model is not found with the key.");
    await page.click("#share");
    await page.waitForFunction(() => location.hash.length > 3);
    const state = await page.evaluate(async () => JSON.stringify(await (await import("/static/share.js")).unpack(location.hash)));
    if (state.includes("sesame")) throw new Error("The key is part of a link.");
    await context.close();
  },

  "No complaints in the console, and no request elsewhere": async ({ complaints }) => {
    equal(complaints.join("\n"), "");
  },
};

/** A page that has been opened and has found its server. */
async function open(browser, { url = `${base}/`, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => /^(data|blob):/.test(request.url()) || request.url().startsWith(`${base}/`) || complaints.push(`asked ${request.url()}`));
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById("source")?.value !== "");
  await settled(page);
  return { page, context, complaints };
}

/** Types a constraint. */
async function write(page, kind, source) {
  await page.selectOption("#kind", kind);
  await page.fill("#source", source);
  await settled(page);
}

/** Waits until the page has heard about what it shows. */
async function settled(page) {
  await page.waitForFunction(() => {
    const isBusy = document.getElementById("check").getAttribute("aria-busy") === "true";
    return !isBusy && document.getElementById("verdict").textContent !== "checking…";
  });
}

async function verdictOf(page) {
  const text = await page.locator("#judgement").textContent();
  return text.startsWith("✗") ? "rejected" : text.includes("Complete") ? "complete" : "open";
}

async function shot(page, name) {
  await page.screenshot({ path: `${folder}/${name}.png` });
}

function equal(found, expected, where = "") {
  if (found !== expected) throw new Error(`${where ? `${where}: ` : ""}found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
}

function contains(text, part) {
  if (!text.includes(part)) throw new Error(`${JSON.stringify(part)} is not in ${JSON.stringify(text)}`);
}

function playwright() {
  try {
    return createRequire(resolve("target/page-test/here.js"))("playwright-core");
  } catch {
    console.error("playwright-core is missing: npm install --prefix target/page-test playwright-core");
    process.exit(2);
  }
}

const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const { chromium } = playwright();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
await mkdir(folder, { recursive: true });
const opened = await open(browser);
const [failed, all] = [[], Object.entries(checks)];
for (const [name, check] of all) {
  try {
    await check({ ...opened, browser });
    console.log(`ok      ${name}`);
  } catch (error) {
    failed.push(name);
    console.log(`FAILED  ${name}\n        ${error.message}`);
    await shot(opened.page, `failed-${failed.length}`).catch(() => {});
  }
}
await browser.close();
console.log(`${all.length - failed.length} passed, ${failed.length} failed`);
process.exit(failed.length > 0 ? 1 : 0);
