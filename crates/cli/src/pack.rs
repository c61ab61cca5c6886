//! `tonnage pack`: an offset for every buffer of a table, in the smallest arena found.

use std::collections::HashMap;
use std::iter;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tonnage::io::{Csv, CsvRow, can_save, save_text};
use tonnage::report::csv_row;
use tonnage_core::Bytes;
use tonnage_plan::offsets::{Effort, Item, Packing, bound, pack, pack_within};

/// The columns that are read. Others are carried over to the output.
const COLUMNS: [&str; 4] = ["id", "lower", "upper", "size"];

/// Arguments of `tonnage pack`.
#[derive(clap::Args)]
pub struct PackArgs {
    /// A CSV file with the columns id, lower, upper and size, in any order: a buffer takes
    /// `size` bytes from step `lower` up to, not including, step `upper`.
    file: PathBuf,
    /// The largest arena allowed, such as 1048576 or 1MiB; without it, the smallest is looked for.
    #[arg(long, value_name = "BYTES")]
    capacity: Option<Bytes>,
    /// How long to look, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    time_limit: Duration,
    /// Where to write the table with a column `offset` added.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "not a span of time".to_string())
}

/// Runs the command; an `Err` is a mistake in the input, on one line.
pub fn run(args: &PackArgs) -> Result<ExitCode, String> {
    if let Some(output) = &args.output {
        can_save(output).map_err(|error| error.to_string())?;
    }
    let table = Buffers::read(&args.file)?;
    let start = Instant::now();
    let say = |error: tonnage_core::Error| format!("{}: {error}", args.file.display());
    let late = || start.elapsed() >= args.time_limit;
    let packing = best(&table.items, args.capacity, &late).map_err(say)?;
    let Some(packing) = packing else {
        let least = bound(&table.items).map_err(say)?;
        let capacity = args.capacity.map_or(0, Bytes::get);
        if least > capacity {
            eprintln!("no packing within {capacity} bytes: {least} are live at once");
        } else {
            let seconds = start.elapsed().as_secs_f64();
            eprintln!(
                "no packing within {capacity} bytes found in {seconds:.1} s; at most {least} are live at once"
            );
        }
        return Ok(ExitCode::from(1));
    };
    if let Some(output) = &args.output {
        let text = table.with_offsets(&packing);
        save_text(output, &text).map_err(|error| error.to_string())?;
    }
    say!("buffers: {}", table.items.len());
    say!("arena: {} ({})", packing.arena, Bytes::new(packing.arena));
    say!("lower bound: {} ({})", packing.bound, Bytes::new(packing.bound));
    if args.capacity.is_none() {
        say!("proved smallest: {}", if packing.optimal { "yes" } else { "no" });
    }
    Ok(ExitCode::SUCCESS)
}

/// A packing within the capacity, or else the smallest: looked for by a thread for each core, in orders of their own, until
/// one of them is done or time is up.
fn best(
    items: &[Item],
    capacity: Option<Bytes>,
    late: &(dyn Fn() -> bool + Sync),
) -> tonnage_core::Result<Option<Packing>> {
    let done = AtomicBool::new(false);
    let look = &|luck: u64| {
        let effort = Effort { luck, ..Effort::UNLIMITED };
        let mut stop = || done.load(Ordering::Relaxed) || late();
        let found = match capacity {
            None => pack(items, effort, &mut stop).map(Some),
            Some(capacity) => pack_within(items, capacity.get(), effort, &mut stop),
        };
        // Whether it found the best, proved that there is none or failed: there is nothing left for the others.
        done.store(true, Ordering::Relaxed);
        found
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let all = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|luck| scope.spawn(move || look(luck))).collect();
        let first = look(0);
        let others = others.into_iter().filter_map(|thread| thread.join().ok());
        iter::once(first).chain(others).collect::<tonnage_core::Result<Vec<_>>>()
    })?;
    Ok(all.into_iter().flatten().min_by_key(|packing| (packing.arena, !packing.optimal)))
}

/// The table as read, and the items it stands for.
struct Buffers {
    header: Vec<String>,
    rows: Vec<CsvRow>,
    items: Vec<Item>,
}

impl Buffers {
    fn read(file: &Path) -> Result<Buffers, String> {
        let at = |line: usize, what: &str| format!("{}:{line}: {what}", file.display());
        let mut rows = Csv::new().rows(file).map_err(|error| error.to_string())?.into_iter();
        let Some(header) = rows.next() else {
            return Err(at(1, "empty; the first line should be id,lower,upper,size"));
        };
        let mut indices = [0; 4];
        for (index, column) in indices.iter_mut().zip(COLUMNS) {
            let mut found = header.fields.iter().enumerate().filter(|(_, field)| *field == column);
            *index = match (found.next(), found.next()) {
                (Some((index, _)), None) => index,
                (None, _) => return Err(at(header.line, &format!("no column `{column}`"))),
                _ => return Err(at(header.line, &format!("two columns `{column}`"))),
            };
        }
        if header.fields.iter().any(|field| field == "offset") {
            return Err(at(header.line, "there is a column `offset` already; remove it"));
        }
        let rows: Vec<CsvRow> = rows.collect();
        let mut spans = Vec::with_capacity(rows.len());
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for row in &rows {
            let (width, fields) = (header.fields.len(), row.fields.len());
            if fields != width {
                let what = format!("{fields} fields where the header has {width}");
                return Err(at(row.line, &what));
            }
            let id = row.fields[indices[0]].as_str();
            if let Some(first) = seen.insert(id, row.line) {
                return Err(at(row.line, &format!("id `{id}` was used on line {first} already")));
            }
            let number = |column: usize| {
                let text = row.fields[indices[column]].as_str();
                number(text)
                    .map_err(|why| at(row.line, &format!("{} `{text}` {why}", COLUMNS[column])))
            };
            let (lower, upper, size) = (number(1)?, number(2)?, number(3)?);
            if upper < lower {
                return Err(at(row.line, &format!("upper {upper} is below lower {lower}")));
            }
            spans.push((lower, upper, size));
        }
        drop(seen);
        let items = ranked(&spans).ok_or_else(|| at(header.line, "more than 2^31 buffers"))?;
        Ok(Buffers { header: header.fields, rows, items })
    }

    fn with_offsets(&self, packing: &Packing) -> String {
        let mut out = String::new();
        csv_row(&mut out, self.header.iter().map(String::as_str).chain(["offset"]));
        for (row, offset) in self.rows.iter().zip(&packing.offsets) {
            let offset = offset.to_string();
            csv_row(&mut out, row.fields.iter().map(String::as_str).chain([offset.as_str()]));
        }
        out
    }
}

fn number(text: &str) -> Result<u64, &'static str> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("is not a whole number");
    }
    if digits.len() < text.len() {
        return Err("is negative");
    }
    text.parse().map_err(|_| "is 2^64 or more")
}

/// Items whose steps are counted off among the steps that occur: files use any 64-bit clock.
fn ranked(spans: &[(u64, u64, u64)]) -> Option<Vec<Item>> {
    let mut steps: Vec<u64> = spans.iter().flat_map(|&(lower, upper, _)| [lower, upper]).collect();
    steps.sort_unstable();
    steps.dedup();
    u32::try_from(steps.len()).ok()?;
    let rank = |step: u64| steps.partition_point(|&other| other < step) as u32;
    let item = |&(lower, upper, size): &(u64, u64, u64)| Item {
        lower: rank(lower),
        upper: rank(upper),
        size,
    };
    Some(spans.iter().map(item).collect())
}
