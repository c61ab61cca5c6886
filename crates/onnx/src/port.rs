//! What a model takes and gives: names and types, with lengths that may be open.

use tonnage::DType;

use crate::message::{DimMessage, ValueType, dtype_of};

/// An input or an output of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its dtype; none where the file does not say, or it is no tensor.
    pub dtype: Option<DType>,
    /// Its lengths; none where the file does not say.
    pub dims: Option<Vec<PortDim>>,
}

/// A length of an input or output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortDim {
    /// That number.
    Known(usize),
    /// Open: bound by name when the model is planned or called.
    Open(String),
}

impl Port {
    /// As the file says.
    pub(crate) fn of(name: &str, ty: &ValueType) -> Port {
        let (dtype, dims) = match ty {
            ValueType::Tensor(dtype, dims) => (dtype_of(*dtype), dims.as_ref()),
            _ => (None, None),
        };
        // An open length without a name gets one: whose it is, and which.
        let one = |(axis, dim): (usize, &DimMessage)| match dim {
            DimMessage::Known(n) if *n >= 0 => PortDim::Known(*n as usize),
            DimMessage::Named(name) => PortDim::Open(name.clone()),
            _ => PortDim::Open(format!("{name}.{axis}")),
        };
        let dims = dims.map(|dims| dims.iter().enumerate().map(one).collect());
        Port { name: name.to_string(), dtype, dims }
    }
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.dtype {
            Some(dtype) => write!(f, "{dtype}")?,
            None => write!(f, "?")?,
        }
        let Some(dims) = &self.dims else { return write!(f, "[...]") };
        let text = |dim: &PortDim| match dim {
            PortDim::Known(n) => n.to_string(),
            PortDim::Open(name) => name.clone(),
        };
        write!(f, "[{}]", dims.iter().map(text).collect::<Vec<_>>().join(", "))
    }
}
