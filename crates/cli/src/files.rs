//! `tonnage inspect`, `tonnage stats` and `tonnage convert`: files of tensors, looked at and converted to others without loading them.

use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use tonnage::Bytes;
use tonnage::io::TensorFile;

/// Arguments of `tonnage inspect`.
#[derive(clap::Args)]
pub struct Inspect {
    /// A file of tensors (npy, npz, safetensors, idx, csv), a folder with a model in several files, or its index.
    file: PathBuf,
}

/// Arguments of `tonnage stats`.
#[derive(clap::Args)]
pub struct StatsArgs {
    /// A file of tensors, as for `tonnage inspect`.
    file: PathBuf,
    /// Only this tensor. May be given several times.
    #[arg(long, value_name = "NAME")]
    tensor: Vec<String>,
}

/// Arguments of `tonnage convert`.
#[derive(clap::Args)]
pub struct Convert {
    /// A file of tensors, as for `tonnage inspect`.
    from: PathBuf,
    /// The new file; the end of its name says what it becomes: .npy, .npz, .safetensors, .idx or .csv.
    to: PathBuf,
    /// Only this tensor.
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    /// Pack an npz: smaller, and slower.
    #[arg(long)]
    deflate: bool,
}

fn open(path: &PathBuf) -> Result<TensorFile, String> {
    TensorFile::open(path).map_err(text)
}

fn text(error: tonnage::Error) -> String {
    error.to_string()
}

/// The most that a column is wide: a file may hold names and shapes of any length, which then stand out of theirs.
const WIDEST: usize = 64;

/// How wide a column of some texts is.
fn width<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0).min(WIDEST)
}

/// A name as it is shown: what would move a terminal's cursor, or colour it, is written out.
pub fn printed(name: &str) -> String {
    let one = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    name.chars().map(one).collect()
}

/// `tonnage inspect`.
pub fn inspect(args: &Inspect) -> Result<ExitCode, String> {
    let file = open(&args.file)?;
    let names = file.names();
    let (mut lines, mut all) = (Vec::with_capacity(names.len()), Bytes::ZERO);
    for name in &names {
        let ty = match file.ty(name) {
            Ok(ty) => ty,
            // Others can still be listed.
            Err(error) => {
                lines.push((printed(name), error.to_string(), String::new()));
                continue;
            }
        };
        let bytes = ty.bytes("inspect").map_err(text)?;
        all = all.checked_add(bytes).ok_or("more bytes than any machine addresses")?;
        lines.push((printed(name), ty.to_string(), bytes.to_string()));
    }
    let wide = [
        width(lines.iter().map(|line| line.0.as_str())),
        width(lines.iter().map(|line| line.1.as_str())),
    ];
    for (name, ty, bytes) in &lines {
        say!("{name:0$}  {ty:1$}  {bytes}", wide[0], wide[1]);
    }
    let s = if lines.len() == 1 { "" } else { "s" };
    say!("{}: {} tensor{s}, {all}", file.format(), lines.len());
    Ok(ExitCode::SUCCESS)
}

/// `tonnage stats`.
pub fn stats(args: &StatsArgs) -> Result<ExitCode, String> {
    let file = open(&args.file)?;
    let names: Vec<&str> = match args.tensor.is_empty() {
        true => file.names(),
        false => args.tensor.iter().map(String::as_str).collect(),
    };
    let mut types = Vec::with_capacity(names.len());
    for name in &names {
        types.push(file.ty(name).map_err(text)?);
    }
    let all = types.iter().filter_map(|ty| ty.bytes("stats").ok()).map(Bytes::get).sum();
    let bar = bar(all);
    let printed: Vec<String> = names.iter().map(|name| printed(name)).collect();
    let wide = width(printed.iter().map(String::as_str)).max(6);
    let mut lines = vec![format!(
        "{:wide$}  {:>12} {:>12} {:>12} {:>8} {:>8}",
        "tensor", "min", "max", "mean", "NaN", "inf"
    )];
    for (name, printed) in names.iter().zip(&printed) {
        bar.set_message(printed.clone());
        let stats = file.stats(name, |bytes| bar.inc(bytes.get())).map_err(text)?;
        let number = |x: Option<tonnage::Scalar>| x.map_or("-".to_string(), shown);
        let mean = if stats.count == stats.nans { "-".to_string() } else { short(stats.mean()) };
        let (least, largest) = (number(stats.least), number(stats.largest));
        let (nans, infinities) = (stats.nans, stats.infinities);
        lines.push(format!(
            "{printed:wide$}  {least:>12} {largest:>12} {mean:>12} {nans:>8} {infinities:>8}"
        ));
    }
    bar.finish_and_clear();
    lines.iter().for_each(|line| say!("{line}"));
    Ok(ExitCode::SUCCESS)
}

/// Shows how far a pass over `bytes` bytes is.
fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:24} {binary_bytes}/{binary_total_bytes} {msg}")
    {
        bar.set_style(style);
    }
    bar
}

/// Whole numbers with every digit, others with six.
fn shown(x: tonnage::Scalar) -> String {
    match x {
        tonnage::Scalar::Float(x) => short(x),
        other => other.to_i128().to_string(),
    }
}

fn short(x: f64) -> String {
    let size = x.abs();
    if size == 0.0 || !size.is_finite() || (1e-3..1e6).contains(&size) {
        let text = format!("{x:.6}");
        return text.trim_end_matches('0').trim_end_matches('.').to_string();
    }
    format!("{x:.5e}")
}

/// `tonnage convert`.
pub fn convert(args: &Convert) -> Result<ExitCode, String> {
    let file = open(&args.from)?;
    let names = args.tensor.as_deref().map_or_else(|| file.names(), |name| vec![name]);
    let types = names.iter().filter_map(|name| file.ty(name).ok());
    let bar = bar(types.filter_map(|ty| ty.bytes("convert").ok()).map(Bytes::get).sum());
    let shown = bar.clone();
    let tell = move |bytes: Bytes| shown.inc(bytes.get());
    let saved = file.save_as(&args.to, args.tensor.as_deref(), args.deflate, tell);
    bar.finish_and_clear();
    saved.map_err(text)?;
    let made = open(&args.to)?;
    let s = if made.names().len() == 1 { "" } else { "s" };
    say!("saved: {}, {} tensor{s}", args.to.display(), made.names().len());
    Ok(ExitCode::SUCCESS)
}
