//! Describes the machine of a run.

/// Returns the processor and the number of cores, as far as the system reports them.
pub fn describe() -> String {
    let model = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{}, {cores} cores, {}",
        model.unwrap_or_else(|| "unknown processor".into()),
        std::env::consts::OS
    )
}
