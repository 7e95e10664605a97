//! Random grammars.

use maskwright_oracle::generate::Rng;
use maskwright_weighted::{Options, Pcfg};

/// Returns a random grammar over `a` and `b` with empty texts, units, loops and recursion on both sides, whose
/// derivations end; as text, too.
pub(crate) fn random(rng: &mut Rng) -> (String, Pcfg) {
    loop {
        let source = draft(rng);
        let options = Options { normalise: true, ..Options::default() };
        if let Ok(grammar) = Pcfg::parse(&source, &options)
            && !grammar.warnings().iter().any(|remark| remark.message.contains("grows by"))
        {
            return (source, grammar);
        }
    }
}

fn draft(rng: &mut Rng) -> String {
    let symbols = 1 + rng.below(4);
    let mut out = String::new();
    for left in 0..symbols {
        let alternatives = 1 + rng.below(4);
        for at in 0..alternatives {
            let arrow = if at == 0 { format!("N{left} ->") } else { " |".into() };
            out.push_str(&arrow);
            let length = rng.below(4);
            for _ in 0..length {
                match rng.below(5) {
                    0 | 1 => out.push_str(" a"),
                    2 => out.push_str(" b"),
                    _ => out.extend([" N", &rng.below(symbols).to_string()]),
                }
            }
            if length == 0 {
                out.push_str(" ε");
            }
            out.extend([" [", &(1 + rng.below(9)).to_string(), "]"]);
        }
        out.push('\n');
    }
    out
}
