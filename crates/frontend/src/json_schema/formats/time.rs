//! Dates, times and durations: RFC 3339, sections 5.6 and appendix A.

/// Returns the days of the Gregorian calendar.
pub(super) fn date() -> String {
    let long = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])";
    let short = "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)";
    let february = "02-(?:0[1-9]|1[0-9]|2[0-8])";
    // Years divisible by four; a year that ends in 00 must be divisible by 400.
    let leap = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
    format!("(?:[0-9]{{4}}-(?:{long}|{short}|{february})|{leap}-02-29)")
}

/// Returns the times of day with a time zone.
pub(super) fn time() -> String {
    let (hour, minute) = ("(?:[01][0-9]|2[0-3])", "[0-5][0-9]");
    let part = r"(?:\.[0-9]+)?";
    format!(
        "(?:{hour}:{minute}:[0-5][0-9]{part}(?:[Zz]|[+-]{hour}:{minute})|23:59:60{part}(?:[Zz]|[+-]00:00))"
    )
}

/// Like [`time()`], with a leap second wherever some time zone might have one.
pub(super) fn wide_time() -> String {
    let (hour, minute) = ("(?:[01][0-9]|2[0-3])", "[0-5][0-9]");
    format!(r"{hour}:{minute}:(?:[0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|[+-]{hour}:{minute})")
}

/// Returns the parts in order and without gaps: years, months and days, then hours, minutes and seconds; or weeks.
pub(super) fn duration() -> String {
    let days = "(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)";
    let hours = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
    format!("P(?:[0-9]+W|{days}(?:{hours})?|{hours})")
}
