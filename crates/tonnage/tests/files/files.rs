//! Tensors in files: what NumPy wrote is read, what is written is what NumPy would write, and files that lie are refused without taking memory.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::fs;
use std::path::{Path, PathBuf};

use tonnage::io::{
    Csv, FileTensor, Npz, Order, SafeTensors, parse_npy, read_idx, read_npy, save_idx, save_npy,
    save_npz, save_npz_deflated, save_raw, save_safetensors, save_sharded,
};
use tonnage::train::{Checkpoints, Loading, Position, load_weights, save_weights};
use tonnage::{
    Bytes, DType, Elementwise, ErrorKind, Tensor, Variable, memory, range, tensor, zeros,
};

use crate::common::{Folder, in_use, own_context};

/// One that NumPy made.
fn numpy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.cast(DType::F64).unwrap().to_vec().unwrap()
}

fn counted(n: usize) -> Vec<f64> {
    (0..n).map(|i| i as f64).collect()
}

/// A count of that dtype and shape, as the script makes it.
fn count(dtype: DType, shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    let all = range(0i64, n as i64, 1).unwrap();
    let all = if dtype == DType::Bool { all.modulo(2i64).unwrap() } else { all };
    all.cast(dtype).unwrap().reshape(shape).unwrap()
}

const NPY: [(&str, DType); 13] = [
    ("f8", DType::F64),
    ("f4", DType::F32),
    ("f2", DType::F16),
    ("bf16", DType::BF16),
    ("i8", DType::I64),
    ("i4", DType::I32),
    ("i2", DType::I16),
    ("i1", DType::I8),
    ("u8", DType::U64),
    ("u4", DType::U32),
    ("u2", DType::U16),
    ("u1", DType::U8),
    ("b1", DType::Bool),
];

#[test]
fn npy_files_of_every_dtype_are_read_and_written_as_numpy_writes_them() {
    let _context = own_context();
    let folder = Folder::new("npy");
    let path = folder.0.join("x.npy");
    for (name, dtype) in NPY {
        let file = numpy(&format!("{name}.npy"));
        let own = count(dtype, &[2, 3]);
        let read = read_npy(&file).unwrap();
        assert_eq!((read.ty(), numbers(&read)), (own.ty(), numbers(&own)), "{name}");
        save_npy(&path, &own).unwrap();
        assert!(fs::read(&path).unwrap() == fs::read(&file).unwrap(), "{name}");
        assert_eq!(numbers(&parse_npy(&fs::read(&file).unwrap()).unwrap()), numbers(&own));
    }
    for (name, own) in [
        ("scalar", tensor(7.5f64).unwrap()),
        ("empty", zeros([3, 0, 2]).unwrap()),
        ("one_axis", count(DType::I32, &[5])),
    ] {
        save_npy(&path, &own).unwrap();
        let file = numpy(&format!("{name}.npy"));
        assert!(fs::read(&path).unwrap() == fs::read(&file).unwrap(), "{name}");
        assert_eq!(numbers(&read_npy(file).unwrap()), numbers(&own), "{name}");
    }
    for name in ["version_2.npy", "version_3.npy"] {
        assert_eq!(numbers(&read_npy(numpy(name)).unwrap()), counted(6), "{name}");
    }
}

#[test]
fn columns_first_and_high_bytes_first_are_read_without_a_copy() {
    let _context = own_context();
    let before = in_use();
    memory::reset_peak("cpu:0").unwrap();
    let read = read_npy(numpy("columns_first.npy")).unwrap();
    let peak = memory::info("cpu:0").unwrap().peak;
    assert_eq!(peak, in_use(), "one buffer, and nothing beside it");
    assert_eq!(numbers(&read), counted(24));
    assert_eq!(read.ty().to_string(), "f32[4, 3, 2]");
    let file = FileTensor::npy(numpy("columns_first.npy")).unwrap();
    assert_eq!(numbers(&file.rows(1..3).unwrap()), (6..18).map(f64::from).collect::<Vec<_>>());

    assert_eq!(numbers(&read_npy(numpy("big_endian.npy")).unwrap()), counted(6));
    let both = FileTensor::npy(numpy("big_endian_columns_first.npy")).unwrap();
    assert_eq!(numbers(&both.read().unwrap()), counted(12));
    assert_eq!(numbers(&both.rows(3..4).unwrap()), [9.0, 10.0, 11.0]);
    assert!(both.rows(4..4).unwrap().to_vec::<i64>().unwrap().is_empty());
    let error = both.rows(3..5).unwrap_err().to_string();
    assert!(error.contains("i64[4, 3]") && error.contains("3..5"), "{error}");

    // A transposed matrix goes out as it lies, as NumPy does it.
    let folder = Folder::new("columns");
    let path = folder.0.join("x.npy");
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let lies = tensor(values).unwrap().reshape([2, 3, 4]).unwrap().transpose(&[2, 1, 0]).unwrap();
    save_npy(&path, &lies).unwrap();
    assert!(fs::read(&path).unwrap().windows(21).any(|w| w == b"'fortran_order': True"));
    assert_eq!(numbers(&read_npy(&path).unwrap()), numbers(&lies));
    drop((read, lies));
    assert_eq!(in_use(), before);
}

#[test]
fn npz_files_are_read_and_written_stored_and_deflated() {
    let _context = own_context();
    let stored = Npz::open(numpy("stored.npz")).unwrap();
    assert_eq!(stored.names().collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(numbers(&stored.read("x").unwrap()), counted(12));
    assert_eq!(stored.read("y").unwrap().to_vec::<i64>().unwrap(), [0, 1]);
    let deflated = Npz::open(numpy("deflated.npz")).unwrap();
    assert_eq!(numbers(&deflated.read("x").unwrap()), counted(1200));
    assert_eq!(numbers(&deflated.read("y").unwrap()), counted(6));

    let folder = Folder::new("npz");
    let (plain, small) = (folder.0.join("plain.npz"), folder.0.join("small.npz"));
    let (x, y) = (count(DType::F32, &[100, 30]), count(DType::BF16, &[4]));
    save_npz(&plain, [("x", &x), ("y", &y)]).unwrap();
    save_npz_deflated(&small, [("x", &x), ("y", &y)]).unwrap();
    for path in [&plain, &small] {
        let file = Npz::open(path).unwrap();
        for (name, own) in [("x", &x), ("y", &y)] {
            let back = file.read(name).unwrap();
            assert_eq!((back.ty(), numbers(&back)), (own.ty(), numbers(own)));
        }
    }
    let bytes = |path: &Path| fs::metadata(path).unwrap().len();
    assert!(bytes(&small) * 5 < bytes(&plain) * 4);
    let error = save_npz(&plain, [("x", &x), ("x", &y)]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BadFile { .. }), "{error}");
    assert_eq!(numbers(&Npz::open(&plain).unwrap().read("x").unwrap()), counted(3000));

    // A byte that changes in the elements is seen by the checksum.
    let mut damaged = fs::read(&plain).unwrap();
    damaged[5000] ^= 1;
    fs::write(&plain, damaged).unwrap();
    let held = in_use();
    let error = Npz::open(&plain).unwrap().read("x").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BadFile { .. }), "{error}");
    assert_eq!(in_use(), held);
}

#[test]
fn idx_and_raw_files_are_written_and_read_in_rows() {
    let _context = own_context();
    let folder = Folder::new("raw");
    let path = folder.0.join("x");
    for dtype in [DType::U8, DType::I8, DType::I16, DType::I32, DType::F32, DType::F64] {
        let own = count(dtype, &[5, 2]);
        save_idx(&path, &own).unwrap();
        let back = read_idx(&path).unwrap();
        assert_eq!((back.ty(), numbers(&back)), (own.ty(), numbers(&own)));
        assert_eq!(numbers(&FileTensor::idx(&path).unwrap().rows(2..3).unwrap()), [4.0, 5.0]);
    }
    let error = save_idx(&path, &count(DType::I64, &[2])).unwrap_err().to_string();
    assert!(error.contains("cannot hold i64[2]"), "{error}");
    for columns_first in [false, true] {
        for big_endian in [false, true] {
            for (_, dtype) in NPY {
                let order = Order { columns_first, big_endian };
                let own = count(dtype, &[4, 3]);
                save_raw(&path, &own, order).unwrap();
                let file = FileTensor::raw(&path, 0, dtype, &[4, 3], order).unwrap();
                assert_eq!(numbers(&file.read().unwrap()), numbers(&own), "{order:?} {dtype}");
                let rows = file.rows(1..2).unwrap();
                assert_eq!(numbers(&rows), numbers(&own)[3..6], "{order:?} {dtype}");
            }
        }
    }
    // More than one piece has its bytes swapped.
    let network = Order { big_endian: true, ..Order::default() };
    save_raw(&path, &count(DType::I32, &[5000]), network).unwrap();
    let back = FileTensor::raw(&path, 400, DType::I32, &[4900], network).unwrap().read().unwrap();
    assert_eq!(numbers(&back), counted(5000)[100..]);
    let short = FileTensor::raw(&path, 400, DType::I32, &[4901], network).unwrap_err().to_string();
    assert!(short.contains("19604") && short.contains("19600"), "{short}");
    assert!(FileTensor::raw(&path, u64::MAX, DType::U8, &[1], network).is_err());
}

#[test]
fn tables_of_numbers_are_read_and_written() {
    let _context = own_context();
    let table = Csv::new().header().dtype(DType::F64).read(numpy("table.csv")).unwrap();
    assert_eq!(table.to_vec2::<f64>().unwrap(), [[0.0, 0.25], [0.5, 0.75], [1.0, 1.25]]);
    assert_eq!(Csv::new().names(numpy("table.csv")).unwrap(), ["a", "b"]);

    let folder = Folder::new("csv");
    let path = folder.0.join("x.csv");
    let csv = Csv::new().separator(b';');
    let floats = tensor([[0.1f32, -1e-30], [f32::MAX, f32::INFINITY]]).unwrap();
    csv.save(&path, &floats, &[]).unwrap();
    assert_eq!(numbers(&csv.read(&path).unwrap()), numbers(&floats));
    for (_, dtype) in NPY {
        let own = count(dtype, &[3, 4]);
        csv.save(&path, &own.t().unwrap(), &["x", "y", "z"]).unwrap();
        let back = csv.header().dtype(dtype).read(&path).unwrap();
        let want = own.t().unwrap();
        assert_eq!((back.ty(), numbers(&back)), (want.ty(), numbers(&want)));
    }
    let large = tensor([[i64::MAX], [i64::MIN]]).unwrap();
    csv.save(&path, &large, &[]).unwrap();
    let back = csv.dtype(DType::I64).read(&path).unwrap();
    assert_eq!(back.to_vec::<i64>().unwrap(), [i64::MAX, i64::MIN]);

    let parsed = Csv::new().missing(-1.0).parse("\u{feff}1, \"2\"\r\n\r\n3,\r\n").unwrap();
    assert_eq!(parsed.to_vec2::<f32>().unwrap(), [[1.0, 2.0], [3.0, -1.0]]);
    for (text, word) in [
        ("", "no row"),
        ("1,2\n3\n", "line 2 has 1 fields, and the first row 2"),
        ("a,b\n1,2\n", "say `header`"),
        ("1,2\n3,\n", "`missing`"),
        ("1,2\n\n3,4x\n", "line 3, column 2: `4x`"),
    ] {
        let error = Csv::new().parse(text).unwrap_err().to_string();
        assert!(error.contains(word), "{text:?}: {error}");
    }
    let error = Csv::new().dtype(DType::U8).parse("256").unwrap_err().to_string();
    assert!(error.contains("no number of u8"), "{error}");
    let names = csv.save(&path, &large, &["a", "b"]).unwrap_err().to_string();
    assert!(names.contains("1 columns, and 2 names"), "{names}");
}

#[test]
fn a_model_in_several_files_is_one_and_its_index_stays_in_its_folder() {
    let _context = own_context();
    let folder = Folder::new("shards");
    let named: Vec<(String, Tensor)> =
        (0..5).map(|i| (format!("w{i}"), count(DType::F32, &[10 * (i + 1)]))).collect();
    let all = || named.iter().map(|(name, tensor)| (name.as_str(), tensor));
    save_sharded(&folder.0, all(), &[("made by", "a test")], "240B".parse().unwrap()).unwrap();
    let index = folder.0.join("model.safetensors.index.json");
    for path in [&folder.0, &index] {
        let model = SafeTensors::open(path).unwrap();
        assert_eq!(model.names().collect::<Vec<_>>(), ["w0", "w1", "w2", "w3", "w4"]);
        assert_eq!(model.note("made by"), Some("a test"));
        for (name, own) in all() {
            assert_eq!(numbers(&model.read(name).unwrap()), numbers(own));
        }
        assert_eq!(numbers(&model.tensor("w4").unwrap().rows(3..5).unwrap()), [3.0, 4.0]);
    }
    // 40 + 80 + 120 bytes, then 160, then 200.
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 4);
    // Saved again and again, in other sizes too: the old files go.
    for (most, files) in [("240B", 4), ("240B", 4), ("10KiB", 2), ("240B", 4)] {
        save_sharded(&folder.0, all(), &[("made by", "a test")], most.parse().unwrap()).unwrap();
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), files);
        assert_eq!(SafeTensors::open(&folder.0).unwrap().names().count(), 5);
    }

    let outside = folder.0.parent().unwrap().join("tonnage-outside.safetensors");
    save_safetensors(&outside, all().take(1), &[]).unwrap();
    for (text, word) in [
        ("{", "no index"),
        (r#"{"weight_map":{"w0":"../tonnage-outside.safetensors"}}"#, "not beside it"),
        (r#"{"weight_map":{"w0":"/etc/passwd"}}"#, "not beside it"),
        (r#"{"weight_map":{"w0":".."}}"#, "not beside it"),
        (r#"{"weight_map":{"w0":""}}"#, "not beside it"),
        (r#"{"weight_map":{"w0":"gone.safetensors"}}"#, "gone.safetensors"),
        (r#"{"weight_map":{"v":"model-00001-of-00003.safetensors"}}"#, "where it is not"),
    ] {
        fs::write(&index, text).unwrap();
        let error = SafeTensors::open(&index).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BadFile { .. }), "{error}");
        assert!(error.to_string().contains(word), "{text}: {error}");
    }
    fs::remove_file(outside).unwrap();
}

/// What a save that ends in the middle leaves is the old model.
#[test]
fn a_model_in_several_files_that_cannot_be_saved_whole_leaves_the_old_one() {
    let _context = own_context();
    let folder = Folder::new("half");
    let old = count(DType::F32, &[30]);
    let most = || "130B".parse().unwrap();
    save_sharded(&folder.0, [("a", &old), ("b", &old)], &[], most()).unwrap();
    let before: Vec<(String, Vec<u8>)> = contents(&folder.0);
    assert_eq!(before.len(), 3);
    let new = count(DType::F32, &[31]);
    // The second file cannot be put in place: something that is no file has its name, whichever that will be.
    let taken: Vec<_> =
        (0..4).map(|i| folder.0.join(format!("model-{i}-00002-of-00002.safetensors"))).collect();
    for path in &taken {
        fs::create_dir(path).unwrap();
        fs::write(path.join("x"), "").unwrap();
    }
    let error = save_sharded(&folder.0, [("a", &new), ("b", &new)], &[], most()).unwrap_err();
    assert!(error.to_string().contains("cannot be"), "{error}");
    for path in &taken {
        fs::remove_dir_all(path).unwrap();
    }
    assert_eq!(contents(&folder.0), before);
    let twice = save_sharded(&folder.0, [("a", &new), ("a", &new)], &[], most()).unwrap_err();
    assert!(twice.to_string().contains("two tensors"), "{twice}");
    assert_eq!(contents(&folder.0), before);
    save_sharded(&folder.0, [("a", &new), ("b", &new)], &[], most()).unwrap();
    let model = SafeTensors::open(&folder.0).unwrap();
    assert_eq!(numbers(&model.read("b").unwrap()), counted(31));
}

/// What the ledger sees of a large model that is saved and loaded: it, and at most one of its tensors.
#[test]
fn saving_and_loading_take_one_tensor_above_the_model() {
    let _context = own_context();
    let folder = Folder::new("above");
    let path = folder.0.join("w.safetensors");
    let made = |value: Option<f32>| -> Vec<Variable> {
        let one = |i: usize| {
            let own = Variable::new(&format!("w{i}"), zeros([256, 1024]).unwrap()).unwrap();
            if let Some(value) = value {
                own.assign_add(&tonnage::full(value, DType::F32, [256, 1024]).unwrap()).unwrap();
            }
            own
        };
        (0..8).map(one).collect()
    };
    let above = |run: &dyn Fn()| {
        let before = in_use();
        memory::reset_peak("cpu:0").unwrap();
        run();
        memory::info("cpu:0").unwrap().peak - before
    };
    let one: Bytes = "1MiB".parse().unwrap();
    {
        let model = made(Some(3.0));
        assert_eq!(above(&|| save_weights(&path, &model).unwrap()), Bytes::ZERO);
    }
    // One that has no bytes yet is written out for it, a tensor at a time.
    let model = made(None);
    let blank = folder.0.join("blank.safetensors");
    assert_eq!(above(&|| save_weights(&blank, &model).unwrap()), one);
    let most = above(&|| drop(load_weights(&path, &model, Loading::Strict).unwrap()));
    assert!(most <= Bytes::new(9 * one.get()), "{most}");
    // The same where it had bytes before.
    let most = above(&|| drop(load_weights(&blank, &model, Loading::Strict).unwrap()));
    assert!(most <= one, "{most}");
    let named: Vec<_> = model.iter().map(|v| (v.name().to_string(), v.clone())).collect();
    let checkpoints = Checkpoints::new(folder.0.join("saved"));
    let position = Position { step: 1, epoch: 0, batch: 0 };
    assert_eq!(above(&|| checkpoints.save(&named, position).unwrap()), Bytes::ZERO);
    let most = above(&|| assert!(checkpoints.restore(&named).unwrap().is_some()));
    assert!(most <= one, "{most}");
}

/// The files of a folder.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let all = fs::read_dir(folder).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    });
    let mut all: Vec<_> = all.collect();
    all.sort();
    all
}

#[test]
fn npy_files_that_lie_are_refused_without_taking_memory() {
    let _context = own_context();
    let folder = Folder::new("npy-lies");
    let path = folder.0.join("x.npy");
    let with = |dict: &str, elements: usize| {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((dict.len() as u16).to_le_bytes());
        bytes.extend(dict.as_bytes());
        bytes.extend(std::iter::repeat_n(0, elements));
        bytes
    };
    let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
    assert!(parse_npy(&with(good, 8)).is_ok());
    memory::reset_peak("cpu:0").unwrap();
    let before = memory::info("cpu:0").unwrap().peak;
    for shape in ["(1073741824,)", "(18446744073709551615, 2)", "(99999999999999999999,)", "(2"] {
        for columns in ["True", "False"] {
            let dict =
                format!("{{'descr': '<f4', 'fortran_order': {columns}, 'shape': {shape}, }}");
            refused(&path, &with(&dict, 8));
        }
    }
    for bytes in [
        vec![],
        b"\x93NUMPY".to_vec(),
        b"\x93NUMPY\x09\x00\x10\x00".to_vec(),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(),
        with(good, 7),
        with("[]", 8),
        with("{'descr': '<f4', 'fortran_order': False}", 8),
        with("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}", 8),
        with("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8),
        with("{'descr': '?f4', 'fortran_order': False, 'shape': (2,)}", 8),
        with("{'descr': '', 'fortran_order': False, 'shape': (2,)}", 8),
        with("{'descr': 'é', 'fortran_order': False, 'shape': (2,)}", 8),
        with("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8),
        with("{'descr': '<f4", 8),
    ] {
        refused(&path, &bytes);
    }
    for (name, word) in [("complex", "<c8"), ("records", "records"), ("objects", "|O")] {
        let error = read_npy(numpy(&format!("{name}.npy"))).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    assert!(read_npy(&folder.0).unwrap_err().to_string().contains("folder"));
    assert!(Npz::open(numpy("f4.npy")).unwrap_err().to_string().contains("no npz file"));
    let cut = fs::read(numpy("deflated.npz")).unwrap();
    for length in [0, 10, cut.len() / 2, cut.len() - 1] {
        fs::write(&path, &cut[..length]).unwrap();
        assert!(Npz::open(&path).is_err(), "{length}");
    }
    assert_eq!(memory::info("cpu:0").unwrap().peak, before);
}

fn refused(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    for error in [read_npy(path).unwrap_err(), parse_npy(bytes).unwrap_err()] {
        assert!(matches!(error.kind(), ErrorKind::BadFile { .. }), "{error}");
    }
}

#[test]
fn files_without_a_tensor_or_a_row_are_whole_or_not_there() {
    let _context = own_context();
    let folder = Folder::new("none");
    let path = folder.0.join("none.safetensors");
    for notes in [&[][..], &[("why", "nothing was trained")]] {
        save_safetensors(&path, [], notes).unwrap();
        let file = SafeTensors::open(&path).unwrap();
        assert_eq!(file.names().count(), 0);
    }
    let path = folder.0.join("none.csv");
    let error = Csv::new().save(&path, &zeros([0, 3]).unwrap(), &[]).unwrap_err().to_string();
    assert!(error.contains("no row") && !path.exists(), "{error}");
}
