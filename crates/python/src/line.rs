//! The user's Python line, for the ledger, plans and errors.
//!
//! Frames of this package, and of Keras, are passed over: what a layer does is done where the user called it. Lines are looked up by
//! code object and line number, so that after the first time a line costs a call of `sys._getframe` and a look.
//!
//! Decision: `docs/decisions/python-holds-no-mechanics.md`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tonnage::Source;
use tonnage_core::OpenLayer;

/// Programs that make code as they run make no end of it: then all is looked up anew.
const MOST: usize = 20_000;

/// Addresses and line numbers are not adversarial: a multiplicative hash spreads them well enough, in a fraction of the time.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_i32(&mut self, word: i32) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<AddressHasher>>;

#[derive(Default)]
struct KnownLines {
    /// Code objects, held so that no other one takes the address, and whether they are passed over.
    codes: Map<usize, (Py<PyAny>, bool)>,
    lines: Map<(usize, i32), Source>,
}

thread_local! {
    static KNOWN: RefCell<KnownLines> = RefCell::default();
}

static GET_FRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static FOLDERS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says where files are whose lines are not the user's: this package's own, and those of Keras and what that calls back through.
#[pyfunction]
pub fn pass_over_folder(folder: String) {
    let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !folders.contains(&folder) {
        folders.push(folder);
    }
}

thread_local! {
    static OPEN: RefCell<Vec<Option<OpenLayer>>> = const { RefCell::new(Vec::new()) };
}

/// Counts what is done from here on to a layer of that name inside of the one that is open, until [`leave_layer`]. No name is no layer.
#[pyfunction]
pub fn enter_layer(name: &str) {
    let open = (!name.is_empty()).then(|| Source::open_layer(name));
    OPEN.with_borrow_mut(|all| all.push(open));
}

/// As it was before the last [`enter_layer`].
#[pyfunction]
pub fn leave_layer() {
    drop(OPEN.with_borrow_mut(Vec::pop));
}

/// The line of the user's program that runs now; none where there is no frame.
pub fn here(py: Python<'_>) -> Option<Source> {
    let get = GET_FRAME
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("sys")?.getattr("_getframe")?.unbind()))
        .ok()?;
    let mut frame = get.bind(py).call0().ok()?;
    loop {
        let code = frame.getattr(pyo3::intern!(py, "f_code")).ok()?;
        if !is_ours(&code) {
            let line = frame.getattr(pyo3::intern!(py, "f_lineno")).ok()?;
            return Some(source(&code, line.extract().ok()?));
        }
        let back = frame.getattr(pyo3::intern!(py, "f_back")).ok()?;
        if back.is_none() {
            return None;
        }
        frame = back;
    }
}

fn is_ours(code: &Bound<'_, PyAny>) -> bool {
    let address = code.as_ptr() as usize;
    KNOWN.with_borrow_mut(|known| {
        if let Some((_, ours)) = known.codes.get(&address) {
            return *ours;
        }
        if known.codes.len() >= MOST {
            *known = KnownLines::default();
        }
        let file = file(code);
        let folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        // The language enters contexts of ours through a module of its own.
        let ours = folders.iter().any(|folder| file.starts_with(folder))
            || file.ends_with("contextlib.py");
        known.codes.insert(address, (code.clone().unbind(), ours));
        ours
    })
}

fn source(code: &Bound<'_, PyAny>, line: i32) -> Source {
    KNOWN.with_borrow_mut(|known| {
        let made = || Source::of_line(&file(code), u32::try_from(line).unwrap_or(0));
        *known.lines.entry((code.as_ptr() as usize, line)).or_insert_with(made)
    })
}

fn file(code: &Bound<'_, PyAny>) -> String {
    let name = code.getattr(pyo3::intern!(code.py(), "co_filename"));
    name.and_then(|name| name.extract()).unwrap_or_default()
}
