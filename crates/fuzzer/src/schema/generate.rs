//! Random schemas: small, with all supported keywords, and mostly satisfiable.
//!
//! Keywords that are drawn independently almost always exclude each other. So each schema has a main type: most of its
//! keywords, of the values that it lists and of the schemas that it combines are about that type. Names, words and
//! numbers come from small pools, so that different parts of a schema use the same ones.

use maskwright_oracle::generate::Rng;
use serde_json::{Map, Value, json};

use super::refers_well;
use crate::sample::{self, FORMATS};

/// The types; those with many keywords occur more often.
const TYPES: [&str; 12] = [
    "null", "boolean", "integer", "number", "string", "string", "array", "array", "array", "object",
    "object", "object",
];
/// The maximum nesting of schemas.
const MAX_DEPTH: usize = 3;
const NAMES: [&str; 6] = ["a", "b", "c", "d", "ab", "é"];
const KEY_PATTERNS: [&str; 9] = ["^a", "b$", "^[a-c]$", "^a|b", "^.{1,2}$", "c", "^(a|ab)$", "^[^a]", "^$"];

/// Returns a random schema with several ways to read a text: objects or arrays, combined or negated.
pub fn ambiguous(rng: &mut Rng) -> Value {
    loop {
        let mut generator = Generator { rng, definitions: 0 };
        let kind = ["array", "object", "object"][generator.rng.below(3)];
        let [one, other] = [0; 2].map(|_| {
            let depth = 1 + generator.rng.below(2);
            generator.schema(depth, Some(kind))
        });
        let all = match generator.rng.below(6) {
            0 => json!({"not": one}),
            1 => json!({"type": kind, "not": one}),
            2 => json!({"oneOf": [one, other]}),
            3 => json!({"anyOf": [one, other]}),
            4 => json!({"if": one, "then": other}),
            _ => json!({"allOf": [{"not": one}, other]}),
        };
        if refers_well(&all) {
            return all;
        }
    }
}

/// Returns a random schema.
pub fn random(rng: &mut Rng) -> Value {
    loop {
        let definitions = [0, 0, 0, 1, 1, 2][rng.below(6)];
        let mut generator = Generator { rng, definitions };
        let mut root = generator.schema(MAX_DEPTH, None);
        if definitions > 0 {
            let mut map = Map::new();
            for number in 0..definitions {
                map.insert(format!("d{number}"), generator.schema(2, None));
            }
            if let Value::Object(keywords) = &mut root {
                keywords.insert("$defs".to_owned(), map.into());
            } else {
                continue;
            }
        }
        if refers_well(&root) {
            return root;
        }
    }
}

struct Generator<'a> {
    rng: &'a mut Rng,
    /// The number of definitions that can be referenced.
    definitions: usize,
}

impl Generator<'_> {
    /// Returns a schema that combines others at most `depth` levels deep, mainly about values of a type.
    fn schema(&mut self, depth: usize, of: Option<&str>) -> Value {
        if depth < MAX_DEPTH {
            match self.rng.below(40) {
                0 => return json!(false),
                1 | 2 => return json!(true),
                3 => return json!({}),
                _ => {}
            }
        }
        let mut keywords = Map::new();
        if self.definitions > 0 && self.one_in(4) {
            keywords.insert("$ref".to_owned(), self.reference());
            if !self.one_in(3) {
                return keywords.into();
            }
        }
        let kind = match of {
            Some(kind) if !self.one_in(8) => kind,
            _ if depth == 0 => TYPES[self.rng.below(6)],
            // There are few keywords for `null` and booleans.
            _ if depth == MAX_DEPTH => TYPES[2 + self.rng.below(TYPES.len() - 2)],
            _ => TYPES[self.rng.below(TYPES.len())],
        };
        self.kind(kind, &mut keywords);
        if self.one_in(10) {
            self.listed(kind, &mut keywords);
        }
        self.about(kind, depth, &mut keywords);
        if self.one_in(12) {
            let other = TYPES[self.rng.below(TYPES.len())];
            self.about(other, depth, &mut keywords);
        }
        if depth > 0 && self.one_in(3) {
            self.combine(kind, depth - 1, &mut keywords);
        }
        keywords.into()
    }

    fn kind(&mut self, kind: &str, keywords: &mut Map<String, Value>) {
        match self.rng.below(10) {
            0 | 1 => {}
            2 => {
                let other = TYPES[self.rng.below(TYPES.len())];
                if other != kind {
                    keywords.insert("type".to_owned(), json!([kind, other]));
                }
            }
            _ => {
                keywords.insert("type".to_owned(), json!(kind));
            }
        }
    }

    /// Adds `enum` or `const`.
    fn listed(&mut self, kind: &str, keywords: &mut Map<String, Value>) {
        let value = |generator: &mut Self| {
            if generator.one_in(6) {
                sample::any(generator.rng, 1)
            } else {
                sample::of_type(kind, generator.rng, 1)
            }
        };
        if self.one_in(3) {
            let one = value(self);
            keywords.insert("const".to_owned(), one);
        } else {
            let mut list: Vec<Value> = Vec::new();
            for _ in 0..=self.rng.below(3) {
                let one = value(self);
                if !list.contains(&one) {
                    list.push(one);
                }
            }
            keywords.insert("enum".to_owned(), list.into());
        }
    }

    /// Adds keywords about one type.
    fn about(&mut self, kind: &str, depth: usize, keywords: &mut Map<String, Value>) {
        match kind {
            "integer" | "number" => self.number(kind, keywords),
            "string" => self.string(keywords),
            "array" => self.array(depth, keywords),
            "object" => self.object(depth, keywords),
            _ => {}
        }
    }

    fn number(&mut self, kind: &str, keywords: &mut Map<String, Value>) {
        let bound = |generator: &mut Self, low: i32| {
            let whole = low + sample::small(generator.rng, 8);
            match generator.rng.below(12) {
                0 if kind == "number" => json!(f64::from(whole) + 0.5),
                1 => json!(whole * 100),
                2 => json!(i64::from(whole) * 1_000_000_007),
                3 if kind == "number" => json!(f64::from(whole) / 4.0),
                _ => json!(whole),
            }
        };
        if self.one_in(3) {
            let keyword = if self.one_in(3) { "exclusiveMinimum" } else { "minimum" };
            let bound = bound(self, -5);
            keywords.insert(keyword.to_owned(), bound);
        }
        if self.one_in(3) {
            let keyword = if self.one_in(3) { "exclusiveMaximum" } else { "maximum" };
            let bound = bound(self, 1);
            keywords.insert(keyword.to_owned(), bound);
        }
        if self.one_in(4) {
            let step =
                [json!(1), json!(2), json!(3), json!(0.5), json!(0.25), json!(1.5), json!(10), json!(7)];
            keywords.insert("multipleOf".to_owned(), step[self.rng.below(step.len())].clone());
        }
    }

    fn string(&mut self, keywords: &mut Map<String, Value>) {
        let least = self.rng.below(3);
        if self.one_in(4) {
            keywords.insert("minLength".to_owned(), json!(least));
        }
        if self.one_in(4) {
            keywords.insert("maxLength".to_owned(), json!(least + self.rng.below(4)));
        }
        if self.one_in(4) {
            keywords.insert("pattern".to_owned(), json!(self.pattern()));
        } else if self.one_in(8) {
            keywords.insert("format".to_owned(), json!(FORMATS[self.rng.below(FORMATS.len())].0));
        }
    }

    /// Returns a pattern that has the same meaning in every dialect.
    fn pattern(&mut self) -> String {
        const ATOMS: [&str; 12] =
            ["a", "b", "c", "[ab]", "[a-c]", "[^a]", "[0-9]", ".", "(a|bc)", "(ab|b)", "é", "\\\\"];
        const TIMES: [&str; 9] = ["", "", "", "", "*", "+", "?", "{1,2}", "{2}"];
        let mut pattern = String::new();
        let alternatives = if self.one_in(6) { 2 } else { 1 };
        for number in 0..alternatives {
            if number > 0 {
                pattern.push('|');
            }
            if !self.one_in(3) {
                pattern.push('^');
            }
            for _ in 0..=self.rng.below(3) {
                pattern.push_str(ATOMS[self.rng.below(ATOMS.len())]);
                pattern.push_str(TIMES[self.rng.below(TIMES.len())]);
            }
            if !self.one_in(3) {
                pattern.push('$');
            }
        }
        pattern
    }

    fn array(&mut self, depth: usize, keywords: &mut Map<String, Value>) {
        let below = depth.saturating_sub(1);
        let of = self.one_in(2).then(|| TYPES[self.rng.below(6)]);
        if self.one_in(2) {
            let items = self.schema(below, of);
            keywords.insert("items".to_owned(), items);
        }
        if self.one_in(4) {
            let count = 1 + self.rng.below(2);
            let list = (0..count).map(|_| self.schema(below, of)).collect();
            keywords.insert("prefixItems".to_owned(), Value::Array(list));
        }
        if self.one_in(5) {
            let contains = self.schema(below, of);
            keywords.insert("contains".to_owned(), contains);
            let least = self.rng.below(3);
            if self.one_in(3) {
                keywords.insert("minContains".to_owned(), json!(least));
            }
            if self.one_in(3) {
                keywords.insert("maxContains".to_owned(), json!(least + self.rng.below(2)));
            }
        }
        if self.one_in(4) {
            keywords.insert("uniqueItems".to_owned(), json!(!self.one_in(8)));
        }
        let least = self.rng.below(3);
        if self.one_in(4) {
            keywords.insert("minItems".to_owned(), json!(least));
        }
        if self.one_in(3) {
            keywords.insert("maxItems".to_owned(), json!(least + self.rng.below(3)));
        }
        if self.one_in(10) {
            let rest = if self.one_in(2) { json!(false) } else { self.schema(0, of) };
            keywords.insert("unevaluatedItems".to_owned(), rest);
        }
    }

    fn object(&mut self, depth: usize, keywords: &mut Map<String, Value>) {
        let below = depth.saturating_sub(1);
        if !self.one_in(4) {
            let mut map = Map::new();
            for _ in 0..[0, 1, 1, 2, 2, 3][self.rng.below(6)] {
                map.insert(self.name(), self.schema(below, None));
            }
            keywords.insert("properties".to_owned(), map.into());
        }
        if self.one_in(2) {
            let names = self.names(2);
            keywords.insert("required".to_owned(), json!(names));
        }
        match self.rng.below(6) {
            0 | 1 => {
                keywords.insert("additionalProperties".to_owned(), json!(false));
            }
            2 => {
                let others = self.schema(below.min(1), None);
                keywords.insert("additionalProperties".to_owned(), others);
            }
            3 => {
                let rest = if self.one_in(2) { json!(false) } else { self.schema(0, None) };
                keywords.insert("unevaluatedProperties".to_owned(), rest);
            }
            _ => {}
        }
        if self.one_in(6) {
            let mut map = Map::new();
            for _ in 0..=self.rng.below(2) {
                let pattern = KEY_PATTERNS[self.rng.below(KEY_PATTERNS.len())];
                map.insert(pattern.to_owned(), self.schema(below.min(1), None));
            }
            keywords.insert("patternProperties".to_owned(), map.into());
        }
        if self.one_in(10) {
            keywords.insert("propertyNames".to_owned(), self.property_names());
        }
        let least = self.rng.below(3);
        if self.one_in(7) {
            keywords.insert("minProperties".to_owned(), json!(least));
        }
        if self.one_in(7) {
            keywords.insert("maxProperties".to_owned(), json!(least + self.rng.below(3)));
        }
        if self.one_in(9) {
            let mut map = Map::new();
            map.insert(self.name(), json!(self.names(2)));
            keywords.insert("dependentRequired".to_owned(), map.into());
        }
        if self.one_in(9) {
            let mut map = Map::new();
            map.insert(self.name(), self.schema(below.min(1), Some("object")));
            keywords.insert("dependentSchemas".to_owned(), map.into());
        }
    }

    fn property_names(&mut self) -> Value {
        match self.rng.below(6) {
            0 => json!({"maxLength": 1 + self.rng.below(2)}),
            1 => json!({"enum": self.names(3)}),
            2 => json!({"not": {"const": self.name()}}),
            3 => json!({"minLength": 1}),
            4 => self.schema(0, Some("string")),
            _ => json!({"pattern": KEY_PATTERNS[self.rng.below(KEY_PATTERNS.len())]}),
        }
    }

    fn combine(&mut self, kind: &str, depth: usize, keywords: &mut Map<String, Value>) {
        match self.rng.below(8) {
            choice @ 0..=4 => {
                let keyword = ["allOf", "anyOf", "anyOf", "oneOf", "oneOf"][choice];
                let count = 1 + self.rng.below(3);
                let list = (0..count).map(|_| self.schema(depth, Some(kind))).collect();
                keywords.insert(keyword.to_owned(), Value::Array(list));
            }
            5 => {
                let not = self.schema(depth, Some(kind));
                keywords.insert("not".to_owned(), not);
            }
            _ => {
                for keyword in ["if", "then", "else"] {
                    if keyword == "if" || !self.one_in(3) {
                        let schema = self.schema(depth, Some(kind));
                        keywords.insert(keyword.to_owned(), schema);
                    }
                }
            }
        }
    }

    fn reference(&mut self) -> Value {
        match self.rng.below(self.definitions * 4 + 1) {
            0 => json!("#"),
            number => json!(format!("#/$defs/d{}", number % self.definitions)),
        }
    }

    fn name(&mut self) -> String {
        // The first names more often, so that they occur together.
        let among = if self.one_in(3) { NAMES.len() } else { 3 };
        NAMES[self.rng.below(among)].to_owned()
    }

    fn names(&mut self, most: usize) -> Vec<String> {
        let mut names: Vec<String> = (0..=self.rng.below(most)).map(|_| self.name()).collect();
        names.sort();
        names.dedup();
        names
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.rng.one_in(times)
    }
}
