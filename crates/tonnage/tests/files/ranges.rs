//! Tensors in ranges: however they were split among files, every range is read as it was saved, in little more than its bytes; what is damaged, missing or there twice is
//! an error that names the file.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::fs;
use std::path::Path;

use tonnage::io::{RangeIndex, RangedTensors, TensorRange, save_ranges};
use tonnage::{DType, Elementwise, RandomKey, Result, Tensor, TensorType};

use crate::common::dice::Dice;
use crate::common::{folder, own_context};

/// A tensor in random ranges, of a file each; the tensor, as a vector.
fn split(folder: &Path, name: &str, x: &Tensor, cuts: &[usize]) -> Result<RangeIndex> {
    let count = x.shape().sizes().unwrap().iter().product::<usize>();
    let flat = x.reshape([count])?;
    let ends = cuts.iter().copied().chain([count]);
    let (mut start, mut index) = (0, RangeIndex::default());
    for (i, end) in ends.enumerate() {
        let values = flat.slice(&[(start as i64..end as i64).into()])?;
        let range = TensorRange { name: name.into(), whole: x.ty(), start, values };
        index = index.and(save_ranges(folder.join(format!("{name}-{i}.safetensors")), &[range])?);
        start = end;
    }
    Ok(index)
}

#[test]
fn any_range_is_read_as_it_was_saved_however_it_was_split() {
    let _context = own_context();
    let (folder, mut dice) = (folder("ranges"), Dice(5));
    fs::create_dir_all(&folder).unwrap();
    for round in 0..12 {
        let sizes = [dice.below(90), dice.below(900) + 1];
        let dtype = [DType::F32, DType::I64, DType::U8][dice.below(3)];
        let x = RandomKey::new(round).int(0, 100, sizes.to_vec(), DType::I64).unwrap();
        let x = x.cast(dtype).unwrap();
        let count = sizes[0] * sizes[1];
        let mut cuts: Vec<usize> = (0..dice.below(4)).map(|_| dice.below(count + 1)).collect();
        cuts.sort_unstable();
        split(&folder, "x", &x, &cuts).unwrap().save(folder.join("index.json")).unwrap();
        let all = (&x).cast(DType::I64).unwrap().to_vec::<i64>().unwrap();
        for _ in 0..6 {
            let (a, b) = (dice.below(count + 1), dice.below(count + 1));
            let (start, end) = (a.min(b), a.max(b));
            let saved = RangedTensors::open(folder.join("index.json")).unwrap();
            assert_eq!(saved.ty("x").unwrap(), x.ty());
            let own = saved.read_range("x", start..end).unwrap().cast(DType::I64).unwrap();
            assert_eq!(own.to_vec::<i64>().unwrap(), all[start..end], "{cuts:?} {start}..{end}");
            // Two pieces more than the range itself, of a kilobyte or of a part of what was saved.
            let (read, size) = (saved.bytes_read().get() as usize, dtype.size());
            let piece = 1024 + count.div_ceil(128) * size;
            assert!(read <= (end - start) * size + 2 * piece, "{read} bytes for {start}..{end}");
            saved.check().unwrap();
        }
        let beyond = RangedTensors::open(folder.join("index.json")).unwrap();
        assert!(beyond.read_range("x", 0..count + 1).is_err());
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_damaged_missing_or_there_twice_is_an_error_that_names_the_file() {
    let _context = own_context();
    let (folder, mut dice) = (folder("bad-ranges"), Dice(6));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("index.json");
    let x = RandomKey::new(1).normal(vec![50, 40], DType::F32).unwrap();
    let index = || split(&folder, "x", &x, &[700, 1300]).unwrap();
    index().save(&path).unwrap();
    let read = || RangedTensors::open(&path)?.read_range("x", 0..2000).map(drop);
    read().unwrap();
    for file in ["index.json", "x-0.safetensors", "x-1.safetensors", "x-2.safetensors"] {
        let whole = fs::read(folder.join(file)).unwrap();
        for _ in 0..25 {
            let mut bytes = whole.clone();
            let at = dice.below(bytes.len());
            bytes[at] ^= 1 << dice.below(8);
            fs::write(folder.join(file), &bytes).unwrap();
            let in_key = || {
                let text = String::from_utf8_lossy(&whole);
                let key = text.rfind("checksum").unwrap();
                file == "index.json" && (key..key + 8).contains(&at)
            };
            match read() {
                Err(error) => assert!(error.to_string().contains(file), "{error}"),
                // A text without a checksum is read as it is, and all else is as it was saved.
                Ok(()) => assert!(in_key(), "{file} at {at}"),
            }
        }
        fs::remove_file(folder.join(file)).unwrap();
        assert!(read().unwrap_err().to_string().contains(file));
        fs::write(folder.join(file), &whole).unwrap();
    }
    read().unwrap();
    // A gap, and an element twice.
    let part = |start: usize, count: usize| {
        let values = tonnage::zeros([count]).unwrap();
        let range = TensorRange { name: "y".into(), whole: whole([10]), start, values };
        save_ranges(folder.join(format!("y-{start}.safetensors")), &[range]).unwrap()
    };
    for (first, second) in [((0, 4), (5, 5)), ((0, 6), (5, 5)), ((0, 4), (4, 5)), ((1, 4), (5, 5))]
    {
        let both = part(first.0, first.1).and(part(second.0, second.1));
        let error = both.save(&path).unwrap_err().to_string();
        assert!(error.contains("every element of `y` once"), "{error}");
    }
    // No range of the tensor.
    for (start, count, dtype) in
        [(8, 3, DType::F32), (0, 3, DType::I32), (usize::MAX, 1, DType::F32)]
    {
        let values = tonnage::full(0, dtype, [count]).unwrap();
        let range = TensorRange { name: "y".into(), whole: whole([10]), start, values };
        let error = save_ranges(folder.join("y.safetensors"), &[range]).unwrap_err().to_string();
        assert!(error.contains("is no range of f32[10]"), "{error}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

fn whole(shape: [usize; 1]) -> TensorType {
    TensorType::new(DType::F32, tonnage::Shape::from(shape.as_slice()))
}
