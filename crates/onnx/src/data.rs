//! Tensors of a model's file. Large ones stay in it, and in the files beside it; small ones are read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use tonnage::io::{FileTensor, Order};
use tonnage::{Bool, DType, Elementwise, Result, Shape, Tensor, TensorType, bf16, bind, f16};

use crate::message::{Location, StoredTensor, dtype_name, dtype_of};
use crate::wire::{Span, bad_file, varints};

/// Tensors of at most as many bytes are read when they are first needed: what has fewer than a page costs more in the file.
pub const SMALL: u64 = 1 << 14;

/// The file of a model.
#[derive(Debug)]
pub struct ModelFile {
    /// Its path.
    pub path: PathBuf,
}

impl ModelFile {
    /// Type of a tensor.
    ///
    /// # Errors
    /// Where its dtype has no counterpart, or its lengths are none.
    pub fn ty(&self, tensor: &StoredTensor) -> Result<TensorType> {
        let name = &tensor.name;
        let Some(dtype) = dtype_of(tensor.dtype) else {
            let what = format!("tensor `{name}` is of dtype {}", dtype_name(tensor.dtype));
            return Err(bad_file(&self.path, what, "such tensors are not supported"));
        };
        let lengths = tensor.dims.iter().map(|n| usize::try_from(*n).ok());
        let Some(sizes) = lengths.collect::<Option<Vec<usize>>>() else {
            let what = format!("tensor `{name}` has the lengths {:?}", tensor.dims);
            return Err(bad_file(&self.path, what, "the file is damaged"));
        };
        Ok(TensorType::new(dtype, Shape::from(sizes.as_slice())))
    }

    /// The tensor.
    ///
    /// # Errors
    /// Where the file has fewer elements than it says, or they are stored in a way that is not supported.
    pub fn tensor(&self, stored: &StoredTensor) -> Result<Tensor> {
        let ty = self.ty(stored)?;
        let bytes = ty.bytes("onnx")?.get();
        let sizes: Vec<usize> = stored.dims.iter().map(|n| *n as usize).collect();
        let wrong = |what: String, help: &str| {
            bad_file(&self.path, format!("tensor `{}` {what}", stored.name), help)
        };
        let short = |there: u64| {
            wrong(
                format!("should hold {ty}, {bytes} bytes, and has {there}"),
                "the file is damaged",
            )
        };
        if bytes == 0 {
            return bind::outside_of_traces(|| tonnage::full(0, ty.dtype, ty.shape.clone()));
        }
        let (path, at) = match &stored.location {
            Location::Raw(span) if span.len >= bytes => (self.path.clone(), span.at),
            Location::Raw(span) => return Err(short(span.len)),
            Location::Floats(spans) if ty.dtype.is_float() && ty.dtype.size() >= 4 => {
                match &spans[..] {
                    [one] if one.len >= bytes => (self.path.clone(), one.at),
                    [one] => return Err(short(one.len)),
                    several => {
                        let there: u64 = several.iter().map(|span| span.len).sum();
                        if there < bytes {
                            return Err(short(there));
                        }
                        return parse(ty.dtype, &self.read(several)?, &sizes);
                    }
                }
            }
            Location::Varints(spans) => {
                let numbers = varints(&self.read(spans)?).ok_or_else(|| {
                    wrong("holds numbers that do not end".into(), "the file is damaged")
                })?;
                if numbers.len() as u64 != bytes / ty.dtype.size() as u64 {
                    return Err(short(numbers.len() as u64 * ty.dtype.size() as u64));
                }
                let bytes: Vec<u8> = numbers
                    .iter()
                    .flat_map(|n| n.to_le_bytes().into_iter().take(ty.dtype.size()))
                    .collect();
                return parse(ty.dtype, &bytes, &sizes);
            }
            Location::External(path, at, length) => {
                if length.is_some_and(|length| length < bytes) {
                    return Err(short(length.unwrap_or(0)));
                }
                (self.beside(path)?, *at)
            }
            Location::Floats(_) => {
                return Err(wrong(format!("of {ty} is stored as floats"), "the file is damaged"));
            }
            Location::Segment => {
                return Err(wrong("is stored in segments".into(), "save the model again"));
            }
            Location::Texts => return Err(wrong("holds texts".into(), "they are not supported")),
            Location::Nowhere => return Err(short(0)),
        };
        let file = FileTensor::raw(path, at, ty.dtype, &sizes, Order::default())?;
        bind::outside_of_traces(|| if bytes <= SMALL { file.read() } else { Ok(file.lazy()) })
    }

    /// A file beside the model's, which no path may lead out of its folder to.
    fn beside(&self, path: &str) -> Result<PathBuf> {
        let relative = Path::new(path);
        let stays =
            relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        let outside = || {
            let what = format!("external data in `{path}`, which is not in the model's folder");
            bad_file(&self.path, what, "put the files of a model into one folder")
        };
        if !stays || path.is_empty() {
            return Err(outside());
        }
        let folder =
            self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = folder.join(relative);
        // A link may lead out, too.
        match (std::fs::canonicalize(folder), std::fs::canonicalize(&file)) {
            (Ok(folder), Ok(real)) if !real.starts_with(&folder) => Err(outside()),
            (_, Err(error)) => {
                let what = format!("external data in `{path}` cannot be read ({error})");
                Err(bad_file(&self.path, what, "put the files of a model into one folder"))
            }
            _ => Ok(file),
        }
    }

    /// Bytes of several places, one after the other.
    fn read(&self, spans: &[Span]) -> Result<Vec<u8>> {
        let failed = |e: std::io::Error| {
            bad_file(&self.path, format!("cannot be read ({e})"), "is it still there?")
        };
        let mut file = File::open(&self.path).map_err(failed)?;
        let mut all = Vec::new();
        for span in spans {
            file.seek(SeekFrom::Start(span.at)).map_err(failed)?;
            (&mut file).take(span.len).read_to_end(&mut all).map_err(failed)?;
        }
        Ok(all)
    }
}

/// Elements in the order of bytes of the file.
fn parse(dtype: DType, bytes: &[u8], sizes: &[usize]) -> Result<Tensor> {
    macro_rules! elements {
        ($($dtype:ident $T:ty, $n:literal;)*) => {
            match dtype {
                $(DType::$dtype => {
                    let each = bytes.chunks_exact($n).map(|b| {
                        let mut one = [0; $n];
                        one.copy_from_slice(b);
                        <$T>::from_le_bytes(one)
                    });
                    tonnage::tensor(each.collect::<Vec<$T>>())
                })*
                DType::Bool => {
                    let each = bytes.iter().map(|b| Bool::from(*b != 0));
                    tonnage::tensor(each.map(|b| b.0).collect::<Vec<u8>>()).and_then(|x| x.cast(DType::Bool))
                }
            }
        };
    }
    bind::outside_of_traces(|| {
        let flat = elements! {
            F64 f64, 8; F32 f32, 4; F16 f16, 2; BF16 bf16, 2; I64 i64, 8; I32 i32, 4; I16 i16, 2; I8 i8, 1;
            U64 u64, 8; U32 u32, 4; U16 u16, 2; U8 u8, 1;
        };
        flat?.reshape(sizes)
    })
}
