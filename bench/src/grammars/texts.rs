//! Long texts, the same in every run.

use std::fmt::Write as _;

use crate::random::Random;
use crate::tails::word;

/// Returns a text of about 20,000 tokens for some of the languages.
pub fn long(case: &str) -> Option<String> {
    let mut random = Random::new(7);
    match case {
        "ambiguous_arithmetic" | "arithmetic_layers" | "arithmetic_left" => Some(arithmetic(&mut random)),
        "json" => Some(json(&mut random)),
        "python" => Some(python(&mut random)),
        "sexpr" => Some(sexpr(&mut random)),
        "sql" => Some(sql(&mut random)),
        _ => None,
    }
}

/// Returns lines of sums and products, nested up to four levels.
fn arithmetic(random: &mut Random) -> String {
    let mut text = operand(random, 0);
    for line in 0..2400 {
        let operator = ["+", "-", "*", "/"][random.below(4)];
        let gap = if line % 4 == 3 { '\n' } else { ' ' };
        let _ = write!(text, "{gap}{operator} {}", operand(random, 0));
    }
    text
}

fn operand(random: &mut Random, depth: usize) -> String {
    // At deeper levels, names and numbers are more likely.
    match random.below(7 + 3 * depth) {
        0 | 1 if depth < 4 => {
            let operator = ["+", "-", "*", "/", "^"][random.below(5)];
            let (left, right) = (operand(random, depth + 1), operand(random, depth + 1));
            format!("({left} {operator} {right})")
        }
        2 if depth < 4 => {
            let function = ["max", "sum", "round", "log"][random.below(4)];
            let arguments: Vec<String> =
                (0..1 + random.below(3)).map(|_| operand(random, depth + 1)).collect();
            format!("{function}({})", arguments.join(", "))
        }
        3 => format!("{}.{}", random.below(1000), random.below(100)),
        4 => format!("{}_{}", word(random), random.below(20)),
        5 => format!("-{}", word(random)),
        _ => random.below(10_000).to_string(),
    }
}

/// Returns records like those of a web service.
fn json(random: &mut Random) -> String {
    let mut text = String::from("{\"results\": [\n");
    for index in 0..224 {
        let tags: Vec<String> = (0..random.below(5)).map(|_| format!("\"{}\"", word(random))).collect();
        let _ = writeln!(
            text,
            "  {{\"id\": {index}, \"name\": \"{} {}\", \"score\": {}.{:02}, \"active\": {}, \"tags\": [{}], \
             \"address\": {{\"street\": \"{} {} \\\"{}\\\"\", \"zip\": \"{:05}\", \"geo\": [{}.{}, -{}.{}]}}, \
             \"comment\": \"{}\", \"parent\": null}}{}",
            word(random),
            word(random),
            random.below(100),
            random.below(100),
            random.below(2) == 0,
            tags.join(", "),
            random.below(300),
            word(random),
            word(random),
            random.below(100_000),
            random.below(90),
            random.below(10_000),
            random.below(180),
            random.below(10_000),
            sentence(random),
            if index < 223 { "," } else { "" },
        );
    }
    text + "], \"next\": null, \"took\": 1.5e-2}"
}

/// Returns functions with loops and conditions.
fn python(random: &mut Random) -> String {
    let mut text = String::from("import math\n\n");
    for index in 0..152 {
        let [first, second, third] = [word(random), word(random), word(random)];
        let _ = write!(
            text,
            "def {first}_{index}({second}, limit: int={}) -> dict:\n    \
                 # {}\n    \
                 found = {{\"{third}\": [{}, {}.5], \"{first}\": None}}\n    \
                 for place, item in enumerate({second}):\n        \
                     if item.{third} > limit and not item.{first}[place % {}:-1]:\n            \
                         found[\"{third}\"].append((item.{third} - {}) // 2)\n        \
                     elif place == {} or item in found:\n            \
                         continue\n    \
                 return found if len(found) > 1 else dict(sorted(found.items(), key=lambda pair: -pair[1]))\n\n",
            random.below(1000),
            sentence(random),
            random.below(100),
            random.below(100),
            1 + random.below(9),
            random.below(50),
            random.below(10),
        );
    }
    text
}

/// Returns a tree of parts.
fn sexpr(random: &mut Random) -> String {
    let mut text = String::new();
    for index in 0..84 {
        let _ = write!(text, "(part {index}");
        for _ in 0..6 {
            let _ = write!(
                text,
                "\n  (({} {}) '{} \"{}\" (list {} {}/{} (if (< x {}) #t (not #f))))",
                word(random),
                word(random),
                word(random),
                sentence(random),
                random.below(1000),
                random.below(100),
                1 + random.below(9),
                random.below(100)
            );
        }
        text.push_str(")\n");
    }
    text
}

/// Returns a query with a very long condition.
fn sql(random: &mut Random) -> String {
    let mut text = String::from("SELECT t.id, t.name FROM things AS t WHERE t.id > 0");
    for index in 0..1550 {
        let column = format!("t.{}_{}", word(random), random.below(30));
        let joint = if random.below(4) == 0 { "OR" } else { "AND" };
        let condition = match random.below(7) {
            0 => format!("{column} IN ({}, {}, {})", random.below(100), random.below(100), random.below(100)),
            1 => format!("{column} LIKE '%{}%'", word(random)),
            2 => format!("({column} IS NULL OR {column} <> '{}')", word(random)),
            3 => format!("NOT {column} BETWEEN {} AND {}", random.below(50), 50 + random.below(50)),
            4 => format!("length({column}) * 2 <= {}", random.below(500)),
            5 => format!("{column} IS NOT NULL"),
            _ => format!("{column} = {}.{}", random.below(1000), random.below(10)),
        };
        let gap = if index % 3 == 0 { '\n' } else { ' ' };
        let _ = write!(text, "{gap}{joint} {condition}");
    }
    text + " ORDER BY t.name DESC LIMIT 100;"
}

fn sentence(random: &mut Random) -> String {
    let words: Vec<&str> = (0..4 + random.below(9)).map(|_| word(random)).collect();
    words.join(" ")
}
