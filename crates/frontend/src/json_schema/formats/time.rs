//! Dates, times and durations: RFC 3339, sections 5.6 and appendix A.

/// A day that the Gregorian calendar has.
pub(super) fn date() -> String {
    let long = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])";
    let short = "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)";
    let february = "02-(?:0[1-9]|1[0-9]|2[0-8])";
    // A multiple of four, and of 400 if it ends in 00.
    let leap = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
    format!("(?:[0-9]{{4}}-(?:{long}|{short}|{february})|{leap}-02-29)")
}

/// A time of day with its zone.
pub(super) fn time() -> String {
    let (hour, minute) = ("(?:[01][0-9]|2[0-3])", "[0-5][0-9]");
    let part = r"(?:\.[0-9]+)?";
    format!(
        "(?:{hour}:{minute}:[0-5][0-9]{part}(?:[Zz]|[+-]{hour}:{minute})|23:59:60{part}(?:[Zz]|[+-]00:00))"
    )
}

/// The same with a leap second wherever a time zone might have one.
pub(super) fn wide_time() -> String {
    let (hour, minute) = ("(?:[01][0-9]|2[0-3])", "[0-5][0-9]");
    format!(r"{hour}:{minute}:(?:[0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|[+-]{hour}:{minute})")
}

/// Parts in order, without gaps: years, months and days, then hours, minutes and seconds; or weeks.
pub(super) fn duration() -> String {
    let days = "(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)";
    let hours = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
    format!("P(?:[0-9]+W|{days}(?:{hours})?|{hours})")
}
