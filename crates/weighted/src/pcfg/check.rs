//! Turns parsed rules into a grammar: resolves names, checks probabilities, and warns about anything unusual.

use maskwright_grammar::{Diagnostic, Span};
use rustc_hash::FxHashMap;

use super::useful::{productive, reachable};
use super::{Draft, DraftSymbol, NonterminalId, Options, Pcfg, Rule, Symbol, TerminalId, consistency};
use crate::terminal::Terminal;

/// Sums that differ from 1 by less are considered rounded.
const ROUNDED: f64 = 1e-6;

/// The greatest number of symbols on one right side: some tables grow with its square.
const MAX_SYMBOLS: usize = 2_000;

/// Checks everything, and reports all errors at once.
pub(super) fn check(draft: &Draft, options: &Options) -> Result<Pcfg, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let (names, places) = names(draft);
    let start = start(draft, &names, options, &mut errors);
    let probabilities = probabilities(draft, &names, options, &mut errors);
    let mut pcfg = Pcfg {
        names: vec!["".into(); names.len()],
        terminals: Vec::new(),
        rules: Vec::new(),
        start,
        warnings: Vec::new(),
        entries: options.entries,
    };
    for (name, id) in &sorted(&names) {
        pcfg.names[id.0 as usize] = (*name).into();
    }
    resolve(draft, &names, &probabilities, &mut pcfg, &mut errors);
    if errors.is_empty() {
        errors.extend(judge(&mut pcfg, &places));
    }
    if errors.is_empty() { Ok(pcfg) } else { Err(errors) }
}

type Names<'a> = FxHashMap<&'a str, NonterminalId>;

fn sorted<'a>(names: &Names<'a>) -> Vec<(&'a str, NonterminalId)> {
    let mut out: Vec<_> = names.iter().map(|(name, id)| (*name, *id)).collect();
    out.sort_unstable_by_key(|(_, id)| *id);
    out
}

/// Returns the symbols with rules, and the place of the first rule of each.
fn names(draft: &Draft) -> (Names<'_>, Vec<Span>) {
    let mut names = Names::default();
    let mut places = Vec::new();
    for rule in &draft.rules {
        names.entry(&rule.left).or_insert_with(|| {
            places.push(rule.left_span);
            NonterminalId(places.len() as u32 - 1)
        });
    }
    (names, places)
}

fn start(draft: &Draft, names: &Names<'_>, options: &Options, errors: &mut Vec<Diagnostic>) -> NonterminalId {
    let Some(first) = draft.rules.first() else {
        errors.push(
            Diagnostic::error(Span::at(0), "the grammar has no rules")
                .with_help("write one like this: S -> NP VP [0.7] | VP [0.3]"),
        );
        return NonterminalId(0);
    };
    let name = options.start.as_deref().unwrap_or(&first.left);
    names.get(name).copied().unwrap_or_else(|| {
        let error = Diagnostic::error(first.left_span, format!("the start symbol `{name}` has no rule"));
        errors.push(error.with_help("name a symbol that appears on the left side of a rule"));
        NonterminalId(0)
    })
}

/// Computes the probability of each rule. Rules without one share what is left.
fn probabilities(
    draft: &Draft,
    names: &Names<'_>,
    options: &Options,
    errors: &mut Vec<Diagnostic>,
) -> Vec<f64> {
    let mut sums = vec![0.0; names.len()];
    let mut open = vec![0u32; names.len()];
    let mut places = vec![Span::default(); names.len()];
    let left = |rule: &super::DraftRule| names.get(&*rule.left).map_or(0, |id| id.0 as usize);
    for rule in draft.rules.iter().rev() {
        places[left(rule)] = rule.left_span;
        match rule.probability {
            Some(p) if p.is_finite() && p >= 0.0 => sums[left(rule)] += p,
            Some(p) => {
                let what = if p < 0.0 { "is negative" } else { "is no number" };
                let message = format!("the probability {p} of a rule of `{}` {what}", rule.left);
                errors
                    .push(Diagnostic::error(rule.span, message).with_help("write a number between 0 and 1"));
            }
            None => open[left(rule)] += 1,
        }
    }
    for (name, id) in sorted(names) {
        let at = id.0 as usize;
        if let Err(error) = judge_sum(name, sums[at], open[at], options) {
            errors.push(Diagnostic { span: places[at], ..error });
        }
    }
    let share = |rule: &super::DraftRule| {
        let at = left(rule);
        let whole = sums[at].max(if open[at] > 0 { 1.0 } else { 0.0 });
        rule.probability.unwrap_or_else(|| (1.0 - sums[at]) / f64::from(open[at])) / whole
    };
    draft.rules.iter().map(share).collect()
}

fn judge_sum(name: &str, sum: f64, open: u32, options: &Options) -> Result<(), Diagnostic> {
    let wrong =
        |message: String, help: &str| Err(Diagnostic::error(Span::default(), message).with_help(help));
    if open > 0 && sum >= 1.0 {
        return wrong(
            format!("`{name}` has alternatives without a probability, and the others add up to {sum}"),
            "give each alternative a probability, or leave some for those without",
        );
    }
    if open == 0 && sum <= 0.0 {
        return wrong(
            format!("the probabilities of `{name}` add up to zero"),
            "give one of its alternatives a chance",
        );
    }
    if open == 0 && !options.normalise && (sum - 1.0).abs() > ROUNDED {
        return wrong(
            format!("the probabilities of `{name}` add up to {}", short(sum)),
            "make them add up to 1, or ask for normalisation",
        );
    }
    Ok(())
}

/// Formats a number without the noise of its last digits.
fn short(number: f64) -> String {
    let text = format!("{number:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Resolves names to ids.
fn resolve(
    draft: &Draft,
    names: &Names<'_>,
    probabilities: &[f64],
    pcfg: &mut Pcfg,
    errors: &mut Vec<Diagnostic>,
) {
    let mut known: FxHashMap<Terminal, TerminalId> = FxHashMap::default();
    for (rule, probability) in draft.rules.iter().zip(probabilities) {
        if rule.right.len() > MAX_SYMBOLS {
            let message =
                format!("a rule of `{}` has more than {MAX_SYMBOLS} symbols on its right side", rule.left);
            errors.push(Diagnostic::error(rule.span, message).with_help("split it into two rules"));
            continue;
        }
        let mut right = Vec::new();
        for (symbol, span) in &rule.right {
            let terminal = match symbol {
                DraftSymbol::Literal(bytes) => Terminal::Literal(bytes.clone()),
                DraftSymbol::Pattern(pattern) => Terminal::Pattern(pattern.clone()),
                DraftSymbol::Name { name, lax } => {
                    if let Some(id) = names.get(&**name) {
                        right.push(Symbol::Nonterminal(*id));
                        continue;
                    }
                    if !lax && name.starts_with(char::is_uppercase) {
                        errors.push(undefined(name, &rule.left, *span));
                        continue;
                    }
                    Terminal::Literal(name.as_bytes().into())
                }
            };
            let id = *known.entry(terminal).or_insert_with_key(|terminal| {
                pcfg.terminals.push(terminal.clone());
                TerminalId(pcfg.terminals.len() as u32 - 1)
            });
            right.push(Symbol::Terminal(id));
        }
        let left = names.get(&*rule.left).copied().unwrap_or(NonterminalId(0));
        pcfg.rules.push(Rule { left, right: right.into(), probability: *probability, span: rule.span });
    }
}

fn undefined(name: &str, left: &str, span: Span) -> Diagnostic {
    Diagnostic::error(span, format!("the symbol `{name}` in a rule of `{left}` has no rule"))
        .with_help(format!("define it, or write \"{name}\" if the text itself is meant"))
}

/// Warns about symbols that derive nothing or are never used, and about loops that grow forever.
fn judge(pcfg: &mut Pcfg, places: &[Span]) -> Option<Diagnostic> {
    let productive = productive(pcfg);
    let start = pcfg.start.0 as usize;
    if !productive[start] {
        let rule = pcfg.rules.iter().find(|rule| rule.left == pcfg.start && rule.probability > 0.0);
        let shown =
            rule.map_or(String::new(), |rule| format!(", as in `{}`", super::write::rule(pcfg, rule)));
        let message =
            format!("the start symbol `{}` derives no text: its rules never end{shown}", pcfg.names[start]);
        return Some(
            Diagnostic::error(places[start], message)
                .with_help("give it an alternative that ends in terminals"),
        );
    }
    let reachable = reachable(pcfg, &productive);
    for (at, name) in pcfg.names.iter().enumerate() {
        if !productive[at] {
            let message = format!(
                "`{name}` derives no text, so rules with it are left out and the others share their probability"
            );
            pcfg.warnings.push(
                Diagnostic::warning(places[at], message)
                    .with_help("give it an alternative that ends in terminals"),
            );
        } else if !reachable[at] {
            let message = format!("`{name}` is not used by `{}` or anything below it", pcfg.names[start]);
            pcfg.warnings.push(Diagnostic::warning(places[at], message));
        }
    }
    let remarks = consistency::remarks(pcfg, &productive, &reachable, places);
    pcfg.warnings.extend(remarks);
    None
}
