//! Tests of the algebra without an emitter.

use super::super::options::Options;
use super::super::schemas::{Source, load};
use super::*;

/// Passes the algebra of a schema and the root's id to a test.
fn with_algebra(text: &str, test: impl FnOnce(&mut Algebra<'_>, SchemaId)) {
    let options = Options::default();
    let root = Value::read(text, 100).expect("JSON");
    let mut context = Context::new(&options);
    let (strictness, formats) = (options.strictness, options.formats);
    let source = Source { root: &root, documents: &[], strictness, formats, tracks_scopes: false };
    let schemas = load(source, &mut context.report.paths);
    let id = schemas.root();
    test(&mut Algebra::new(context, schemas), id);
}

/// Returns the number of cases of a schema for one type.
fn count_cases(text: &str, kind: TypeSet) -> usize {
    let mut count = 0;
    with_algebra(text, |algebra, root| {
        count = algebra.cases(&[Signed::plus(root)], kind).expect("within the limits").len();
        assert!(algebra.context.error.is_empty(), "{text}");
    });
    count
}

#[test]
fn a_node_follows_references_and_drops_what_says_nothing() {
    let text = r##"{"allOf": [{"$ref": "#/$defs/a"}, {}, false], "$defs": {"a": {"type": "null"}}}"##;
    with_algebra(text, |algebra, root| {
        let [reference, everything, nothing] = *algebra.keywords(root).all_of else {
            panic!("three schemas")
        };
        let target = algebra.node(reference).as_single().expect("a single schema");
        assert_ne!(target, reference);
        assert!(algebra.is_referenced(target));
        assert_eq!(algebra.node(everything), NodeId::ANY);
        assert_eq!(algebra.node(nothing), NodeId::NEVER);
        let both = [Signed::plus(reference), Signed::plus(everything)];
        assert_eq!(algebra.node_of(&both), algebra.node(target));
        assert_eq!(algebra.node_of(&[Signed::plus(target), Signed::minus(reference)]), NodeId::NEVER);
        assert_eq!(algebra.node_of(&[Signed::minus(nothing)]), NodeId::ANY);
    });
}

#[test]
fn a_reference_to_itself_is_refused() {
    let text = r##"{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}"##;
    with_algebra(text, |algebra, root| {
        assert_eq!(algebra.node(root), NodeId::NEVER);
        assert_eq!(algebra.context.error.problems()[0].pointer, "/$defs/a/$ref");
    });
}

#[test]
fn choices_multiply_and_clashes_are_dropped() {
    let (string, object) = (TypeSet::STRING, TypeSet::OBJECT);
    assert_eq!(count_cases(r#"{"anyOf": [{"type": "null"}, {"minLength": 3}]}"#, string), 1);
    assert_eq!(count_cases(r#"{"anyOf": [{"minLength": 5}, {"pattern": "x"}]}"#, string), 2);
    let two_by_two = r#"{"allOf": [{"anyOf": [{"minLength": 5}, {"pattern": "x"}]},
                                   {"anyOf": [{"maxLength": 4}, {"pattern": "y"}]}]}"#;
    // Of the four combinations, `minLength: 5` with `maxLength: 4` is empty.
    assert_eq!(count_cases(two_by_two, string), 3);
    // The negation of `allOf` is a choice; that of `anyOf` is not.
    assert_eq!(count_cases(r#"{"not": {"allOf": [{"minLength": 5}, {"pattern": "x"}]}}"#, string), 2);
    assert_eq!(count_cases(r#"{"not": {"anyOf": [{"minLength": 5}, {"pattern": "x"}]}}"#, string), 1);
    assert_eq!(count_cases(r#"{"if": {"required": ["a"]}, "then": {"required": ["b"]}}"#, object), 2);
}

#[test]
fn only_branches_that_overlap_are_negated() {
    let branches = |tags: [&str; 2]| {
        let branch =
            |tag| format!(r#"{{"properties": {{"kind": {tag}}}, "required": ["kind"], "type": "object"}}"#);
        format!(r#"{{"oneOf": [{}, {}]}}"#, branch(tags[0]), branch(tags[1]))
    };
    for (tags, negated) in [([r#"{"const": "a"}"#, r#"{"const": "b"}"#], 0), (["{}", r#"{"const": "b"}"#], 1)]
    {
        with_algebra(&branches(tags), |algebra, root| {
            let cases = algebra.cases(&[Signed::plus(root)], TypeSet::OBJECT).expect("within the limits");
            let signs = cases.iter().flat_map(|case| &case.locals).filter(|local| local.negative).count();
            assert_eq!(signs, negated, "{tags:?}");
        });
    }
}

#[test]
fn clearly_empty_conjunctions() {
    for (a, b, is_empty) in [
        (r#"{"type": "string"}"#, r#"{"type": "object"}"#, true),
        (r#"{"const": 1}"#, r#"{"enum": [2, 3]}"#, true),
        (r#"{"const": 1}"#, r#"{"enum": [2, 1.0]}"#, false),
        (r#"{"minimum": 3, "type": "number"}"#, r#"{"exclusiveMaximum": 3, "type": "number"}"#, true),
        (r#"{"minItems": 3, "type": "array"}"#, r#"{"maxItems": 2, "type": "array"}"#, true),
        (r#"{"pattern": "^a", "type": "string"}"#, r#"{"pattern": "^b", "type": "string"}"#, true),
        (r#"{"pattern": "a", "type": "string"}"#, r#"{"pattern": "b", "type": "string"}"#, false),
        (
            r#"{"required": ["a"], "type": "object"}"#,
            r#"{"properties": {"b": {}}, "additionalProperties": false, "type": "object"}"#,
            true,
        ),
    ] {
        with_algebra(&format!(r#"{{"allOf": [{a}, {b}]}}"#), |algebra, root| {
            let parts: Vec<Signed> =
                algebra.keywords(root).all_of.iter().copied().map(Signed::plus).collect();
            assert_eq!(algebra.is_clearly_empty(&parts, TypeSet::ALL, 4), is_empty, "{a} and {b}");
        });
    }
}

#[test]
fn values_are_validated() {
    let schema = r##"{"type": ["object", "string"], "maxLength": 3, "properties": {"a": {"type": "integer"}},
        "anyOf": [{"required": ["a"]}, {"minLength": 2}], "not": {"const": "no"}, "unevaluatedProperties": false,
        "dependentRequired": {"a": ["b"]}, "patternProperties": {"^b": {"$ref": "#/$defs/list"}},
        "$defs": {"list": {"items": {"enum": [1, 2]}, "uniqueItems": true, "contains": {"const": 1}}}}"##;
    with_algebra(schema, |algebra, root| {
        for (value, is_valid) in [
            (r#""yes""#, true),
            (r#""no""#, false),
            (r#""long""#, false),
            (r#""x""#, true),
            ("1", false),
            (r#"{"a": 1, "b": [2, 1]}"#, true),
            (r#"{"a": 1.0, "b": [1]}"#, true),
            (r#"{"a": 1.5, "b": [1]}"#, false),
            (r#"{"a": 1, "b": [2]}"#, false),
            (r#"{"a": 1, "b": [1, 1]}"#, false),
            (r#"{"a": 1}"#, false),
            (r#"{"a": 1, "b": [1], "c": 0}"#, false),
        ] {
            let read = Value::read(value, 10).expect("JSON");
            assert_eq!(algebra.satisfies(&read, &[Signed::plus(root)]), is_valid, "{value}");
            assert_ne!(algebra.satisfies(&read, &[Signed::minus(root)]), is_valid, "not {value}");
        }
        assert!(algebra.context.error.is_empty());
    });
}

#[test]
fn a_long_chain_of_schemas_is_blamed_by_its_own_name() {
    let links: Vec<String> = (0..300)
        .map(|i| format!(r##""d{i}": {{"title": "", "allOf": [{{"$ref": "#/$defs/d{}"}}]}}"##, i + 1))
        .collect();
    let text = format!(r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d300": {{}}}}}}"##, links.join(", "));
    with_algebra(&text, |algebra, root| {
        assert!(!algebra.satisfies(&Value::Null, &[Signed::plus(root)]));
        let problem = &algebra.context.error.problems()[0];
        assert!(problem.message.contains("more than 200 schemas"), "{problem}");
        assert!(problem.help.contains("chain of references"), "{problem}");
    });
}

#[test]
fn derived_constants_can_be_negated_part_by_part() {
    with_algebra(r#"{"not": {"const": {"a": [1]}}}"#, |algebra, root| {
        let cases = algebra.cases(&[Signed::plus(root)], TypeSet::OBJECT).expect("within the limits");
        let [case] = &*cases else { panic!("one case") };
        let [local] = &*case.locals else { panic!("one schema") };
        assert!(local.negative);
        let keywords = algebra.keywords(local.id);
        assert!(keywords.is_structure);
        assert_eq!(keywords.required, ["a"]);
        let inner = keywords.properties.get("a").expect("a schema");
        assert_eq!(algebra.keywords(inner).prefix.len(), 1);
    });
}

#[test]
fn members_and_items() {
    let text = r#"{"properties": {"a": {"type": "null"}}, "patternProperties": {"^a": {"title": "p"}},
        "additionalProperties": false, "prefixItems": [{}, {}], "items": {"type": "null"}}"#;
    with_algebra(text, |algebra, root| {
        let keywords = algebra.keywords(root);
        assert_eq!(algebra.member_schemas(root, &keywords, "a").len(), 2);
        assert_eq!(algebra.member_schemas(root, &keywords, "ab").len(), 1);
        let object = algebra.object_case(&Case::of(Signed::plus(root)));
        assert!(algebra.member_parts(&object, "a").is_some());
        assert!(algebra.member_parts(&object, "b").is_none());
        assert_eq!(item(&keywords, 1), Some(keywords.prefix[1]));
        assert_eq!(item(&keywords, 2), keywords.rest);
    });
}

#[test]
fn many_string_cases_are_one_language() {
    let any_of = |letters: &str| {
        let branches: Vec<String> = letters.chars().map(|c| format!(r#"{{"pattern": "{c}"}}"#)).collect();
        format!(r#"{{"anyOf": [{}]}}"#, branches.join(", "))
    };
    let all = |count: usize| {
        let parts = ["abcdef", "ghijkl", "mnopqr"].iter().take(count).map(|letters| any_of(letters));
        format!(r#"{{"allOf": [{}]}}"#, parts.collect::<Vec<_>>().join(", "))
    };
    with_algebra(&all(1), |algebra, root| assert_eq!(algebra.combined_text(&[Signed::plus(root)]), None));
    with_algebra(&all(3), |algebra, root| {
        let text = algebra.combined_text(&[Signed::plus(root)]).expect("216 cases");
        assert_eq!(algebra.languages.contains(&algebra.grammar, text, "agm"), Some(true));
        assert_eq!(algebra.languages.contains(&algebra.grammar, text, "ag"), Some(false));
    });
}
