//! The machine that numbers come from, as one sentence.

/// Processor, cores and memory, as far as the system tells.
pub(crate) fn describe() -> String {
    let field = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches([':', ' ', '\t']).trim().to_owned())
    };
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|kilobytes| kilobytes.strip_suffix("kB")?.trim().parse::<f64>().ok())
        .map_or(String::new(), |kilobytes| format!(", {:.0} GB of memory", kilobytes / 1e6));
    format!(
        "{processor}, {cores} cores{memory}, {}. Seconds are CPU time, reading included; each row is its own process.",
        std::env::consts::OS
    )
}

/// How many processes wanted to run in the last minutes, as the system tells it.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(", ")
}
