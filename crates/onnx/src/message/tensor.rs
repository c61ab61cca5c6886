//! A tensor of a model's file: its type, and where its elements are. None of them is read here.

use tonnage_core::{DType, Result};

use crate::wire::{Field, Seen, Span, Wire};

/// A tensor in the file of a model, or in one beside it.
#[derive(Debug, Default, Clone)]
pub struct StoredTensor {
    /// Its name; that of an attribute's may be empty.
    pub name: String,
    /// The number of its dtype.
    pub dtype: i64,
    /// Its lengths.
    pub dims: Vec<i64>,
    /// Where its elements are.
    pub location: Location,
}

/// Where the elements of a tensor are.
#[derive(Debug, Default, Clone)]
pub enum Location {
    /// Nowhere: it has none.
    #[default]
    Nowhere,
    /// As they lie in memory, the lowest byte first.
    Raw(Span),
    /// Floats of four bytes, or of eight, as they lie in memory, in one piece or several.
    Floats(Vec<Span>),
    /// Numbers in as many bytes as each takes.
    Varints(Vec<Span>),
    /// Texts.
    Texts,
    /// In another file: its path from the model's folder, the first byte, and how many where that is said.
    External(String, u64, Option<u64>),
    /// A piece of a tensor that is stored in several.
    Segment,
}

/// The dtype of a number.
pub fn dtype_of(number: i64) -> Option<DType> {
    Some(match number {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        16 => DType::BF16,
        _ => return None,
    })
}

/// What a dtype of ONNX is called.
pub fn dtype_name(number: i64) -> String {
    let others = [
        (0, "undefined"),
        (8, "string"),
        (14, "complex64"),
        (15, "complex128"),
        (17, "float8e4m3fn"),
        (18, "float8e4m3fnuz"),
        (19, "float8e5m2"),
        (20, "float8e5m2fnuz"),
        (21, "uint4"),
        (22, "int4"),
        (23, "float4e2m1"),
        (24, "float8e8m0"),
        (25, "uint2"),
        (26, "int2"),
    ];
    match (dtype_of(number), others.iter().find(|other| other.0 == number)) {
        (Some(dtype), _) => dtype.to_string(),
        (None, Some((_, name))) => (*name).to_string(),
        (None, None) => format!("number {number}"),
    }
}

/// Reads what a file says of a tensor.
pub(super) fn read(wire: &mut Wire, span: Span) -> Result<StoredTensor> {
    let mut tensor = StoredTensor::default();
    let (mut floats, mut varints, mut raw, mut texts) = (Vec::new(), Vec::new(), None, false);
    let (mut entries, mut is_external, mut is_segment) = (Vec::new(), false, false);
    wire.message(span, |wire, number, field| {
        match (number, field) {
            (1, Field::Varint(n, _)) => tensor.dims.push(n as i64),
            (1, Field::Bytes(span)) => tensor.dims.extend(super::ints(wire, span)?),
            (2, Field::Varint(n, _)) => tensor.dtype = n as i64,
            (8, Field::Bytes(span)) => tensor.name = wire.text(span)?,
            (13, Field::Bytes(span)) => entries.push(entry(wire, span)?),
            (14, Field::Varint(n, _)) => is_external = n == 1,
            (4 | 10, Field::Bytes(span) | Field::Fixed(_, span)) => {
                floats.push(span);
                return Ok(Seen::Not);
            }
            (5 | 7 | 11, Field::Bytes(span) | Field::Varint(_, span)) => {
                varints.push(span);
                return Ok(Seen::Not);
            }
            (9, Field::Bytes(span)) => {
                raw = Some(span);
                return Ok(Seen::Not);
            }
            (6, Field::Bytes(_)) => {
                texts = true;
                return Ok(Seen::Not);
            }
            (3, Field::Bytes(_)) => {
                is_segment = true;
                return Ok(Seen::Not);
            }
            _ => return Ok(Seen::Not),
        }
        Ok(Seen::Read)
    })?;
    tensor.location = match (raw, is_segment) {
        (_, true) => Location::Segment,
        _ if is_external => external(wire, &entries)?,
        (Some(span), _) => Location::Raw(span),
        _ if texts => Location::Texts,
        _ if !floats.is_empty() => Location::Floats(floats),
        _ if !varints.is_empty() => Location::Varints(varints),
        _ => Location::Nowhere,
    };
    Ok(tensor)
}

fn entry(wire: &mut Wire, span: Span) -> Result<(String, String)> {
    let mut entry = (String::new(), String::new());
    wire.message(span, |wire, number, field| {
        match (number, field) {
            (1, Field::Bytes(span)) => entry.0 = wire.text(span)?,
            (2, Field::Bytes(span)) => entry.1 = wire.text(span)?,
            _ => return Ok(Seen::Not),
        }
        Ok(Seen::Read)
    })?;
    Ok(entry)
}

fn external(wire: &Wire, entries: &[(String, String)]) -> Result<Location> {
    let find = |key: &str| entries.iter().find(|entry| entry.0 == key).map(|entry| &entry.1);
    let number = |key: &str| -> Result<Option<u64>> {
        let Some(text) = find(key) else { return Ok(None) };
        let read = text.parse().ok();
        read.map(Some).ok_or_else(|| wire.bad(format!("external data with the {key} `{text}`")))
    };
    let path = find("location").ok_or_else(|| wire.bad("external data without a location"))?;
    Ok(Location::External(path.clone(), number("offset")?.unwrap_or(0), number("length")?))
}
