//! Reports about memory as files: the page for a browser, and exports for other tools.

use std::path::Path;

pub use tonnage_report::chart::is_coloured;
pub use tonnage_report::{Along, Bar, BufferOwner, Picture, Point, Report, Tick, csv_row};

use tonnage_core::Result;

use crate::io::{bad_file, save_bytes};

/// Saves a picture in the format that the file's name says: `.csv`, `.json`, `.trace.json` for Perfetto and chrome://tracing, `.pb.gz` for
/// pprof. The file appears whole or not at all.
///
/// ```
/// use tonnage::report::{Picture, save};
/// use tonnage::{DType, Elementwise, Tensor, function};
/// let f = function(|x: Tensor| x.matmul(&x.t()?)?.tanh());
/// let plan = f.plan(&Tensor::spec(DType::F32, [256, 64]))?;
/// let path = std::env::temp_dir().join(format!("tonnage-{}.trace.json", std::process::id()));
/// save(&path, &Picture::of_plan("f", &plan))?;
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where the name says no format, or the file cannot be written.
pub fn save(path: impl AsRef<Path>, picture: &Picture) -> Result<()> {
    let path = path.as_ref();
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let ends = |end: &str| name.as_ref().is_some_and(|name| name.ends_with(end));
    let bytes = match () {
        () if ends(".trace.json") => picture.trace().into_bytes(),
        () if ends(".json") => picture.json().into_bytes(),
        () if ends(".csv") => picture.csv().into_bytes(),
        () if ends(".pb.gz") => picture.pprof(),
        () => {
            let help = "end its name in .csv, .json, .trace.json or .pb.gz";
            return Err(bad_file(path, "the name says no format", help));
        }
    };
    save_bytes(path, &bytes)
}

/// Saves a report as a page of HTML, whole or not at all.
///
/// ```
/// use tonnage::report::{Report, save_html};
/// use tonnage::{DType, Elementwise, Tensor, function};
/// let f = function(|x: Tensor| x.matmul(&x.t()?)?.tanh());
/// let plan = f.plan(&Tensor::spec(DType::F32, [256, 64]))?;
/// let path = std::env::temp_dir().join(format!("tonnage-{}.html", std::process::id()));
/// save_html(&path, &Report::new("f").plan(&plan))?;
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where the file cannot be written.
pub fn save_html(path: impl AsRef<Path>, report: &Report) -> Result<()> {
    save_bytes(path, report.html().as_bytes())
}
