//! Hosts, mail addresses and URIs: RFC 1123, 4291, 5321, 6531, 3986, 3987 and 6570.

/// Characters beyond ASCII that an IRI may contain.
pub(super) const UCS: &str = r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}\u{20000}-\u{2FFFD}\u{30000}-\u{3FFFD}\u{40000}-\u{4FFFD}\u{50000}-\u{5FFFD}\u{60000}-\u{6FFFD}\u{70000}-\u{7FFFD}\u{80000}-\u{8FFFD}\u{90000}-\u{9FFFD}\u{A0000}-\u{AFFFD}\u{B0000}-\u{BFFFD}\u{C0000}-\u{CFFFD}\u{D0000}-\u{DFFFD}\u{E1000}-\u{EFFFD}";

/// Characters that are allowed only in the query of an IRI.
pub(super) const PRIVATE: &str = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}";

/// Returns labels of letters, digits and inner hyphens, at most 63 characters long, separated by dots.
pub(super) fn hostname(more: &str) -> String {
    let end = format!("[A-Za-z0-9{more}]");
    let label = format!("{end}(?:[A-Za-z0-9{more}-]{{0,61}}{end})?");
    format!(r"{label}(?:\.{label})*")
}

/// Returns the local part, at most 64 characters (atoms separated by dots, or a quoted text), and then a host, or an
/// address in brackets.
pub(super) fn email(more: &str) -> String {
    // Characters are counted in pairs, because an escaped character takes two. Where single characters stand between
    // escaped ones, slightly less than 64 characters fit.
    let plain = format!(r"[ !#-\[\]-~{more}]");
    email_with(more, &format!(r#""(?:{plain}{plain}?|\\[ -~]){{0,31}}""#))
}

/// Like [`email`], with quoted texts of any length.
pub(super) fn wide_email(more: &str) -> String {
    email_with(more, &format!(r#""(?:[ !#-\[\]-~{more}]|\\[ -~])*""#))
}

fn email_with(more: &str, quoted: &str) -> String {
    let atom = format!("[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{more}-]+");
    let (host, ipv4, ipv6) = (hostname(more), ipv4(), ipv6());
    format!(r"(?:(?=[^@]{{1,64}}@){atom}(?:\.{atom})*|{quoted})@(?:{host}|\[{ipv4}\]|\[IPv6:{ipv6}\])")
}

/// Returns four numbers below 256 without leading zeros.
pub(super) fn ipv4() -> String {
    let octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    format!(r"{octet}(?:\.{octet}){{3}}")
}

/// Returns eight groups, where the last two may be written as an IPv4 address and `::` may replace one run of zeros.
pub(super) fn ipv6() -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let last = format!("(?:{group}:{group}|{})", ipv4());
    let mut ways = vec![format!("(?:{group}:){{6}}{last}")];
    for before in 0..=7 {
        // At most `before` groups precede the run, and exactly `after` follow it.
        let after = 7 - before;
        let left = match before {
            0 => String::new(),
            1 => format!("(?:{group})?"),
            _ => format!("(?:(?:{group}:){{0,{}}}{group})?", before - 1),
        };
        let right = match after {
            0 => String::new(),
            1 => group.to_owned(),
            2 => last.clone(),
            _ => format!("(?:{group}:){{{}}}{last}", after - 2),
        };
        ways.push(format!("{left}::{right}"));
    }
    format!("(?:{})", ways.join("|"))
}

/// Returns a URI, or a reference to one; with `ucs` and `private`, an IRI.
pub(super) fn uri(ucs: &str, private: &str, reference: bool) -> String {
    let percent = "%[0-9A-Fa-f]{2}";
    let name = format!(r"A-Za-z0-9._~!$&'()*+,;={ucs}-");
    let part = format!("(?:[:@{name}]|{percent})");
    let ip_literal = format!(r"\[(?:{}|[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\]", ipv6());
    let authority =
        format!("(?:(?:[:{name}]|{percent})*@)?(?:{ip_literal}|(?:[{name}]|{percent})*)(?::[0-9]*)?");
    let path = format!("(?:/{part}*)*");
    let absolute = format!("/(?:{part}+{path})?");
    let query = format!(r"(?:\?(?:[:@/?{private}{name}]|{percent})*)?");
    let fragment = format!("(?:#(?:[:@/?{name}]|{percent})*)?");
    let scheme = "[A-Za-z][A-Za-z0-9+.-]*:";
    let full = format!("{scheme}(?://{authority}{path}|{absolute}|{part}+{path}|){query}{fragment}");
    if !reference {
        return full;
    }
    // The first segment of a relative path has no colon, because a colon would end a scheme.
    let first = format!("(?:[@{name}]|{percent})+");
    format!("(?:{full}|(?://{authority}{path}|{absolute}|{first}{path}|){query}{fragment})")
}

/// Returns literals, and expressions in braces. An apostrophe is a literal (erratum 6937).
pub(super) fn uri_template() -> String {
    let percent = "%[0-9A-Fa-f]{2}";
    let literal = format!(r"[!#$&-;=?-\[\]_a-z~{UCS}{PRIVATE}]");
    let letter = format!("(?:[A-Za-z0-9_]|{percent})");
    let variable = format!(r"{letter}+(?:\.{letter}+)*(?::[1-9][0-9]{{0,3}}|\*)?");
    format!(r"(?:{literal}|{percent}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*")
}
